/** Buckets over a custom item store, which has no partitions and no clients in Python. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const BUCKET = { entityId: "key-1", resource: "gpt-4" } as const;
/** A meter starts two seconds behind, and a table splits at a second ahead: 1,000 writes each. */
const WRITES = 3100;

/** Consumes one token per write, all at one instant; returns the shards as they are stored. */
async function writtenAtOnce(over: typeof Repository.over): Promise<Item[]> {
  const clock = () => NOW;
  const items = new MemoryItemStore({ clock });
  const repo = await over(items, { clock });
  const limiter = new RateLimiter(repo);
  await repo.limits.setResource(BUCKET.resource, ["rpm:1000000"]);
  for (let at = 0; at < WRITES; at += 1) await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
  const partition = `${repo.namespaceId}/ENTITY#${BUCKET.entityId}`;
  const shards: Item[] = [];
  for await (const { PK, SK } of items.query({
    index: "GSI3",
    partition,
    sort: { beginsWith: "BUCKET#" },
  })) {
    shards.push((await items.get({ PK, SK })) as Item);
  }
  await limiter.close();
  return shards;
}

test("a bucket on a custom store is never split, and has no meter of writes", async () => {
  const shards = await writtenAtOnce(Repository.over);
  expect(shards).toHaveLength(1);
  expect(shards[0]).toMatchObject({ shard_count: 1, b_rpm_tc: WRITES * 1000, ac: WRITES });
  expect(shards[0]).not.toHaveProperty("wm");
  expect(shards[0]).not.toHaveProperty("b_wcu_tk");
});

test("a bucket on a table is split when a partition has its fill of writes", async () => {
  const shards = await writtenAtOnce(overTable);
  expect(shards.length).toBeGreaterThan(1);
  expect(shards[0]).toHaveProperty("wm");
});

test("a custom store has no stamps, and a cascade setting that is removed has no effect", async () => {
  const clock = () => NOW;
  const items = new MemoryItemStore({ clock });
  const repo = await Repository.over(items, { clock });
  await using limiter = new RateLimiter(repo);
  await repo.limits.setResource(BUCKET.resource, ["rpm:10"]);
  await repo.entities.create({ id: "team" });
  await repo.entities.create({ id: BUCKET.entityId, parentId: "team" });
  const place = { resource: BUCKET.resource };
  expect(await repo.limits.setCascade(place, true)).toEqual({ stampedBuckets: 0 });
  await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
  expect(await repo.limits.setCascade(place, null)).toEqual({ stampedBuckets: 0 });
  await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
  expect(await limiter.available({ ...BUCKET, entityId: "team" })).toEqual({ rpm: 9 });
});
