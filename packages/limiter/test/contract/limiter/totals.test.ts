/**
 * Totals where buckets are items: their cost in requests and, on the engines, in the units that
 * DynamoDB would bill, and what a store that fails leaves of them.
 */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { IMPATIENT, unavailable } from "./breakable.ts";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, milliOf, type Subject } from "./limiter-stores.ts";

const CALL = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 1, tpd: 100 } };
const LIMITS = ["rpd:5000/day", "tpd:9000000/day"];
/** Seconds between calls: tokens accrue, and nothing that is cached gets older than a minute. */
const PAUSES_MS = [0, 10, 1000, 20_000, 59_000, 59_000];

describeItemStores("the cost of totals", (store) => {
  interface Metered extends Subject {
    /** Returns the requests, and the units read and written, of some work. */
    priceOf(work: () => Promise<unknown>): Promise<number[]>;
  }

  async function metered(): Promise<Metered> {
    const calls: StoreCall[] = [];
    const subject = await store.open({
      totals: true,
      configCacheTtlSeconds: 1e9,
      onCall: (call) => void calls.push(call),
    });
    const { repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "key-1", parentId: "team", cascade: true });
    const priceOf = async (work: () => Promise<unknown>) => {
      calls.splice(0);
      await work();
      const sum = (units: (call: StoreCall) => number) =>
        calls.reduce((total, call) => total + units(call), 0);
      return [calls.length, sum(({ readUnits }) => readUnits), sum(({ writeUnits }) => writeUnits)];
    };
    return { ...subject, priceOf };
  }

  /** The price of a warm call with this many writes; only engines report units. */
  const writes = (count: number) => [count, 0, store.real ? count : 0];

  async function expectWarm(
    { limiter, time, priceOf }: Metered,
    count: number,
    pausesMs = PAUSES_MS,
  ): Promise<void> {
    for (let call = 0; call < 2; call += 1) await (await limiter.acquire(CALL)).commit();
    for (const pauseMs of pausesMs) {
      time.advance(pauseMs);
      const granted = limiter.acquire.bind(limiter, CALL);
      expect(await priceOf(granted), `after ${pauseMs} ms`).toEqual(writes(count));
    }
    const lease = await limiter.acquire(CALL);
    lease.settle({ tpd: 120 });
    expect(await priceOf(() => lease.commit())).toEqual(writes(count));
  }

  it("without a total stored, a warm call of two levels is two writes and no read", async () => {
    const subject = await metered();
    await subject.repo.limits.setSystem(LIMITS);
    await expectWarm(subject, 2);
  });

  it("each level that has a total is one write more", async () => {
    const subject = await metered();
    const { limits } = subject.repo;
    await limits.setSystem(LIMITS);
    await limits.setEntity("team", LIMITS, { resource: TOTAL });
    await expectWarm(subject, 3);
    await limits.setEntity("key-1", LIMITS, { resource: TOTAL });
    await expectWarm(subject, 4);
  });

  it("a total alone is one write for each level that has one, and no bucket of the model", async () => {
    const subject = await metered();
    await subject.repo.limits.setEntity("team", LIMITS, { resource: TOTAL });
    // An entity without a bucket shows its parent to no write: its record is read once a minute.
    await expectWarm(subject, 1, [0, 10, 1000, 20_000]);
    await subject.repo.limits.setEntity("key-1", LIMITS, { resource: TOTAL });
    await expectWarm(subject, 2);
    expect(await milliOf(subject, "key-1", "gpt-4", "rpd")).toBeUndefined();
  });

  it("a total in money is a write more where the model has no limits, and no write more where it has", async () => {
    const subject = await metered();
    const { limiter, repo, priceOf } = subject;
    const money = ["usd:$900/month UTC", "rpd:5000/day"];
    await repo.limits.setEntity("key-1", money, { resource: TOTAL });
    const call = { ...CALL, consume: { rpd: 1, usd: 100 }, missingLimits: "ignore" as const };
    const granted = (consume: object) => () =>
      limiter.acquire({ ...call, consume: consume as typeof call.consume });
    for (let round = 0; round < 2; round += 1) {
      await granted({ rpd: 1 })();
      await granted(call.consume)();
    }
    // The team has no bucket: its record is read once a minute.
    for (const pauseMs of PAUSES_MS.slice(0, 4)) {
      subject.time.advance(pauseMs);
      expect(await priceOf(granted(call.consume)), `after ${pauseMs} ms`).toEqual(writes(2));
    }
    expect(await priceOf(granted({ rpd: 1 }))).toEqual(writes(1));
    await repo.limits.setEntity("key-1", ["rpd:5000/day"], { resource: "gpt-4" });
    for (let round = 0; round < 2; round += 1) await granted(call.consume)();
    expect(await priceOf(granted({ rpd: 1 }))).toEqual(writes(2));
    expect(await priceOf(granted(call.consume))).toEqual(writes(2));
  });

  it("a call passes uncounted when its total cannot be written, and leaves the model as it was", async () => {
    const faults = new Faults();
    const subject = await store.open({ ...IMPATIENT, totals: true, faults });
    const { limiter, repo } = subject;
    await repo.limits.setSystem(LIMITS);
    await repo.limits.setEntity("key-1", LIMITS, { resource: TOTAL });
    await limiter.acquire(CALL);
    const isTotal = isBucketOf("key-1", "update");
    faults.rule = (request) =>
      isTotal(request) && request.partition.includes(TOTAL) ? "throttled" : undefined;
    await unavailable(() => limiter.acquire(CALL));
    const lease = await limiter.acquire({ ...CALL, onUnavailable: "allow" });
    expect([lease.degraded, lease.consumed]).toEqual([true, {}]);
    lease.settle({ tpd: 7 });
    await lease.commit();
    faults.rule = () => undefined;
    await repo.close();
    const after = await store.another(subject);
    for (const resource of ["gpt-4", TOTAL]) {
      expect(await milliOf(after, "key-1", resource, "rpd")).toMatchObject({ consumed: 1000 });
    }
  });

  it("a spent total refuses without a request, and the model keeps its tokens", async () => {
    const subject = await metered();
    const { limiter, repo, priceOf } = subject;
    await repo.limits.setSystem(LIMITS);
    await repo.limits.setEntity("key-1", ["rpd:3/day"], { resource: TOTAL });
    for (let call = 0; call < 3; call += 1) await limiter.acquire(CALL);
    await refusalOf(limiter.acquire(CALL));
    expect(await priceOf(() => refusalOf(limiter.acquire(CALL)))).toEqual([0, 0, 0]);
    const other = { ...CALL, resource: "claude" };
    await refusalOf(limiter.acquire(other));
    expect(await milliOf(subject, "key-1", "gpt-4", "rpd")).toMatchObject({ consumed: 3000 });
    expect((await milliOf(subject, "key-1", "claude", "rpd"))?.consumed ?? 0).toBe(0);
  });
});
