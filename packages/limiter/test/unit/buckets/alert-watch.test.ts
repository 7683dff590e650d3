import { setImmediate as tick } from "node:timers/promises";
import { type LimiterEvent, RateLimiter } from "@zae-limiter/limiter/index.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const NOW = Date.parse("2026-11-19T08:00:00Z");
const CALL = { entityId: "team", resource: "api" };
const LIMIT = "req:1000/day UTC alerts 50,80,100";

/** Opens processes on one store whose clock never moves; one alone has such a timer, too. */
async function processes(count: number, seed = 1) {
  const items = new MemoryItemStore();
  const calls: string[] = [];
  const events: LimiterEvent[] = [];
  const limiters: RateLimiter[] = [];
  for (let at = 0; at < count; at += 1) {
    const time = new VirtualTime(NOW);
    const repository = await overTable(counted(items), {
      clock: time.clock,
      ...(count === 1 ? { timer: time.timer } : {}),
      onCall: ({ operation }) => calls.push(operation),
      random: seededRandom(seed + at),
      namespace: "default",
    });
    limiters.push(new RateLimiter(repository, { events: (event) => events.push(event) }));
  }
  const [first] = limiters as [RateLimiter];
  await first.repository.limits.setResource("api", [LIMIT]);
  const target = { namespaceId: first.repository.namespaceId, ...CALL };
  const percents = async () =>
    (await first.repository.alerts.list({ entityId: "team" })).map(({ percent }) => percent);
  return { items, calls, events, limiters, first, target, percents };
}

test.each([1, 2, 3, 4])(
  "8 processes with 4 shards write exactly three alerts: seed %i",
  async (seed) => {
    const { items, events, limiters, first, target, percents } = await processes(8, seed);
    await first.acquire({ ...CALL, consume: { req: 1 } });
    await splitInto(items, target, 4, NOW);
    const random = seededRandom(seed);
    let used = 1;
    while (used < 1000) {
      const calls = limiters.map(async (limiter) => {
        const req = Math.ceil(random() * 20);
        const decision = await limiter.tryAcquire({ ...CALL, consume: { req } });
        if (!decision.granted) return 0;
        const more = Math.floor(random() * 3);
        decision.lease.adjust({ req: more });
        await decision.lease.commit();
        return req + more;
      });
      const taken = (await Promise.all(calls)).reduce((sum, amount) => sum + amount, 0);
      used += taken;
      if (taken > 0) continue;
      const decision = await first.tryAcquire({ ...CALL, consume: { req: 1 } });
      if (!decision.granted) break;
      used += 1;
    }
    expect(used).toBeGreaterThanOrEqual(1000);
    for (const limiter of limiters) await limiter.repository.alerts.list();
    expect(await percents()).toEqual([100, 80, 50]);
    const told = events.flatMap((event) => (event.type === "alert" ? [event.alert.percent] : []));
    expect(told.sort((one, other) => one - other)).toEqual([50, 80, 100]);
  },
);

test("a limit without alerts has no more writes, and one with alerts one for each", async () => {
  const { calls, first } = await processes(1);
  const count = async (entityId: string, limit: string, times: number) => {
    const request = { ...CALL, entityId, limits: [limit], consume: { req: 1 } };
    await first.acquire(request);
    await first.repository.alerts.list();
    const before = calls.length;
    for (let at = 0; at < times; at += 1) await (await first.acquire(request)).commit();
    await tick();
    return calls.length - before;
  };
  expect(await count("plain", "req:1000/day UTC", 20)).toBe(20);
  expect(await count("far", "req:1000/day UTC alerts 50", 20)).toBe(20);
  expect(await count("near", "req:20/day UTC alerts 50,90", 19)).toBe(19 + 2);
});

test("shards are summed once a second, and only when one has used its share", async () => {
  const { items, calls, first, target, percents } = await processes(1);
  await first.acquire({ ...CALL, consume: { req: 1 } });
  await splitInto(items, target, 4, NOW);
  for (let at = 0; at < 100; at += 1) await first.acquire({ ...CALL, consume: { req: 1 } });
  const before = calls.length;
  for (let at = 0; at < 100; at += 1) await first.acquire({ ...CALL, consume: { req: 1 } });
  await tick();
  expect(calls.length - before).toBeLessThan(104);
  for (let at = 0; at < 400; at += 1) await first.acquire({ ...CALL, consume: { req: 1 } });
  expect(await percents()).toEqual([50]);
});

test("an alert that could not be written is written by the next call that sees the use", async () => {
  const { items, first, percents } = await processes(1);
  const warnings: string[] = [];
  const limiter = new RateLimiter(first.repository, {
    onWarning: (warning) => warnings.push(warning.kind),
  });
  const put = items.put.bind(items);
  items.put = async (item, ...more) => {
    if (item.PK.includes("/ALERT#")) throw new Error("no");
    return put(item, ...more);
  };
  await limiter.acquire({ ...CALL, consume: { req: 500 } });
  expect(await percents()).toEqual([]);
  items.put = put;
  await limiter.acquire({ ...CALL, consume: { req: 1 } });
  expect(await percents()).toEqual([50]);
  expect(warnings).toEqual(["alert_failed"]);
});
