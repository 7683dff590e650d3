import { BucketStamps } from "@zae-limiter/limiter/buckets/distributed/admin/bucket-stamps.ts";
import { BucketItems } from "@zae-limiter/limiter/buckets/distributed/state/bucket-items.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import type { FlagStamps } from "@zae-limiter/limiter/buckets/python-stamps.ts";
import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { KEY, NAMESPACE } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { itemOf } from "../written.ts";

const OWNER = {
  ...{ link: { cascade: true, parentId: "team" }, generation: 5, incarnation: "i" },
  isStamped: true,
};

/** Returns what of a bucket is different after the stamps, and how many writes that took. */
async function stamped(before: Record<string, Value>, stamps: FlagStamps) {
  const items = new MemoryItemStore({ clock: () => NOW });
  const item = { ...itemOf(shardOf(4)), ...before };
  await items.put(item);
  const context = { store: items, namespaceId: NAMESPACE, clock: () => NOW, random: () => 0 };
  let writes = 0;
  const [found, states] = [new BucketItems(context), new CachedStates()];
  await new BucketStamps(context, found, states, () => undefined).apply({
    entityId: "e",
    stampsOf: async () => stamps,
    onStamped: () => {
      writes += 1;
    },
  });
  const after: Record<string, Value> = { ...items.readNow(KEY) };
  const names = [...new Set([...Object.keys(item), ...Object.keys(after)])];
  const changed = names.filter((name) => after[name] !== (item as typeof after)[name]);
  return { changed: Object.fromEntries(changed.map((name) => [name, after[name]])), writes };
}

test.each<[string, Record<string, Value>, FlagStamps, Record<string, Value | undefined>]>([
  ["is switched off", {}, { state: "disabled" }, { disabled: true }],
  ["is switched on", { disabled: true }, { state: "enabled" }, { disabled: undefined }],
  ["bypasses its limits for a minute", {}, { state: "bypass" }, { bypass: NOW + 60_000 }],
  [
    "has a bypass that is nearly over, and gets a new one",
    { bypass: NOW + 47_999 },
    { state: "bypass" },
    { bypass: NOW + 60_000 },
  ],
  [
    "bypassed its limits and does so no more",
    { bypass: NOW + 50_000 },
    { state: "enabled" },
    { bypass: undefined },
  ],
  [
    "has a new owner",
    {},
    { owner: OWNER },
    { cascade: true, parent_id: "team", pgen: 5, pinc: "i" },
  ],
  [
    "has a new owner that Python need not know",
    {},
    { owner: { ...OWNER, isStamped: false } },
    { cascade: true, parent_id: "team" },
  ],
  [
    "was stamped by another incarnation with a later move",
    { pgen: 9, pinc: "other" },
    { owner: OWNER },
    { cascade: true, parent_id: "team", pgen: 5, pinc: "i" },
  ],
])("a bucket that %s is stamped by one write", async (_, before, stamps, expected) => {
  expect(await stamped(before, stamps)).toEqual({ changed: expected, writes: 1 });
});

test.each<[string, Record<string, Value>, FlagStamps]>([
  ["is stamped already", { disabled: true }, { state: "disabled" }],
  ["is enabled and has no stamp", {}, { state: "enabled" }],
  ["has a bypass that is long enough", { bypass: NOW + 48_000 }, { state: "bypass" }],
  ["was stamped by a later move", { pgen: 6, pinc: "i" }, { owner: OWNER }],
  ["has nothing to be stamped with", {}, {}],
])("a bucket that %s is left alone", async (_, before, stamps) => {
  expect(await stamped(before, stamps)).toEqual({ changed: {}, writes: 0 });
});
