/**
 * Many clients on one bucket of local DynamoDB: nothing is granted beyond the limit. How close to
 * the limit they come depends on the machine: `npm run soak:contention` measures that.
 */

import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ContendedTable } from "./contention/contended-table.ts";
import { allowed, type Hammered, hammer } from "./contention/hammer.ts";

const CAPACITY = 100;
const PER_SECOND = 50;
const LIMIT = `rps:${PER_SECOND}/sec:${CAPACITY}`;
const DURATION_MS = 1500;

const withinTheLimit = (hammered: Hammered) =>
  expect(hammered.granted).toBeLessThanOrEqual(allowed(CAPACITY, PER_SECOND, hammered));

describeEngines("contention", (engine: RunningEngine) => {
  let table: ContendedTable;

  beforeAll(async () => {
    table = await ContendedTable.create(engine, LIMIT);
  });

  afterAll(() => table[Symbol.asyncDispose]());

  test("32 clients on one bucket are granted no more than its limit", async () => {
    const limiters = await table.clients(32);
    withinTheLimit(await hammer(limiters, () => "hot", DURATION_MS));
  });

  test("32 children of one parent are granted no more than the parent's limit", async () => {
    const children = Array.from({ length: 32 }, (_, at) => `child-${at}`);
    await table.family("parent", LIMIT, children);
    const limiters = await table.clients(32);
    const hammered = await hammer(limiters, (client) => `child-${client}`, DURATION_MS);
    const [parent] = await table.root.buckets.list("parent");
    expect(parent?.totalConsumed).toBe(hammered.granted);
    withinTheLimit(hammered);
  });

  test("a burst of new children under an idle parent, 16 at a time, is granted as a whole", async () => {
    const count = engine.name === "dynoxide" ? casesOf(300) : 60;
    const ids = Array.from({ length: count }, (_, at) => `new-${at}`);
    await table.family("idle", "rps:1000/sec", ids);
    const limiters = await table.clients(16);
    const granted = await Promise.all(
      limiters.map(async (limiter) => {
        let taken = 0;
        for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
          const request = { entityId: id, resource: "api", consume: { rps: 1 } };
          if ((await limiter.tryAcquire(request)).granted) taken += 1;
        }
        return taken;
      }),
    );
    expect(granted.reduce((sum, taken) => sum + taken, 0)).toBe(count);
  });

  test("16 clients that race to create one bucket are granted exactly its tokens", async () => {
    const limits = ["slow:10/day"];
    const limiters = await table.clients(16);
    const decisions = await Promise.all(
      limiters.map((limiter) =>
        limiter.tryAcquire({ entityId: "cold", resource: "api", limits, consume: { slow: 1 } }),
      ),
    );
    expect(decisions.filter(({ granted }) => granted)).toHaveLength(10);
    const [state] = await table.root.buckets.list("cold");
    expect(state?.totalConsumed).toBe(10);
  });
});
