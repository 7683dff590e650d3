/** How many requests acquires need that are in flight together on one bucket. */

import { setImmediate as later } from "node:timers/promises";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { configOf, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

/** Requests take a turn of the event loop, so that those of other calls are under way meanwhile. */
async function callsPerAcquire(inFlight: number): Promise<number> {
  const table = new Table();
  const config = configOf(["a:1000000/sec"]);
  const update: ItemStore["update"] = async (key, change, condition) => {
    await later();
    const result = await table.items.update(key, change, condition);
    await later();
    return result;
  };
  const client = table.client(0, { update });
  await client.take(config, { a: 1000 });
  table.calls.length = 0;
  const rounds = 50;
  const lanes = Array.from({ length: inFlight }, async () => {
    for (let round = 0; round < rounds; round += 1) {
      expect(await client.take(config, { a: 1000 })).toMatchObject({ outcome: "granted" });
    }
  });
  await Promise.all(lanes);
  const acquires = inFlight * rounds;
  expect(table.item?.b_a_tc).toBe((acquires + 1) * 1000);
  expect(table.item?.ac).toBe(acquires + 1);
  return table.calls.length / acquires;
}

test.each([
  [1, 1.02],
  [16, 0.13],
  [64, 0.05],
])("%i acquires in flight need at most %d requests each", async (inFlight, most) => {
  expect(await callsPerAcquire(inFlight)).toBeLessThanOrEqual(most);
});

test("each of the refunds that share a write makes its acquire void", async () => {
  const table = new Table();
  const config = configOf(["a:100/day"]);
  const client = table.client();
  for (let call = 0; call < 6; call += 1) await client.take(config, { a: 1000 });
  table.calls.length = 0;
  const refund = { ...TARGET, shard: 0, config, deltasMilli: [-1000], acquires: -1 };
  await Promise.all(Array.from({ length: 5 }, () => client.store.refund(refund)));
  expect(table.item).toMatchObject({ ac: 1, b_a_tc: 1000 });
  expect(table.calls.filter((call) => call.startsWith("transact")).length).toBeLessThan(5);
});
