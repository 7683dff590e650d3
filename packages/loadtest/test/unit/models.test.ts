/** The closed and the open model against a store whose latencies are known. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defineLoad } from "@zae-limiter/loadtest/define-load.ts";
import type { Load } from "@zae-limiter/loadtest/load.ts";
import { LocalFleet } from "@zae-limiter/loadtest/local-fleet.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import { Results } from "@zae-limiter/loadtest/results.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";
import { slowStore } from "./slow-store.ts";

const SERVICE_MS = 10;
const STALL = { fromMs: 5000, toMs: 6000 };

const CONSUME = { limits: ["rps:1000000/sec"], consume: { rps: 1 } };

const ONE_CALL = defineLoad({
  users: {
    Caller: {
      task: (session) => session.acquire({ entityId: session.userId, resource: "api", ...CONSUME }),
    },
  },
});

const PLAN: Plan = {
  classes: ["Caller"],
  users: 1,
  spawnRate: Number.POSITIVE_INFINITY,
  rate: undefined,
  durationMs: 10_000,
  intervalMs: 1000,
};

/** Runs a plan in virtual time, on a store with these latencies. */
async function measure(
  load: Load,
  plan: Partial<Plan>,
  delayMs: (atMs: number, underWay: number) => number,
): Promise<{ results: Results; limiter: RateLimiter }> {
  const time = new VirtualTime();
  let startMs = Number.POSITIVE_INFINITY;
  const store = slowStore(time.timer, (nowMs, underWay) =>
    nowMs < startMs ? 0 : delayMs(nowMs - startMs, underWay),
  );
  const repository = await overTable(store, {
    clock: time.clock,
    timer: time.timer,
    timeoutMs: 60_000,
  });
  const limiter = new RateLimiter(repository);
  // Limits and buckets are known before the clock starts to count.
  const warm = Array.from({ length: plan.users ?? PLAN.users }, (_, user) =>
    limiter.acquire({ entityId: `Caller-${user}`, resource: "api", ...CONSUME }),
  );
  await Promise.all(warm);
  startMs = time.timer.nowMs();
  const results = new Results();
  const fleet = new LocalFleet({
    load,
    limiter,
    plan: { ...PLAN, ...plan },
    onSlice: (worker, slice) => results.add(worker, slice),
    timer: time.timer,
    // The open model takes turns while it waits for an arrival; the closed one only gives way.
    turn: plan.rate === undefined ? async () => {} : () => time.timer.sleep(1),
    random: seededRandom(1),
  });
  await time.until(fleet.run());
  return { results, limiter };
}

/** A store that answers nothing for a second, and then everything at once. */
function stalled(atMs: number): number {
  const waitMs = atMs >= STALL.fromMs && atMs < STALL.toMs ? STALL.toMs - atMs : 0;
  return waitMs + SERVICE_MS;
}

describe("a store that stops for a second", () => {
  test("a store that stops for a second shows in the open model's percentiles as callers see it", async () => {
    const rate = 100;
    const { results } = await measure(ONE_CALL, { rate, users: 200 }, stalled);
    const truth = Array.from({ length: 1000 }, (_, at) => stalled((at * 1000) / rate)).sort(
      (a, b) => a - b,
    );
    const { latencies, counts } = results.total.total();
    expect(counts).toEqual({ granted: 1000, refused: 0, degraded: 0, failed: 0 });
    // Known: 100 arrivals wait, from 1010 down to 20 ms, so one in a hundred waits 910 or more.
    for (const percent of [50, 90, 95, 99]) {
      const known = truth[Math.ceil((percent / 100) * truth.length) - 1] as number;
      expect(Math.abs(latencies.percentileMs(percent) - known)).toBeLessThanOrEqual(known / 1000);
    }
    expect(latencies.percentileMs(99)).toBeGreaterThan(900);
    expect(latencies.maxMs).toBe(1010);
  });

  test("a store that stops for a second is hidden by the closed model, which asks less then", async () => {
    const { results } = await measure(ONE_CALL, {}, stalled);
    const { latencies, counts } = results.total.total();
    // 9 seconds of 10 ms each, and one call that met the stall.
    expect(counts.granted).toBe(900);
    expect(latencies.maxMs).toBe(1010);
    expect(latencies.percentileMs(99)).toBeLessThan(SERVICE_MS * 1.001);
  });
});

describe("the closed model", () => {
  test("the closed model lets users begin at the spawn rate and wait between tasks", async () => {
    const load = defineLoad({
      users: { Caller: { ...(ONE_CALL.users["Caller"] as object), wait: 990 } as never },
    });
    const plan = { users: 4, spawnRate: 1, durationMs: 6500 };
    const { results } = await measure(load, plan, () => SERVICE_MS);
    // A call per second and user: from 0, 1, 2 and 3 s on.
    expect(results.total.total().counts.granted).toBe(7 + 6 + 5 + 4);
    const users = results.intervals.map((slice) => slice.users);
    expect(users.slice(0, 6)).toEqual([1, 2, 3, 4, 4, 4]);
  });

  test("the closed model divides users among classes by their weights", async () => {
    const { task } = ONE_CALL.users["Caller"] as Load["users"][string];
    const load = defineLoad({ users: { Many: { weight: 3, task }, Few: { weight: 1, task } } });
    const plan = { classes: ["Many", "Few"], users: 8, durationMs: 1000 };
    const { results } = await measure(load, plan, () => 100);
    const { tallies } = results.total;
    expect(tallies.get("Many")?.acquires).toBe(3 * (tallies.get("Few")?.acquires as number));
  });
});
