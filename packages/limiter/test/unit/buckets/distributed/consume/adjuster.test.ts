import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { isRefund } from "@zae-limiter/limiter/buckets/leg.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey, namespaceIdKey } from "@zae-limiter/limiter/records/keys.ts";
import { configOf, NAMESPACE, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { itemOf, limitOf } from "../written.ts";

const CONFIG = configOf(["a:10/day"]);

async function tableWith(...buckets: readonly SeenBucket[]) {
  const table = new Table();
  for (const bucket of buckets) await table.items.put(itemOf(bucket));
  table.calls.length = 0;
  const shard = (at: number) => decoded(table.items.readNow(bucketKey(NAMESPACE, "e", "r", at)));
  return { table, client: table.client(), shard };
}

test.each([
  [[-1], true],
  [[5, -1], true],
  [[5, 0], false],
  [[], false],
])("a change by %j is a refund: %s", (deltasMilli, expected) => {
  expect(isRefund({ ...TARGET, config: CONFIG, deltasMilli })).toBe(expected);
});

test("a refund goes through a transaction, and consuming more is a plain write", async () => {
  const { table, client, shard } = await tableWith(shardOf(4));
  await client.store.refund({ ...TARGET, config: CONFIG, deltasMilli: [-1000] });
  expect(limitOf(shard(0)).tokensMilli).toBe(5000);
  expect(table.calls).toContain("transact");
  table.calls.length = 0;
  await client.adjust(CONFIG, { a: 9000 });
  expect(limitOf(shard(0)).tokensMilli).toBe(-4000);
  expect(table.calls).not.toContain("transact");
});

test("a change by nothing asks the store nothing", async () => {
  const { table, client } = await tableWith(shardOf(4));
  await client.adjust(CONFIG, { a: 0 });
  expect(table.calls).toEqual([]);
});

test("a refund to a bucket that is gone creates nothing", async () => {
  const { client, shard } = await tableWith();
  await client.refund(CONFIG, { a: 1000 });
  expect(shard(0)).toBeUndefined();
});

test("consuming more from a bucket that is gone creates it with what was consumed", async () => {
  const { table, client, shard } = await tableWith();
  // The namespace is registered, and was not deleted.
  await table.items.put({ ...namespaceIdKey(NAMESPACE), status: "active" });
  await client.adjust(CONFIG, { a: 3000 });
  expect(limitOf(shard(0))).toMatchObject({ tokensMilli: 7000, totalConsumedMilli: 3000 });
});

test("a refund to a shard that was merged goes to the shard that has its share", async () => {
  const kept = shardOf(1, { generation: 2 });
  const { client, shard } = await tableWith(kept);
  await client.store.refund({ ...TARGET, shard: 1, config: CONFIG, deltasMilli: [-1000] });
  expect(limitOf(shard(0)).tokensMilli).toBe(2000);
  expect(shard(1)).toBeUndefined();
});

test("a refund to a shard of a bucket that was made again knows of no merge", async () => {
  const { client, shard } = await tableWith(shardOf(1));
  await client.store.refund({ ...TARGET, shard: 1, config: CONFIG, deltasMilli: [-1000] });
  expect(limitOf(shard(0)).tokensMilli).toBe(1000);
});

test("a change that was planned from a cached state is planned again from the stored one", async () => {
  const { table, client, shard } = await tableWith(shardOf(4));
  await client.take(CONFIG, { a: 1000 });
  // Another client has moved the base time since.
  await table.items.put(itemOf(shardOf(2, { refilledAtMs: NOW + 5 })));
  await client.adjust(CONFIG, { a: 500 });
  expect(limitOf(shard(0)).tokensMilli).toBe(1500);
});

test("a refund whose outcome is unknown is repeated under its token, and counts once", async () => {
  const { table, shard } = await tableWith(shardOf(4));
  let lost = 0;
  const client = table.client(0, {
    transact: async (writes, options) => {
      const result = await table.items.transact(writes, options);
      lost += 1;
      if (lost > 1) return result;
      throw new RateLimiterUnavailable("lost", { reason: "timeout", nothingWritten: false });
    },
  });
  await client.refund(CONFIG, { a: 1000 });
  await client.later();
  await client.later();
  expect(lost).toBeGreaterThan(1);
  expect(limitOf(shard(0)).tokensMilli).toBe(5000);
});
