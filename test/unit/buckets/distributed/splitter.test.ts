/** A splitter may have an old cached state of the bucket. */

import { expect, test } from "vitest";
import { CachedStates } from "../../../../src/buckets/distributed/cached-states.ts";
import { LinkChecks } from "../../../../src/buckets/distributed/link-checks.ts";
import { Splitter } from "../../../../src/buckets/distributed/splitter.ts";

import { Deadline } from "../../../../src/domain/deadline.ts";
import type { ItemStore } from "../../../../src/storage/item-store.ts";
import { configOf, KEY, NAMESPACE, TARGET, Table } from "../table.ts";

test("what was given back while a shard was read is not refused by what the read shows", async () => {
  const table = new Table();
  await table.client().take(configOf(["a:10/day"]), { a: 1000 });
  const states = new CachedStates();
  const store = new Proxy<ItemStore>(table.items, {
    get: (items, operation: keyof ItemStore) =>
      operation === "get"
        ? async () => {
            const item = await items.get(KEY);
            states.changed(KEY.PK, new Map([["a", -1000]]));
            return item;
          }
        : (items[operation].bind(items) as unknown),
  });
  const clock = () => table.nowMs;
  const context = { store, namespaceId: NAMESPACE, clock, random: () => 0.5 };
  const timer = { nowMs: clock, sleep: async () => undefined };
  const options = { onWarning: () => undefined };
  const splitter = new Splitter(context, states, new LinkChecks(context, states), options);
  await splitter.bringAbout(TARGET, 1, new Deadline(timer, 2000));
  expect(states.get(KEY.PK)?.seenAtMs).toBe(Number.NEGATIVE_INFINITY);
});
