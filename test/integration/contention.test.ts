/**
 * Many clients on one bucket of a real engine. These tests take wall-clock time by nature. That
 * nothing is admitted beyond the limit is asked of every engine; that nearly all of it is admitted
 * only of dynoxide, because DynamoDB Local is too slow to be fair to anybody.
 */

import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { RateLimiter, Repository } from "../../src/index.ts";
import { createTable } from "../../src/storage/dynamodb/create-table.ts";
import type { RunningEngine } from "../engines/engine.ts";
import { describeEngines } from "../engines/engines.ts";
import { delayingProxy } from "../support/delaying-proxy.ts";
import { itUnless } from "../support/unless.ts";
import { allowed, type Hammered, hammer } from "./contention/hammer.ts";

const CAPACITY = 100;
const PER_SECOND = 50;
/** How much of the limit is taken depends on the machine: `npm run soak:contention` insists. */
const MARKS_COUNT = process.env["ZAEL_SOAK"] !== undefined;
const DURATION_MS = MARKS_COUNT ? 5000 : 1500;
const SHARE_MIN = 0.97;
/** On a quiet machine 32 clients keep a core busy all the time. */
const CORE_SHARE_MIN = 0.95;

/** The engines share the machine with everybody else, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

describeEngines("wall-clock contention", (engine: RunningEngine) => {
  const table = `contention-${crypto.randomUUID()}`;
  const open: RateLimiter[] = [];
  let root: Repository;

  beforeAll(async () => {
    await createTable({ table, endpoint: engine.endpoint, stream: false });
    root = await Repository.createTable(table, { endpoint: engine.endpoint });
    await root.limits.setSystem([`rps:${PER_SECOND}/sec:${CAPACITY}`]);
  });

  afterAll(async () => {
    await Promise.all(open.map((limiter) => limiter.close()));
    await root.close();
  });

  /** Clients that share nothing but the table. */
  async function clients(count: number, endpoint: string): Promise<RateLimiter[]> {
    const limiters = await Promise.all(
      Array.from({ length: count }, async () => {
        const repo = await Repository.connect(table, { endpoint, timeoutMs: TIMEOUT_MS });
        const limiter = new RateLimiter(repo);
        // Connected and with the limits at hand: the time that takes is not what is measured.
        await limiter.status({ entityId: "warm", resource: "api" });
        return limiter;
      }),
    );
    open.push(...limiters);
    return limiters;
  }

  function judge(context: TestContext, what: string, hammered: Hammered): void {
    const most = allowed(CAPACITY, PER_SECOND, hammered);
    const share = hammered.granted / most;
    const percent = (share * 100).toFixed(1);
    console.info(
      `${engine.name}, ${what}: ${hammered.granted} of ${Math.floor(most)}, ${percent} %`,
    );
    expect(hammered.granted).toBeLessThanOrEqual(most);
    if (engine.name !== "dynoxide") return;
    // Clients that are not allowed to run cannot take anything: then this is not their failure.
    const core = `${Math.round(hammered.coreShare * 100)} % of a core`;
    if (share < SHARE_MIN && (hammered.coreShare < CORE_SHARE_MIN || !MARKS_COUNT)) {
      context.skip(`the mark was missed: the clients had ${core} and took ${percent} %`);
    }
    expect(share, `with ${core}`).toBeGreaterThanOrEqual(SHARE_MIN);
  }

  test("32 clients on one bucket", async (context) => {
    const limiters = await clients(32, engine.endpoint);
    judge(context, "one bucket", await hammer(limiters, () => "hot", DURATION_MS));
  });

  test("32 children of one parent: the parent is never charged beyond its limit", async (context) => {
    await root.entities.create({ id: "parent" });
    await root.limits.setEntity("parent", [`rps:${PER_SECOND}/sec:${CAPACITY}`]);
    const children = Array.from({ length: 32 }, (_, at) => `child-${at}`);
    for (const id of children) {
      await root.entities.create({ id, parentId: "parent", cascade: true });
    }
    const limiters = await clients(32, engine.endpoint);
    const hammered = await hammer(limiters, (client) => `child-${client}`, DURATION_MS);
    const [parent] = await root.buckets.list("parent");
    expect(parent?.totalConsumed).toBe(hammered.granted);
    judge(context, "through a parent", hammered);
  });

  test("a burst of new children under an idle parent, 16 at a time: none is refused", async () => {
    const count = engine.name === "dynoxide" ? 300 : 60;
    await root.entities.create({ id: "idle" });
    await root.limits.setEntity("idle", ["rps:1000/sec"]);
    const ids = Array.from({ length: count }, (_, at) => `new-${at}`);
    for (const id of ids) await root.entities.create({ id, parentId: "idle", cascade: true });
    const limiters = await clients(16, engine.endpoint);
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

  test("16 cold clients race to create one bucket: exact", async () => {
    const limits = ["slow:10/day"];
    const limiters = await clients(16, engine.endpoint);
    const decisions = await Promise.all(
      limiters.map((limiter) =>
        limiter.tryAcquire({ entityId: "cold", resource: "api", limits, consume: { slow: 1 } }),
      ),
    );
    expect(decisions.filter(({ granted }) => granted)).toHaveLength(10);
    const [state] = await root.buckets.list("cold");
    expect(state?.totalConsumed).toBe(10);
  });

  itUnless(engine.name !== "dynoxide" && "DynamoDB Local is too slow to be fair")(
    "16 clients behind 5 ms of network on one bucket",
    async (context) => {
      const proxy = await delayingProxy(engine.endpoint, 2.5);
      try {
        const limiters = await clients(16, proxy.endpoint);
        judge(context, "5 ms away", await hammer(limiters, () => "distant", DURATION_MS));
      } finally {
        await Promise.all(open.splice(-16).map((limiter) => limiter.close()));
        await proxy.close();
      }
    },
  );
});
