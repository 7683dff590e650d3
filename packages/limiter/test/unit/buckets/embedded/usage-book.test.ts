import { usageBook } from "@zae-limiter/limiter/buckets/embedded/usage-book.ts";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import {
  decodeUsage,
  OTHER_ENTITIES,
  type UsageSnapshot,
} from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { expect, test } from "vitest";
import { NOW } from "./bucket-of.ts";
import { snapshotItems } from "./snapshot-items.ts";

function book(maxEntities: number) {
  const { stored, items } = snapshotItems();
  const count = usageBook(items, { retentionDays: 30, maxEntities });
  const snapshots = (window: string): Record<string, [tokens: number, events: number]> => {
    const decoded = [...stored.values()].map(decodeUsage) as UsageSnapshot[];
    const found = decoded.filter((snapshot) => snapshot.windowType === window);
    return Object.fromEntries(
      found.map(({ entityId, counters, totalEvents }) => [
        entityId,
        [counters.a ?? 0, totalEvents],
      ]),
    );
  };
  const use = (entityId: string, tokens: number, events: number, atMs = NOW) =>
    count(
      { namespaceId: "ns", entityId, resource: "r" },
      { atMs, amountsMilli: [["a", tokens * 1000]], events },
    );
  return { use, snapshots };
}

test("usage is added to one snapshot of each window", () => {
  const { use, snapshots } = book(10);
  use("e", 2, 1);
  use("e", 3, 2);
  for (const window of WINDOW_TYPES) expect(snapshots(window)).toEqual({ e: [5, 3] });
});

test("an entity beyond the bound goes to the others, unless it is busier than one that is in", () => {
  const { use, snapshots } = book(2);
  use("one", 1, 1);
  use("two", 2, 5);
  use("idle", 4, 1);
  expect(snapshots("hourly")).toEqual({ one: [1, 1], two: [2, 5], [OTHER_ENTITIES]: [4, 1] });
  use("busy", 8, 9);
  expect(snapshots("hourly")).toEqual({ two: [2, 5], busy: [8, 9], [OTHER_ENTITIES]: [5, 2] });
});

test("sums over a resource are exact, whichever entities keep a snapshot", () => {
  const { use, snapshots } = book(3);
  let [tokens, events] = [0, 0];
  for (let call = 0; call < 40; call += 1) {
    const size = (call * 7) % 11;
    use(`e${(call * 5) % 13}`, size, 1 + (call % 3));
    tokens += size;
    events += 1 + (call % 3);
  }
  for (const window of WINDOW_TYPES) {
    const all = Object.values(snapshots(window));
    expect(all.reduce((sum, [one]) => sum + one, 0)).toBe(tokens);
    expect(all.reduce((sum, [, one]) => sum + one, 0)).toBe(events);
    expect(all.length).toBeLessThanOrEqual(4);
  }
});

test("each hour is a window of its own", () => {
  const { use, snapshots } = book(1);
  use("one", 1, 1);
  use("two", 2, 1, NOW + 3_600_000);
  expect(Object.keys(snapshots("hourly")).sort()).toEqual(["one", "two"]);
});
