/**
 * How many calls an acquire needs when many clients share one bucket. A client that guesses wrong
 * whether the bucket is full needs a second call; requests come at random, as they do.
 */

import { describe, expect, test } from "vitest";
import { RateLimiter } from "../../../src/index.ts";
import { repositoryOver } from "../../../src/repository/repository.ts";
import { MemoryItemStore } from "../../../src/storage/memory/item-store.ts";

const CLIENTS = 16;
const PER_SECOND = 50;
const CAPACITY = 100;
const ARRIVALS = 4000;
/** Requests before counting: the bucket starts full, and the clients know nothing yet. */
const WARM_UP = 1000;
const SEED = 20_261_115;

/** Mulberry32: small, and the same everywhere. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Counted {
  readonly granted: number;
  readonly calls: number;
  readonly elapsedMs: number;
}

/** Poisson arrivals of one token each, at `utilisation` times the rate, spread over all clients. */
async function run(utilisation: number): Promise<Counted> {
  const random = randomOf(SEED);
  let now = 1_800_000_000_000;
  let calls = 0;
  const clock = () => Math.floor(now);
  const store = new MemoryItemStore({
    clock,
    onCall: () => {
      calls += 1;
    },
  });
  const options = { clock, random, configCacheTtlSeconds: 1_000_000 };
  const limiters = await Promise.all(
    Array.from(
      { length: CLIENTS },
      async () => new RateLimiter(await repositoryOver(store, options)),
    ),
  );
  await limiters[0]?.repository.limits.setSystem([`rps:${PER_SECOND}/sec:${CAPACITY}`]);
  for (const limiter of limiters) await limiter.status({ entityId: "hot", resource: "api" });
  let granted = 0;
  let countedFrom = now;
  for (let arrival = 0; arrival < WARM_UP + ARRIVALS; arrival += 1) {
    if (arrival === WARM_UP) {
      calls = 0;
      granted = 0;
      countedFrom = now;
    }
    now += (-Math.log(1 - random()) * 1000) / (utilisation * PER_SECOND);
    const limiter = limiters[Math.floor(random() * CLIENTS)] as RateLimiter;
    const decision = await limiter.tryAcquire({
      entityId: "hot",
      resource: "api",
      consume: { rps: 1 },
    });
    if (decision.granted) granted += 1;
  }
  return { granted, calls, elapsedMs: now - countedFrom };
}

describe(`calls per acquire, 16 clients on one bucket, seed ${SEED}`, () => {
  test.each([
    [0.05, 1.1],
    [0.3, 1.3],
    [0.6, 1.5],
    [0.9, 1.2],
  ])("at a utilisation of %f at most %f", async (utilisation, most) => {
    const { granted, calls } = await run(utilisation);
    const perAcquire = calls / ARRIVALS;
    console.info(`utilisation ${utilisation}: ${perAcquire.toFixed(3)} calls per acquire`);
    expect(granted).toBe(ARRIVALS);
    expect(perAcquire).toBeLessThanOrEqual(most);
  });

  test("saturated, three times the rate: at most 1.05 per attempt, and all that is allowed", async () => {
    const { granted, calls, elapsedMs } = await run(3);
    const perAttempt = calls / ARRIVALS;
    const allowed = (PER_SECOND * elapsedMs) / 1000;
    console.info(`saturated: ${perAttempt.toFixed(3)} calls per attempt, ${granted} granted`);
    expect(perAttempt).toBeLessThanOrEqual(1.05);
    expect(granted).toBeGreaterThanOrEqual(Math.floor(allowed * 0.97));
    expect(granted).toBeLessThanOrEqual(allowed + 1);
  });
});
