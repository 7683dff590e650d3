/** Splits as a splitter carries them out; it may have an old cached state of the bucket. */

import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { LinkChecks } from "@zae-limiter/limiter/buckets/distributed/consume/link-checks.ts";
import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  type SplitNotice,
  Splitter,
} from "@zae-limiter/limiter/buckets/distributed/shards/splitter.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { configOf, KEY, NAMESPACE, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

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
        : (items[operation]?.bind(items) as unknown),
  });
  const clock = () => table.nowMs;
  const context = { store, namespaceId: NAMESPACE, clock, random: () => 0.5 };
  const timer = { nowMs: clock, sleep: async () => undefined };
  const options = { ...DYNAMODB_TRAITS, onWarning: () => undefined };
  const splitter = new Splitter(context, states, new LinkChecks(context, states), options);
  await splitter.createShard(TARGET, 1, new Deadline(timer, 2000));
  expect(states.get(KEY.PK)?.seenAtMs).toBe(Number.NEGATIVE_INFINITY);
});

describe("a split by more than two", () => {
  async function hotBucket() {
    const table = new Table();
    await table.client().take(configOf(["a:640/day"]), { a: 40_000 });
    const clock = () => table.nowMs;
    const context = { store: table.items, namespaceId: NAMESPACE, clock, random: lehmer(1) };
    const states = new CachedStates();
    const notices: SplitNotice[] = [];
    const warnings: string[] = [];
    const splitter = new Splitter(context, states, new LinkChecks(context, states), {
      ...DYNAMODB_TRAITS,
      maxShards: 32,
      onSplit: (notice) => notices.push(notice),
      onWarning: ({ kind }) => warnings.push(kind),
    });
    const deadline = new Deadline({ nowMs: clock, sleep: async () => undefined }, 2000);
    const shard = (at: number) =>
      decoded(table.items.readNow(bucketKey(NAMESPACE, TARGET.entityId, TARGET.resource, at)));
    return { table, splitter, notices, warnings, deadline, shard };
  }

  test("a split by more than two is one transaction that makes all shards, and is told once", async () => {
    const { table, splitter, notices, warnings, deadline, shard } = await hotBucket();
    table.calls.length = 0;
    expect(await splitter.split(shard(0) as SeenBucket, 8, deadline)).toBe(true);
    expect(table.calls).toEqual(["transact"]);
    const shards = Array.from({ length: 9 }, (_, at) => shard(at));
    expect(shards.map((bucket) => bucket?.shardCount)).toEqual([
      ...Array.from({ length: 8 }, () => 8),
      undefined,
    ]);
    expect(shards.slice(0, 8).map((bucket) => bucket?.limits.get("a")?.tokensMilli)).toEqual(
      Array.from({ length: 8 }, () => 75_000),
    );
    expect(notices).toEqual([{ entityId: "e", resource: "r", shardCount: 8 }]);
    expect(warnings).toEqual([]);
  });

  test("a split by more than two happens once: a splitter that saw the bucket before changes nothing", async () => {
    const { splitter, deadline, shard, notices } = await hotBucket();
    const seen = shard(0) as SeenBucket;
    await splitter.split(seen, 8, deadline);
    expect(await splitter.split(seen, 8, deadline)).toBe(false);
    expect(notices).toHaveLength(1);
    expect(shard(0)?.shardCount).toBe(8);
  });

  test("a split by more than two is followed by the other shards in one step each, and up to the bound", async () => {
    const { table, splitter, warnings, deadline, shard } = await hotBucket();
    await splitter.split(shard(0) as SeenBucket, 4, deadline);
    table.nowMs += 1000;
    await splitter.split(shard(0) as SeenBucket, 8, deadline);
    expect(warnings).toEqual(["shards_exhausted"]);
    // Shard 29 descends from 13, 5 and 1: the split of shard 1 makes them all.
    expect([1, 5, 13, 29].map((at) => shard(at)?.shardCount)).toEqual([
      4,
      undefined,
      undefined,
      undefined,
    ]);
    table.calls.length = 0;
    await splitter.createShard(TARGET, 29, deadline);
    expect([1, 5, 13, 29].map((at) => shard(at)?.shardCount)).toEqual([32, 32, 32, 32]);
    expect(table.calls.filter((call) => call === "transact")).toHaveLength(1);
  });
});
