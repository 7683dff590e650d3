/** Slots of a bucket in several shards, and slots whose writes are lost on the way. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitInto, splitShard } from "@zae-limiter/test-support/force-split.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, type LimiterStore, type Subject } from "./limiter-stores.ts";

const CALL = { entityId: "hot", resource: "api" };
const ONE = { ...CALL, consume: { parallel: 1, rpm: 1 } };
const SHARDS_MAX = 8;
const SLOTS = 9;

/** Calls of several processes that hold slots for a while. */
class Calls {
  readonly #limiters: readonly RateLimiter[];
  readonly #random: Random;
  readonly #leases: Lease[] = [];

  constructor(limiters: readonly RateLimiter[], random: Random) {
    this.#limiters = limiters;
    this.#random = random;
  }

  get held(): number {
    return this.#leases.reduce((sum, { consumed }) => sum + (consumed["parallel"] ?? 0), 0);
  }

  /** Begins a call, or ends one. */
  act(): Promise<void> {
    return this.#random() < 0.55 ? this.#begin() : this.#end();
  }

  async end(): Promise<void> {
    for (const lease of this.#leases) await lease.commit();
  }

  async #begin(): Promise<void> {
    const limiter = this.#oneOf(this.#limiters);
    const consume = { parallel: 1 + Math.floor(this.#random() * 3), rpm: 1 };
    const decision = await limiter?.tryAcquire({ ...CALL, consume });
    if (decision?.granted === true) this.#leases.push(decision.lease);
  }

  async #end(): Promise<void> {
    const lease = this.#oneOf(this.#leases);
    if (lease === undefined) return;
    this.#leases.splice(this.#leases.indexOf(lease), 1);
    await (this.#random() < 0.5 ? lease.commit() : lease.rollback());
  }

  #oneOf<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.#random() * all.length)];
  }
}

describeItemStores("slots in shards", (store) => {
  async function opened(slots: number, options: Parameters<LimiterStore["open"]>[0] = {}) {
    const subject = await store.open(options);
    await subject.repo.limits.setSystem([`parallel:${slots} concurrent`, "rpm:100000"]);
    await subject.limiter.acquire({ ...CALL, consume: {} });
    const { items } = store.place;
    if (items === undefined) throw new Error("buckets are items here");
    const target = { namespaceId: subject.repo.namespaceId, ...CALL };
    return { ...subject, items, target };
  }

  /** Returns how many slots each shard has free. */
  async function free({ repo }: Subject): Promise<unknown[]> {
    const keys = Array.from({ length: SHARDS_MAX }, (_, shard) =>
      bucketKey(repo.namespaceId, CALL.entityId, CALL.resource, shard),
    );
    const found = (await store.place.items?.getMany(keys, { consistent: true })) ?? [];
    return found.flatMap((item) => item?.["s_parallel_fr"] ?? []);
  }

  it("slots go back to the shard that gave, and several shards give a part each", async () => {
    const subject = await opened(8);
    const { limiter, items, target, time } = subject;
    const before = await limiter.acquire({ ...CALL, consume: { parallel: 4 } });
    await splitInto(items, target, 2, time.nowMs);
    expect(await free(subject)).toEqual([2, 2]);
    const other = await store.another(subject);
    const wide = await other.limiter.acquire({ ...CALL, consume: { parallel: 3, rpm: 5 } });
    expect((await free(subject)).map(Number).reduce((sum, each) => sum + each, 0)).toBe(1);
    const fresh = await store.another(subject);
    await refusalOf(fresh.limiter.acquire({ ...CALL, consume: { parallel: 2 } }));
    await before.commit();
    expect(Number((await free(subject))[0])).toBeGreaterThanOrEqual(4);
    await wide.commit();
    expect(await free(subject)).toEqual([6, 2]);
    const all = await store.another(subject);
    const lease = await all.limiter.acquire({ ...CALL, consume: { parallel: 8 } });
    await lease.rollback();
    expect(await free(subject)).toEqual([6, 2]);
  });

  it("a merge waits until the shard that goes holds no slots", async () => {
    const subject = await opened(4);
    const { items, target, time } = subject;
    await splitInto(items, target, 2, time.nowMs);
    const fresh = await store.another(subject);
    const leases = [
      await fresh.limiter.acquire({ ...CALL, consume: { parallel: 2 } }),
      await fresh.limiter.acquire({ ...CALL, consume: { parallel: 2 } }),
    ];
    time.advance(1);
    expect(await halveShards(items, target, time.nowMs)).toBe(false);
    for (const lease of leases) await lease.commit();
    expect(await halveShards(items, target, time.nowMs)).toBe(true);
    expect(await free(subject)).toEqual([4]);
  });

  it.each(store.real ? [1] : [1, 2, 3, 4, 5])(
    "no slot is made or lost while shards are split and merged under leases (seed %i)",
    async (seed) => {
      const subject = await opened(SLOTS);
      const { items, target, time } = subject;
      const random = lehmer(seed);
      const others = [await store.another(subject), await store.another(subject)];
      const limiters = [subject, ...others].map(({ limiter }) => limiter);
      const calls = new Calls(limiters, random);
      let [splits, merges] = [0, 0];
      for (let step = 0; step < (store.real ? 60 : 250); step += 1) {
        time.advance(700);
        const part = random();
        if (part >= 0.2) await calls.act();
        else if (part >= 0.1)
          merges += Number(await halveShards(items, target, time.nowMs, random));
        else if ((await free(subject)).length < 4) {
          splits += Number(await splitShard(items, target, 0, time.nowMs));
        }
        expect(calls.held).toBeLessThanOrEqual(SLOTS);
      }
      await calls.end();
      const left = (await free(subject)).map(Number).reduce((sum, each) => sum + each, 0);
      expect(left).toBe(SLOTS);
      expect(Math.min(splits, merges)).toBeGreaterThan(0);
    },
  );

  it.each(store.real ? [1] : [1, 2, 3])(
    "no slot is made or lost while answers are lost and shards change (seed %i)",
    async (seed) => {
      const faults = new Faults();
      const subject = await opened(SLOTS, { faults, timeoutMs: 1500 });
      const { items, target, time } = subject;
      const random = lehmer(100 + seed);
      const options = { faults, timeoutMs: 1500 };
      const others = [await store.another(subject, options), await store.another(subject, options)];
      const limiters = [subject, ...others].map(({ limiter }) => limiter);
      const calls = new Calls(limiters, random);
      const isHot = isBucketOf("hot", "update", "transact", "get");
      faults.rule = (request) => (isHot(request) && random() < 0.1 ? "lost" : undefined);
      for (let step = 0; step < (store.real ? 40 : 200); step += 1) {
        time.advance(700);
        await calls.act().catch(() => {});
        const splits = random() < 0.1 && (await free(subject)).length < 4;
        if (splits) await splitShard(items, target, 0, time.nowMs);
        if (random() < 0.1) await halveShards(items, target, time.nowMs, random);
        expect(calls.held).toBeLessThanOrEqual(SLOTS);
      }
      faults.rule = () => undefined;
      await calls.end();
      const sum = async () => (await free(subject)).map(Number).reduce((all, one) => all + one, 0);
      await expect.poll(sum, { timeout: 30_000 }).toBe(SLOTS);
    },
  );

  it("a slot whose grant or release was lost comes back, once", async () => {
    const faults = new Faults();
    const subject = await opened(2, { faults, timeoutMs: 1500 });
    const { limiter } = subject;
    faults.next("lost", isBucketOf("hot", "update"));
    await expect(limiter.acquire(ONE)).rejects.toThrow();
    await expect.poll(() => free(subject), { timeout: 10_000 }).toEqual([2]);
    const leases = [await limiter.acquire(ONE), await limiter.acquire(ONE)];
    faults.next("lost", isBucketOf("hot", "update"));
    await leases.pop()?.commit();
    await expect.poll(() => free(subject), { timeout: 10_000 }).toEqual([1]);
    await leases.pop()?.commit();
    expect(await free(subject)).toEqual([2]);
    const item = await store.item(subject, "hot", "api");
    const entries = Object.keys(item ?? {}).filter((name) => name.startsWith("s_parallel_h_"));
    expect(entries).toEqual([]);
  });
});
