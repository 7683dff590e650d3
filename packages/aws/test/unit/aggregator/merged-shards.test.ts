/** Usage of a bucket whose shards are split and merged: every token is counted once. */

import { consumptionOf } from "@zae-limiter/aws/aggregator/consumption.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { configOf, NAMESPACE, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const NAMED = { namespaceId: NAMESPACE, ...TARGET };
const SHARDS = 4;

function itemsOf(table: Table): (Item | undefined)[] {
  return Array.from({ length: SHARDS }, (_, shard) =>
    table.items.readNow(bucketKey(NAMESPACE, TARGET.entityId, TARGET.resource, shard)),
  );
}

/** Returns the count of the aggregator for a step that changes items: milli-tokens and acquires. */
async function counted(table: Table, step: () => Promise<unknown>) {
  const before = itemsOf(table);
  await step();
  let [milli, events] = [0, 0];
  itemsOf(table).forEach((after, shard) => {
    const key = bucketKey(NAMESPACE, TARGET.entityId, TARGET.resource, shard);
    const change = { id: "1", order: "1", atMs: table.nowMs, key, before: before[shard], after };
    const consumption = consumptionOf(change);
    events += consumption?.events ?? 0;
    for (const [, amount] of consumption?.amountsMilli ?? []) milli += Number(amount);
  });
  return { milli, events };
}

test("a merge is counted as nothing, and all acquires around it as what they consumed", async () => {
  const table = new Table();
  const config = configOf(["a:1000/day"]);
  const client = table.client();
  const take = () => client.take(config, { a: 3000 });
  expect(await counted(table, take)).toEqual({ milli: 3000, events: 1 });
  const split = () => splitInto(table.items, NAMED, SHARDS, table.nowMs);
  expect(await counted(table, split)).toEqual({ milli: 0, events: 0 });
  for (let call = 0; call < 12; call += 1) {
    expect(await counted(table, take)).toEqual({ milli: 3000, events: 1 });
  }
  const merge = () => halveShards(table.items, NAMED, table.nowMs);
  for (let shards = SHARDS; shards > 1; shards /= 2) {
    expect(await counted(table, merge)).toEqual({ milli: 0, events: 0 });
    expect(await counted(table, take)).toEqual({ milli: 3000, events: 1 });
  }
  expect(table.item).toMatchObject({ shard_count: 1, b_a_tc: 45_000, ac: 15 });
});

test("a write that lowers the number of shards in the same generation is counted", () => {
  const key = bucketKey(NAMESPACE, TARGET.entityId, TARGET.resource, 0);
  const before: Item = { ...key, shard_count: 4, mg: 1, rf: 1, b_a_tc: 1000, ac: 1 };
  const after: Item = { ...before, shard_count: 2, b_a_tc: 4000, ac: 2 };
  const change = { id: "1", order: "1", atMs: 1, key, before, after };
  expect(consumptionOf(change)).toMatchObject({ events: 1, amountsMilli: [["a", 3000]] });
  expect(consumptionOf({ ...change, after: { ...after, mg: 2 } })).toBeUndefined();
});
