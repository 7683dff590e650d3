import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  AnnouncedShards,
  RepairedCounts,
} from "@zae-limiter/limiter/buckets/distributed/shards/announced-shards.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { NAMESPACE } from "@zae-limiter/test-support/table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { beforeEach, describe, expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { itemOf, limitOf } from "../written.ts";

const NAME = { entityId: "e", resource: "r" };

describe("announced shards", () => {
  let items: MemoryItemStore;
  let shards: AnnouncedShards;
  let deadline: Deadline;

  beforeEach(() => {
    const time = new VirtualTime(NOW);
    items = new MemoryItemStore({ clock: time.clock });
    deadline = new Deadline(time.timer, 1000);
    const context = { store: items, namespaceId: NAMESPACE, clock: time.clock, random: () => 0 };
    shards = new AnnouncedShards(context, new CachedStates());
  });

  const put = async (...buckets: readonly SeenBucket[]) => {
    for (const bucket of buckets) await items.put(itemOf(bucket));
  };
  const shard = (at: number) => decoded(items.readNow(bucketKey(NAMESPACE, "e", "r", at)));
  const held = (...at: readonly number[]) => at.map((one) => limitOf(shard(one)).tokensMilli);

  test("announced shards are made with what their origins hold too much, and nothing is minted", async () => {
    await put(shardOf(10, { shardCount: 4, ttl: undefined }));
    await shards.repair(NAME, deadline);
    expect(held(0, 1, 2, 3)).toEqual([2500, 2500, 2500, 2500]);
    expect([1, 2, 3].map((at) => shard(at)?.shardCount)).toEqual([4, 4, 4]);
  });

  test("announced shards are made once: what is settled stays as it is", async () => {
    await put(shardOf(10, { shardCount: 2, ttl: undefined }));
    await shards.repair(NAME, deadline);
    const before = [0, 1].map(shard);
    await shards.repair(NAME, deadline);
    expect([0, 1].map(shard)).toEqual(before);
  });

  test("announced shards start empty where their origin holds no more than its share", async () => {
    await put(shardOf(3, { shardCount: 2, ttl: undefined }));
    await shards.repair(NAME, deadline);
    expect(held(0, 1)).toEqual([3000, 0]);
  });

  test("announced shards are not made while their share still belongs to a shard that splits later", async () => {
    await put(
      shardOf(2, { shardCount: 4, ttl: undefined }),
      shardOf(4, { shard: 1, shardCount: 2, ttl: undefined }),
    );
    await shards.repair(NAME, deadline);
    expect([shard(2) !== undefined, shard(3)]).toEqual([true, undefined]);
  });

  test("announced shards are taken back where there are more than there can be", async () => {
    const first = itemOf(shardOf(10, { shardCount: 1, ttl: undefined }));
    await items.put({ ...first, shard_count: 128 });
    await shards.repair(NAME, deadline);
    expect([shard(0)?.shardCount, shard(0)?.announced]).toEqual([1, undefined]);
    expect(held(0)).toEqual([10_000]);
  });

  test("announced shards are told to a shard that is not split, unless it has changed meanwhile", async () => {
    const bucket = shardOf(4);
    await put(bucket);
    await shards.raise(bucket, 8, deadline);
    expect(shard(0)?.shardCount).toBe(8);
    await shards.raise(bucket, 16, deadline);
    expect(shard(0)?.shardCount).toBe(8);
  });

  test("announced shards are not made when there is no time left, and nothing was written then", async () => {
    await put(shardOf(10, { shardCount: 2, ttl: undefined }));
    const over = new Deadline(new VirtualTime(NOW).timer, 0);
    const failure = await shards.repair(NAME, over).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RateLimiterUnavailable);
    expect(failure).toMatchObject({ nothingWritten: true });
    expect(shard(1)).toBeUndefined();
  });

  test("announced shards of a bucket that was deleted are not made", async () => {
    await shards.repair(NAME, deadline);
    await shards.make(NAME, 1, deadline);
    expect(shard(1)).toBeUndefined();
  });
});

test("announced shards are due once per number of shards", () => {
  const counts = new RepairedCounts();
  const bucket = shardOf(10, { shardCount: 2 });
  expect(counts.isDue(NAME, shardOf(1, { shardCount: 2 }))).toBe(false);
  expect(counts.isDue(NAME, bucket)).toBe(true);
  counts.repaired(NAME, bucket);
  expect(counts.isDue(NAME, bucket)).toBe(false);
  expect(counts.isDue(NAME, { ...bucket, shardCount: 4 })).toBe(true);
});
