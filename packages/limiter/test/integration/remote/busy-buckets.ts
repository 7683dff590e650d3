/** Steps on buckets that other calls change all the time. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { expect, it } from "vitest";

const BUSY = 8;
const NEW = 20;
/** The time of a call whose caller sets none. */
const TIMEOUT_MS = 10_000;
const LONG = { timeout: 600_000 };
const CALL = { resource: "api", consume: { n: 1 } };

const HOT = { entityId: "hot", resource: "api" };

/** `addressOf` returns a place that no other test uses, without a namespace. */
export function busyBucketTests(addressOf: () => string): void {
  async function open(namespace: string) {
    const options = { timeoutMs: TIMEOUT_MS, configCacheTtlSeconds: 1e6 };
    const repo = await Repository.open(`${addressOf()}&namespace=${namespace}`, options);
    return { repo, limiter: new RateLimiter(repo) };
  }

  it("new children of a busy parent are decided, however busy it is", LONG, async () => {
    const clients = [await open("busy"), await open("busy")];
    const [{ repo, limiter }] = clients as [(typeof clients)[number]];
    await repo.limits.setSystem(["n:1/day:1000000"]);
    await repo.entities.create({ id: "org" });
    const child = (id: string) => repo.entities.create({ id, parentId: "org", cascade: true });
    const busy = Array.from({ length: BUSY }, (_, at) => `busy-${at}`);
    for (const id of busy) await child(id);
    let [granted, isOver] = [0, false];
    const load = busy.map(async (entityId, at) => {
      const { limiter: mine } = clients[at % clients.length] as (typeof clients)[number];
      while (!isOver) {
        await mine.acquire({ ...CALL, entityId });
        granted += 1;
      }
    });
    try {
      await expect.poll(() => granted, { timeout: 60_000 }).toBeGreaterThan(200);
      for (let at = 0; at < NEW; at += 1) {
        await child(`new-${at}`);
        await limiter.acquire({ ...CALL, entityId: `new-${at}` });
        granted += 1;
      }
    } finally {
      isOver = true;
      await Promise.all(load);
    }
    const [org] = await repo.buckets.list("org");
    expect(org?.totalConsumed).toBe(granted);
    for (const each of clients) await each.repo.close();
  });

  it("a busy bucket is topped up, reset, counted, and gives slots", LONG, async () => {
    const clients = [await open("hot"), await open("hot")];
    const [{ repo, limiter }] = clients as [(typeof clients)[number]];
    await repo.limits.setSystem(["n:1/day:100000000", "held:5 concurrent"]);
    let [granted, isOver] = [0, false];
    const load = Array.from({ length: 2 * BUSY }, async (_, at) => {
      const { limiter: mine } = clients[at % clients.length] as (typeof clients)[number];
      while (!isOver) {
        await mine.acquire({ ...HOT, consume: { n: 1 } });
        granted += 1;
      }
    });
    try {
      await expect.poll(() => granted, { timeout: 60_000 }).toBeGreaterThan(200);
      for (let at = 0; at < NEW; at += 1) {
        await repo.buckets.topUp({ ...HOT, amounts: { n: 1 }, idempotencyKey: `order-${at}` });
        const lease = await limiter.acquire({ ...HOT, consume: { n: 1, held: 1 } });
        granted += 1;
        await lease.commit();
      }
      await repo.buckets.reset(HOT);
      await repo.usage.summary({ resource: "api" });
    } finally {
      isOver = true;
      await Promise.all(load);
    }
    const states = await repo.buckets.list("hot");
    expect(states.find(({ limitName }) => limitName === "held")?.tokens).toBe(5);
    expect(states.find(({ limitName }) => limitName === "n")?.totalConsumed).toBe(granted);
    for (const each of clients) await each.repo.close();
  });
}
