/** A queue holds up no call that need not wait, and fails as a whole with the store. */

import {
  RateLimiter,
  type RateLimiterOptions,
  RateLimiterUnavailable,
  Repository,
} from "@zae-limiter/limiter/index.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";

const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const START_MS = 1_800_000_000_000;

async function onTable(limits: readonly string[], options: RateLimiterOptions = {}) {
  const time = new VirtualTime(START_MS);
  const table = new SimulatedTable({ time, latency: { medianMs: 5, spread: 0, slowShare: 0 } });
  const limiter = await time.until(table.process().open({ timeoutMs: 500, ...options }));
  await time.until(limiter.repository.limits.setSystem(limits));
  await time.until(limiter.acquire({ ...BUCKET, consume: {} }));
  const took = async <T>(work: Promise<T>) => {
    const startMs = time.nowMs;
    return { result: await time.until(work), ms: time.nowMs - startMs };
  };
  return { time, table, limiter, took };
}

async function inMemory() {
  const time = new VirtualTime(START_MS);
  const repo = await Repository.open("memory:", { clock: time.clock, timer: time.timer });
  return { time, repo, limiter: new RateLimiter(repo) };
}

describe("where there is enough", () => {
  test("hundreds of calls go at the same time where there is enough", async () => {
    const { table, limiter, took } = await onTable(["rpm:100000"]);
    const request = { ...BUCKET, consume: { rpm: 1 }, maxWaitSeconds: 5 };
    const before = table.usage.calls;
    const all = Array.from({ length: 500 }, () => limiter.tryAcquire(request));
    const { result, ms } = await took(Promise.all(all));
    expect(result.every(({ granted }) => granted)).toBe(true);
    expect(ms).toBeLessThan(50);
    // Takes that overtake each other are repeated once.
    expect(table.usage.calls - before).toBeLessThanOrEqual(1000);
  });

  test("as many calls go as there is enough for, and the others make no call", async () => {
    const { table, limiter, took } = await onTable(["rpm:100/day"]);
    const request = { ...BUCKET, consume: { rpm: 1 }, maxWaitSeconds: 5 };
    const before = table.usage.calls;
    const all = Array.from({ length: 2000 }, () => limiter.tryAcquire(request));
    const { result } = await took(Promise.all(all));
    expect(result.filter(({ granted }) => granted)).toHaveLength(100);
    expect(table.usage.calls - before).toBeLessThan(250);
  });

  test("a call for another limit passes, also when both come at once", async () => {
    const { time, limiter } = await inMemory();
    const patient = { ...BUCKET, limits: ["rpm:1", "tpm:100"], maxWaitSeconds: 90 };
    await limiter.acquire({ ...patient, consume: { rpm: 1 } });
    const waiting = limiter.tryAcquire({ ...patient, consume: { rpm: 1 } });
    const other = limiter.tryAcquire({ ...patient, consume: { tpm: 1 } });
    expect((await other).granted).toBe(true);
    await time.pass(60_001);
    expect((await waiting).granted).toBe(true);
    await limiter.close();
  });
});

/** One waits for an empty bucket, what it knows is old, and the store is gone. */
async function longWaitThenOutage() {
  const world = await onTable(["rpm:10/day"]);
  const { time, table, limiter } = world;
  await time.until(limiter.acquire({ ...BUCKET, consume: { rpm: 10 } }));
  const patient = { ...BUCKET, consume: { rpm: 1 }, maxWaitSeconds: 90_000 };
  const waiting = limiter.acquire(patient).catch((error: unknown) => error);
  await time.pass(5000);
  table.faults = { lostRequests: 1 };
  return { ...world, waiting };
}

