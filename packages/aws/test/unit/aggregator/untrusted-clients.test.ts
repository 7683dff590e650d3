/** A bucket whose item cannot be: what a client, a listing and the aggregator make of it. */

import { splitterOver } from "@zae-limiter/aws/aggregator/splitter.ts";
import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { DamagedRecordError, ZaeLimiterError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { tellFigures } from "@zae-limiter/test-support/figures.ts";
import { hostileItem, SOUND_ITEMS, storable } from "@zae-limiter/test-support/hostile-items.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { describe, expect, test } from "vitest";
import { AT, bucketItem, change } from "./changes.ts";
import { aggregatorOver } from "./setup.ts";

const SEED = Number(process.env.FC_SEED ?? 20_261_116);
const ITEMS = process.env.ZAEL_SOAK === undefined ? 200 : 5000;
const TARGET = { entityId: "user-1", resource: "gpt-4" };
const REQUEST = { ...TARGET, consume: { rpm: 1 } };
const NOW_MS = 1_800_000_000_500;

/** A limiter over a memory store, where buckets are items as they are on DynamoDB. */
async function limiterOver() {
  const store = new MemoryItemStore({ clock: () => NOW_MS });
  const repo = await overTable(store, { clock: () => NOW_MS, configCacheTtlSeconds: 0 });
  await repo.limits.setSystem(["rpm:100"]);
  const warnings: LimiterWarning[] = [];
  const limiter = new RateLimiter(repo, { onWarning: (warning) => warnings.push(warning) });
  const put = (item: Item) => store.put(storable(inNamespace(item, repo.namespaceId)));
  return { limiter, repo, store, put, warnings };
}

/** Returns an item moved to another namespace. */
function inNamespace(item: Item, namespaceId: string): Item {
  const moved = Object.entries(item).map(([name, value]) => [
    name,
    typeof value === "string" ? value.replace(/^ns(?=$|\/)/, namespaceId) : value,
  ]);
  return Object.fromEntries(moved) as Item;
}

function shown(item: Item): string {
  return JSON.stringify(encodeItem(storable(item)));
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}

const POISON: readonly [string, Value][] = [
  ["shard_count", 20_000_000],
  ["shard_count", 5_000_000_000],
  ["shard_count", 3],
  ["shard_count", 0.5],
  ["shard_count", "2"],
  ["rf", 1e125],
  ["rf", "now"],
  ["ttl", "never"],
  ["cv", 0],
  ["entity_id", "another"],
];

test("a limit whose remainder cannot be starts over once, with the limits that are set", async () => {
  const { limiter, repo, put } = await limiterOver();
  await put({ ...(SOUND_ITEMS[0] as Item), shard_count: 1, cv: 1, b_rpm_rr: {} });
  await repo.limits.setEntity("user-1", ["rpm:50"], { resource: "gpt-4" });
  for (const left of [49, 48]) {
    await limiter.acquire(REQUEST);
    const [state] = await repo.buckets.list("user-1");
    expect(state).toMatchObject({ capacity: 50, tokens: left });
  }
});

describe.each(POISON)("a bucket with %s = %s", (name, value) => {
  const poisoned = { ...(SOUND_ITEMS[0] as Item), shard_count: 1, [name]: value };

  test("a hostile bucket is an error that names the record, and no call hangs", async () => {
    const { limiter, put } = await limiterOver();
    await put(poisoned);
    for (const call of [() => limiter.acquire(REQUEST), () => limiter.available(TARGET)]) {
      const error = await failure(call());
      expect(error).toBeInstanceOf(DamagedRecordError);
      expect(error).toMatchObject({ code: "ZAEL_DAMAGED_RECORD" });
      expect((error as Error).message.length).toBeLessThan(300);
    }
  });

  test("a hostile bucket is left out of lists with a warning, and goes with its entity", async () => {
    const { limiter, repo, put, warnings, store } = await limiterOver();
    await put(poisoned);
    const other = { ...REQUEST, entityId: "user-2" };
    await limiter.acquire(other);
    expect(await repo.buckets.list("user-1")).toEqual([]);
    const { entities } = await repo.buckets.capacity("gpt-4", "rpm");
    expect(entities.map(({ entityId }) => entityId)).toEqual(["user-2"]);
    expect(warnings.map(({ kind }) => kind)).toEqual(["damaged_record", "damaged_record"]);
    await repo.entities.delete("user-1");
    const key = inNamespace(poisoned, repo.namespaceId);
    expect(await store.get(key)).toBeUndefined();
    expect((await limiter.acquire(REQUEST)).consumed).toEqual({ rpm: 1 });
  });

  test("a hostile bucket is skipped by the aggregator with its alarm, and is not delivered again", async () => {
    const store = new MemoryItemStore({ clock: () => AT });
    const splitter = splitterOver({ store, clock: () => AT });
    const worker = aggregatorOver({ store, splitter, nowMs: AT });
    const before = bucketItem({ tc: { tpm: 0 }, acquires: 0 });
    const after = bucketItem({ tc: { tpm: 5000 }, acquires: 1, more: { [name]: value } });
    await store.put(storable(after));
    const { counters, failedIds } = await worker.aggregator.process([change(before, after)]);
    expect(failedIds).toEqual([]);
    expect(counters).toMatchObject({ skipped: 1, failures: 1, snapshots: 3 });
    const logged = worker.lines.find(({ level }) => level === "error");
    expect(logged?.fields).toMatchObject({ error_code: "ZAEL_DAMAGED_RECORD" });
  });
});

test(`${ITEMS} hostile buckets end every call with an answer or an error of ours (FC_SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const { limiter, repo, put } = await limiterOver();
  const seen = new Map<string, number>();
  for (let count = 0; count < ITEMS; count += 1) {
    const item = hostileItem(random, 0);
    await put(item);
    const calls: (() => Promise<unknown>)[] = [
      () => limiter.available(TARGET),
      async () => {
        const answer = await limiter.tryAcquire(REQUEST);
        if (!answer.granted) return;
        await answer.lease.consume({ rpm: 1 });
        answer.lease.adjust({ rpm: 2 });
        await answer.lease.commit();
      },
      async () => (await limiter.acquire(REQUEST)).rollback(),
      () => repo.buckets.list("user-1"),
      () => repo.buckets.capacity("gpt-4", "rpm"),
      () => repo.limits.setEntity("user-1", ["rpm:50"], { resource: "gpt-4" }),
      () => repo.entities.delete("user-1"),
    ];
    for (const [at, call] of calls.entries()) {
      const error = await failure(call());
      if (error === undefined) continue;
      if (!(error instanceof ZaeLimiterError)) {
        throw new Error(`call ${at} failed on ${shown(item)}`, { cause: error });
      }
      seen.set(error.code, (seen.get(error.code) ?? 0) + 1);
      if (error.code === "ZAEL_UNAVAILABLE") {
        throw new Error(`call ${at} gave up on ${shown(item)}`, { cause: error });
      }
      // Deleting the entity is the way out, so it always works.
      expect(at).not.toBe(calls.length - 1);
    }
  }
  tellFigures({ seed: SEED, hostileBuckets: ITEMS, ...Object.fromEntries(seen) });
  expect(seen.get("ZAEL_DAMAGED_RECORD")).toBeGreaterThan(ITEMS / 8);
});

test(`hostile changes never come back to the aggregator (FC_SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const store = new MemoryItemStore({ clock: () => AT });
  const splitter = splitterOver({ store, clock: () => AT });
  const { aggregator } = aggregatorOver({ store, splitter, nowMs: AT });
  let skipped = 0;
  for (let batch = 0; batch < 100; batch += 1) {
    const changes = Array.from({ length: 20 }, () => {
      const [before, after] = [hostileItem(random, 0), hostileItem(random, 0)];
      return change(random() < 0.2 ? undefined : before, random() < 0.1 ? undefined : after);
    });
    for (const { after } of changes) if (after !== undefined) await store.put(storable(after));
    const report = await aggregator.process(changes);
    expect(report.failedIds).toEqual([]);
    skipped += report.counters.skipped;
  }
  expect(skipped).toBeGreaterThan(50);
});
