/** The first call that money applies to in a process: prices are read before it is acquired. */

import { RateLimiter, RateLimiterUnavailable, TOTAL } from "@zae-limiter/limiter/index.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { afterEach, beforeEach, expect, test } from "vitest";

const TARGET = { entityId: "a", resource: "gpt-4o" };
const OPTIONS = checkLlmOptions({ entityId: "a", reserve: 100 });
/** 10 tokens of input and 100 of output, at the stored price. */
const COST = 40 + 4000;

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
  await world.limiter.repository.prices.set("gpt-4o", { input: "4", output: "40" });
});
afterEach(() => world.limiter.close());

/** Makes the first call of a process; returns what the usage of an entity has counted by then. */
async function firstCall(target: object, counts: { entityId: string; resource?: string }) {
  const call = await world.metering({ reserve: 100 }).begin(factsOf(), { ...TARGET, ...target });
  if (!(call instanceof MeteredCall)) throw new Error(`The call was not granted: ${call}`);
  const query = { resource: "gpt-4o", window: "hourly", ...counts } as const;
  const { snapshots } = await world.limiter.repository.usage.snapshots(query);
  return snapshots.map(({ counters, totalEvents }) => [counters["usd"], totalEvents]);
}

test("the first call with a limit in money is counted once, by the stored price", async () => {
  await world.limiter.repository.limits.setSystem(["usd:$10/hour", "tpm:1000000"]);
  expect(await firstCall({}, { entityId: "a" })).toEqual([[COST, 1]]);
});

test("the first call that an ancestor or a total limits in money is counted once", async () => {
  const { entities, limits } = world.limiter.repository;
  await entities.create({ id: "team" });
  await entities.create({ id: "child", parentId: "team", cascade: true });
  await limits.setEntity("team", ["usd:$10/hour"]);
  expect(await firstCall({ entityId: "child" }, { entityId: "team" })).toEqual([[COST, 1]]);
  await limits.setEntity("sole", ["usd:$10/hour"], { resource: TOTAL });
  const total = { entityId: "sole", resource: TOTAL };
  expect(await firstCall({ entityId: "sole" }, total)).toEqual([[COST, 1]]);
});

test("the first call with a tag is counted once", async () => {
  const tagId = "tag:research";
  expect(await firstCall({ tagId }, { entityId: tagId })).toEqual([[COST, 1]]);
});

/** Opens a store as on DynamoDB, and records what it is asked for. */
async function opened(limits: readonly string[], options: OpenOptions = {}) {
  const { clock, timer } = world.time;
  const items = new MemoryItemStore({ clock });
  await (await overTable(counted(items), { clock })).limits.setSystem(limits);
  const calls: string[] = [];
  const onCall = ({ operation }: { operation: string }) => calls.push(operation);
  const repository = await overTable(counted(items), { clock, timer, onCall, ...options });
  calls.length = 0;
  return { items, calls, limiter: new RateLimiter(repository) };
}

test.each([0, 60])(
  "calls without money ask the store for nothing more than acquires: cached for %i seconds",
  async (configCacheTtlSeconds) => {
    const limits = ["rpm:100", "tpm:1000000"];
    const metered = await opened(limits, { configCacheTtlSeconds });
    const plain = await opened(limits, { configCacheTtlSeconds });
    const host = new Metering(metered.limiter, OPTIONS);
    const request = { ...TARGET, consume: { rpm: 1, tpm: 110 }, totals: true };
    for (let call = 0; call < 3; call += 1) {
      await host.begin(factsOf(), TARGET);
      await plain.limiter.acquire(request);
      expect(metered.calls).toEqual(plain.calls);
    }
  },
);

test("the first call with money asks for the prices once, and for nothing else", async () => {
  const metered = await opened(["usd:$10/hour"]);
  const plain = await opened(["usd:$10/hour"]);
  await new Metering(metered.limiter, OPTIONS).begin(factsOf(), TARGET);
  await plain.limiter.acquire({ ...TARGET, consume: { usd: 1025 }, totals: true });
  expect(metered.calls.toSorted()).toEqual([...plain.calls, "query"].toSorted());
});

test("limits that are never cached show that money applies, too", async () => {
  const { limiter } = await opened(["usd:$10/hour"], { configCacheTtlSeconds: 0 });
  await limiter.repository.prices.set("gpt-4o", { input: "4", output: "40" });
  await new Metering(limiter, OPTIONS).begin(factsOf(), TARGET);
  expect(await limiter.available(TARGET)).toEqual({ usd: 10_000_000 - COST });
});

test.each([
  ["allow", MeteredCall],
  ["block", RateLimiterUnavailable],
] as const)(
  "a store that is away decides a tagged call by onUnavailable: %s",
  async (mode, answer) => {
    const { items, limiter } = await opened(["usd:$10/hour"]);
    const away = () => {
      throw new RateLimiterUnavailable("away");
    };
    Object.assign(items, { get: away, getMany: away, query: away, update: away, transact: away });
    const options = new RateLimiter(limiter.repository, { onUnavailable: mode });
    const call = new Metering(options, OPTIONS).begin(factsOf(), { ...TARGET, tagId: "tag:x" });
    expect(await call).toBeInstanceOf(answer);
  },
);