describe("when the store cannot answer", () => {
  test("all waiters are decided at once, each by its own mode", async () => {
    const { table, limiter, took } = await onTable(["rpm:10"]);
    table.faults = { lostRequests: 1 };
    const request = { ...BUCKET, consume: { rpm: 1 }, maxWaitSeconds: 30 };
    const all = Array.from({ length: 50 }, (_, at) =>
      limiter
        .acquire({ ...request, onUnavailable: at % 2 === 0 ? "allow" : "block" })
        .then(({ degraded }) => degraded)
        .catch((error: unknown) => error instanceof RateLimiterUnavailable && "unavailable"),
    );
    const { result, ms } = await took(Promise.all(all));
    expect(new Set(result.filter((_, at) => at % 2 === 0))).toEqual(new Set([true]));
    expect(new Set(result.filter((_, at) => at % 2 === 1))).toEqual(new Set(["unavailable"]));
    expect(ms).toBeLessThan(600);
  });

  test("calls that do not wait are decided at once in an outage, and none by a stale state", async () => {
    const { limiter, took, waiting } = await longWaitThenOutage();
    const request = { ...BUCKET, consume: { rpm: 1 }, onUnavailable: "allow" } as const;
    const { result, ms } = await took(limiter.acquire(request));
    expect(result.degraded).toBe(true);
    expect(ms).toBeLessThan(600);
    const waiter = await took(waiting);
    expect(waiter.result).toBeInstanceOf(RateLimiterUnavailable);
    // The waiter asks when the call comes, and both have the same time for it.
    expect(waiter.ms).toBeLessThan(1);
  });

  test("a signal ends a call that waits for what others hear", async () => {
    const { time, limiter, took, waiting } = await longWaitThenOutage();
    const stop = new AbortController();
    const call = limiter
      .tryAcquire({ ...BUCKET, consume: { rpm: 1 }, signal: stop.signal })
      .catch((error: unknown) => error);
    time.after(100, () => stop.abort(new Error("enough")));
    const { result, ms } = await took(call);
    expect([result, ms]).toEqual([new Error("enough"), 100]);
    await time.until(waiting);
  });
});

test("a refund to a parent reaches all its waiters", async () => {
  const { time, repo, limiter } = await inMemory();
  await repo.limits.setSystem(["rpd:10/day"]);
  await repo.entities.create({ id: "team" });
  for (const id of ["one", "two"]) {
    await repo.entities.create({ id, parentId: "team", cascade: true });
  }
  const lease = await limiter.acquire({ ...BUCKET, entityId: "one", consume: { rpd: 10 } });
  const request = { ...BUCKET, entityId: "two", consume: { rpd: 5 }, maxWaitSeconds: 90_000 };
  const waiting = limiter.tryAcquire(request);
  await time.settle();
  await lease.rollback();
  expect((await waiting).granted).toBe(true);
  expect(time.nowMs).toBe(START_MS);
  await limiter.close();
});

test("closing the repository ends what waits, too", async () => {
  const { time, repo, limiter } = await inMemory();
  const request = { ...BUCKET, limits: ["rpd:1/day"], consume: { rpd: 1 } };
  await limiter.acquire(request);
  const waiting = limiter.acquire({ ...request, maxWaitSeconds: 90_000 });
  await time.settle();
  await repo.close();
  await expect(waiting).rejects.toThrow("closed while a call waited");
  expect(time.nowMs).toBe(START_MS);
});

test("a lease that consumes more does not overtake waiters", async () => {
  const { time, limiter } = await inMemory();
  const bucket = { ...BUCKET, limits: ["rps:20/sec"] };
  const lease = await limiter.acquire({ ...bucket, consume: { rps: 20 } });
  const waiting = limiter.tryAcquire({ ...bucket, consume: { rps: 20 }, maxWaitSeconds: 3 });
  await time.settle();
  for (let turn = 0; turn < 25; turn += 1) {
    void lease.consume({ rps: 1 }).catch(() => undefined);
    await time.pass(50);
  }
  expect((await waiting).granted).toBe(true);
  await limiter.close();
});

test("a queue takes ten thousand waiters, and refuses the next at once", async () => {
  const { time, repo, limiter } = await inMemory();
  await repo.limits.setSystem(["rpm:60"]);
  await limiter.acquire({ ...BUCKET, consume: { rpm: 60 } });
  const ending = new AbortController();
  const request = { ...BUCKET, consume: { rpm: 1 }, maxWaitSeconds: 1e6 };
  const waiter = () => limiter.tryAcquire({ ...request, signal: ending.signal });
  const waiters = Array.from({ length: 10_000 }, waiter);
  const ends = Promise.allSettled(waiters);
  const other = { ...request, entityId: "key-2" };
  // Another queue is over the bound as well; where nothing is scarce, nothing has to wait.
  expect(await limiter.tryAcquire(other)).toMatchObject({ granted: true });
  expect(await limiter.tryAcquire(request)).toMatchObject({
    granted: false,
    retryAfterSeconds: 10_001.001,
  });
  ending.abort();
  await ends;
  expect(await time.until(limiter.tryAcquire(request))).toMatchObject({ granted: true });
});
