/** The search for the best number of users, on stores whose best number is known. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defineLoad } from "@zae-limiter/loadtest/define-load.ts";
import { figuresOf } from "@zae-limiter/loadtest/figures.ts";
import { LocalFleet } from "@zae-limiter/loadtest/local-fleet.ts";
import { Results } from "@zae-limiter/loadtest/results.ts";
import { type TuneStep, tune } from "@zae-limiter/loadtest/tune.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";
import { slowStore } from "./slow-store.ts";

/**
 * The universal scalability law: n users get n / latency(n) answers per millisecond, which is the
 * most at the square root of (1 - CONTENTION) / COHERENCE.
 */
const CONTENTION = 0.02;
const COHERENCE = 0.005;
const SERVICE_MS = 10;
const BEST = Math.sqrt((1 - CONTENTION) / COHERENCE);

function latencyMs(users: number): number {
  return SERVICE_MS * (1 + CONTENTION * (users - 1) + COHERENCE * users * (users - 1));
}

/** The law itself, without a run. */
async function computed(users: number): Promise<TuneStep> {
  const ms = latencyMs(users);
  return { users, perSecond: (1000 * users) / ms, p50Ms: ms, p99Ms: ms, errors: 0 };
}

/** Whether the number is within ten percent of the known one. */
function expectNear(users: number | undefined, known: number): void {
  expect(users).toBeGreaterThanOrEqual(Math.floor(0.9 * known));
  expect(users).toBeLessThanOrEqual(Math.ceil(1.1 * known));
}

describe("tune", () => {
  test("tune finds the best number of a synthetic store within ten percent, by real runs", async () => {
    const time = new VirtualTime();
    let isMeasuring = false;
    const store = slowStore(time.timer, (_, users) => (isMeasuring ? latencyMs(users) : 0));
    const options = { clock: time.clock, timer: time.timer, timeoutMs: 60_000 };
    const limiter = new RateLimiter(await overTable(store, options));
    const limits = ["n:1000000/sec"];
    const load = defineLoad({
      users: {
        Caller: {
          task: (session) =>
            session.acquire({
              entityId: session.userId,
              resource: "api",
              limits,
              consume: { n: 1 },
            }),
        },
      },
    });
    const warm = Array.from({ length: 32 }, (_, user) =>
      limiter.acquire({ entityId: `Caller-${user}`, resource: "api", limits, consume: { n: 1 } }),
    );
    await Promise.all(warm);
    isMeasuring = true;
    const measure = async (users: number): Promise<TuneStep> => {
      const results = new Results();
      const plan = {
        classes: ["Caller"],
        users,
        spawnRate: Number.POSITIVE_INFINITY,
        rate: undefined,
      };
      const fleet = new LocalFleet({
        load,
        limiter,
        plan: { ...plan, durationMs: 100, intervalMs: 100 },
        onSlice: results.add.bind(results),
        timer: time.timer,
        turn: async () => {},
        random: seededRandom(1),
      });
      const startedMs = time.timer.nowMs();
      await time.until(fleet.run());
      const figures = figuresOf(results.total.total(), time.timer.nowMs() - startedMs);
      const { perSecond, p50Ms, p99Ms, errors } = figures;
      return { users, perSecond, p50Ms, p99Ms, errors };
    };
    const { best, curve } = await tune({ usersMax: 32, p99MsMax: 10_000, measure });
    expectNear(best?.users, BEST);
    expect(curve.length).toBeLessThan(20);
  });

  test("tune finds the largest number that keeps within the latency bound", async () => {
    // Seven users take 10 * (1 + 0.12 + 0.21) = 13.3 ms.
    const { best } = await tune({ usersMax: 1000, p99MsMax: 13.4, measure: computed });
    expect(best?.users).toBe(7);
  });

  test("tune finds the best number by the law alone, for any maximum above it", async () => {
    for (const usersMax of [20, 32, 100, 1000]) {
      const { best } = await tune({ usersMax, p99MsMax: 10_000, measure: computed });
      expectNear(best?.users, BEST);
    }
    const { best } = await tune({ usersMax: 9, p99MsMax: 10_000, measure: computed });
    expect(best?.users).toBe(9);
  });

  test("tune says so when one user alone is too slow", async () => {
    const { best, curve } = await tune({ usersMax: 64, p99MsMax: 1, measure: computed });
    expect(best).toBeUndefined();
    expect(curve.map(({ users }) => users)).toEqual([1, 2]);
  });
});
