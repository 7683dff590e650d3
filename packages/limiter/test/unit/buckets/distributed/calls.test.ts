/**
 * Calls per acquire with many clients on one bucket, counted in virtual time.
 *
 * Arrivals are a Poisson process, each at a random client, for one token. At a utilisation u the
 * bucket is not full for about u of them. A client that guesses by what was right more often is
 * wrong for the lesser of u and 1 - u, and each wrong guess costs one more call.
 */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { describe, expect, test } from "vitest";

const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const CLIENTS = 16;
const ARRIVALS = casesOf(15_000);
const PER_SECOND = 50;
const CAPACITY = 100;

interface Counted {
  readonly granted: number;
  readonly refused: number;
  readonly calls: number;
}

/** Arrivals at `load` times the rate of the bucket. */
async function count(load: number, ttlMultipliers: readonly number[] = [7]): Promise<Counted> {
  const random = lehmer((SEED % 2_147_483_646) + 1);
  let nowMs = 1_800_000_000_000;
  let calls = 0;
  const clock = () => Math.floor(nowMs);
  const store = new MemoryItemStore({
    clock,
    onCall: () => {
      calls += 1;
    },
  });
  const timer: Timer = {
    nowMs: clock,
    // Background work is not part of the result.
    sleep: async (_ms, _signal, background) =>
      background === true ? new Promise(() => {}) : undefined,
  };
  const clients = Array.from({ length: CLIENTS }, (_, at) => {
    const ttlMultiplier = ttlMultipliers[at % ttlMultipliers.length] as number;
    return new DistributedBucketStore(
      { store, namespaceId: "ns", clock, random },
      { ...DYNAMODB_TRAITS, ttlMultiplier, timeoutMs: 2000, timer, onWarning: () => undefined },
    );
  });
  const limit = Limit.perSecond("rps", PER_SECOND, { burst: CAPACITY });
  const config: BucketConfig = { limits: [limit], source: "system", version: 1 };
  const leg = {
    entityId: "hot",
    resource: "api",
    config,
    amountsMilli: [1000],
    link: UNLINKED,
    linkIsFresh: true,
  };
  let granted = 0;
  for (let arrival = 0; arrival < ARRIVALS; arrival += 1) {
    nowMs += (-Math.log(1 - random()) * 1000) / (PER_SECOND * load);
    const client = clients[Math.floor(random() * CLIENTS)] as DistributedBucketStore;
    const { outcome } = await client.consume([leg]);
    if (outcome === "granted") granted += 1;
  }
  return { granted, refused: ARRIVALS - granted, calls };
}

describe("calls per acquire, 16 clients on one bucket", () => {
  test.each([
    [0.05, 1.1],
    [0.3, 1.3],
    [0.6, 1.5],
    [0.9, 1.2],
  ])(
    `sixteen clients at a utilisation of %d make at most %d calls per acquire (seed ${SEED})`,
    async (utilisation, most) => {
      const { granted, calls } = await count(utilisation);
      console.info(`utilisation ${utilisation}: ${(calls / granted).toFixed(3)} calls per acquire`);
      expect(calls / granted).toBeLessThanOrEqual(most);
    },
  );

  test(`clients that keep buckets for different times cost each other no calls (seed ${SEED})`, async () => {
    const [same, different] = [await count(0.05), await count(0.05, [7, 0])];
    expect(different.calls).toBe(same.calls);
  });

  test(`sixteen saturated clients make at most 1.05 calls per attempt (seed ${SEED})`, async () => {
    const { granted, refused, calls } = await count(3);
    const perAttempt = calls / (granted + refused);
    console.info(
      `saturated: ${perAttempt.toFixed(3)} calls per attempt, ${granted} granted, ${refused} refused`,
    );
    expect(refused).toBeGreaterThan(ARRIVALS / 2);
    expect(perAttempt).toBeLessThanOrEqual(1.05);
  });
});
