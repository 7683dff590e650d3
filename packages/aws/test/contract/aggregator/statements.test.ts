/** Statements of closed periods where buckets are items, and an aggregator follows them. */

import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { changeOf, ONLY_GENERATION } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START = Date.parse("2026-11-15T12:00:00Z");
const MIDNIGHT = Date.parse("2026-11-16T00:00:00Z");
const KEY = { entityId: "key-1", resource: "api" };

async function opened(...limits: (string | Limit)[]) {
  const time = { nowMs: START };
  const clock = () => time.nowMs;
  const items = new MemoryItemStore({ clock });
  const repo = await overTable(items, { clock });
  const limiter = new RateLimiter(repo);
  await repo.limits.setResource(KEY.resource, limits);
  const aggregator = new Aggregator({ store: items, clock, log: () => undefined });
  /** Delivers all changes so far, those of earlier times again. */
  const aggregate = async () => {
    const { item } = await items.update(
      { PK: "end", SK: "end" },
      { set: { at: crypto.randomUUID() } },
    );
    const changes = [];
    for await (const record of items.changes({ from: "oldest" })) {
      if (record.after?.at !== undefined && record.after.at === item?.at) break;
      changes.push(changeOf(record, ONLY_GENERATION));
    }
    expect((await aggregator.process(changes)).failedIds).toEqual([]);
  };
  const statements = async () => {
    await aggregate();
    const { periods } = await repo.usage.periods(KEY);
    expect((await repo.usage.periods({ resource: KEY.resource })).periods).toEqual(periods);
    return periods;
  };
  const take = (req: number) => limiter.acquire({ ...KEY, consume: { req } });
  return { time, items, repo, limiter, take, statements };
}

test("the aggregator writes one statement of a closed period, however often it sees it", async () => {
  const { time, take, statements } = await opened("req:10/day UTC");
  const lease = await take(7);
  lease.release({ req: 2 });
  await lease.commit();
  expect(await statements()).toEqual([]);
  time.nowMs = MIDNIGHT + HOUR_MS;
  await take(1);
  const statement = {
    ...KEY,
    limitName: "req",
    kind: "quota",
    startMs: MIDNIGHT - DAY_MS,
    endMs: MIDNIGHT,
    timeZone: "UTC",
    allowance: 10,
    carried: 0,
    granted: 10,
    used: 5,
  };
  expect(await statements()).toEqual([statement]);
  expect(await statements()).toEqual([statement]);
  await take(3);
  time.nowMs += DAY_MS;
  await take(1);
  const ends = { startMs: MIDNIGHT, endMs: MIDNIGHT + DAY_MS };
  expect(await statements()).toEqual([{ ...statement, ...ends, used: 4 }, statement]);
});

test("the statement of a bucket with shards is the sum of what they granted and used", async () => {
  const { time, items, repo, take, statements } = await opened("req:1000/day UTC");
  await take(301);
  await splitInto(items, { namespaceId: repo.namespaceId, ...KEY }, 4, time.nowMs);
  expect(await repo.buckets.list(KEY.entityId)).toHaveLength(4);
  for (let call = 0; call < 40; call += 1) await take(5);
  time.nowMs = MIDNIGHT;
  for (let call = 0; call < 60; call += 1) await take(1);
  expect(await statements()).toMatchObject([{ allowance: 1000, granted: 1000, used: 501 }]);
});

test("a statement of the aggregator has what was carried and topped up", async () => {
  const carried = Limit.quota("req", 10, { every: "day", carry: "both", carryMax: 3 });
  const { time, repo, take, statements } = await opened(carried);
  await take(6);
  time.nowMs = MIDNIGHT;
  await take(1);
  await repo.buckets.topUp({ ...KEY, amounts: { req: 20 } });
  await take(9);
  time.nowMs = MIDNIGHT + DAY_MS;
  await take(1);
  expect(await statements()).toMatchObject([
    { endMs: MIDNIGHT + DAY_MS, allowance: 10, carried: 3, granted: 33, used: 10 },
    { endMs: MIDNIGHT, carried: 0, granted: 10, used: 6 },
  ]);
});

test("a session has a statement of the aggregator once the next one begins", async () => {
  const { time, take, statements } = await opened("req:10/session:5hour");
  await take(3);
  time.nowMs += 6 * HOUR_MS;
  await take(4);
  const session = { kind: "session", startMs: START, endMs: START + 5 * HOUR_MS };
  expect(await statements()).toMatchObject([{ ...session, granted: 10, used: 3 }]);
});

test("a session that an operator ended has a statement with its top-ups", async () => {
  const { time, repo, take, statements } = await opened("req:10/session:5hour");
  await take(3);
  await repo.buckets.topUp({ ...KEY, amounts: { req: 5 } });
  time.nowMs += HOUR_MS;
  await repo.buckets.reset(KEY);
  await take(1);
  const found = await statements();
  expect(found).toMatchObject([{ endMs: START + HOUR_MS, granted: 15, used: 3 }]);
});

test("a session that a top-up follows has its statement of the aggregator", async () => {
  const { time, repo, take, statements } = await opened("req:10/session:5hour");
  await take(3);
  time.nowMs += 6 * HOUR_MS;
  await repo.buckets.topUp({ ...KEY, amounts: { req: 5 } });
  await take(1);
  time.nowMs += 6 * HOUR_MS;
  await take(1);
  expect(await statements()).toMatchObject([
    { granted: 15, used: 1 },
    { endMs: START + 5 * HOUR_MS, granted: 10, used: 3 },
  ]);
});

test("a reset of a session that is over leaves no second statement of it", async () => {
  const { time, repo, limiter, take, statements } = await opened(
    "day:10/day UTC",
    "req:10/session:5hour",
  );
  await take(3);
  time.nowMs = MIDNIGHT;
  await limiter.acquire({ ...KEY, consume: { day: 1 } });
  time.nowMs += HOUR_MS;
  expect((await repo.buckets.reset(KEY)).amounts).toEqual({ day: 1, req: 0 });
  time.nowMs += HOUR_MS;
  await take(1);
  const sessions = (await statements()).filter(({ kind }) => kind === "session");
  expect(sessions).toMatchObject([{ endMs: START + 5 * HOUR_MS, used: 3 }]);
});

test("a limit that was removed in its period has a statement of the aggregator", async () => {
  const { time, repo, limiter, take, statements } = await opened("req:10/day UTC", "tpm:60/min");
  await take(9);
  await repo.limits.setResource(KEY.resource, ["tpm:60/min"]);
  await limiter.acquire({ ...KEY, consume: { tpm: 1 } });
  time.nowMs = MIDNIGHT + 1000;
  // Only a write that moves the base time shows that the period is over.
  await repo.limits.setResource(KEY.resource, ["tpm:120/min"]);
  await limiter.acquire({ ...KEY, consume: { tpm: 60 } });
  expect(await statements()).toMatchObject([{ limitName: "req", endMs: MIDNIGHT, used: 9 }]);
});

test("what was consumed before an entity was deleted leaves no statement", async () => {
  const { time, repo, take, statements } = await opened("req:10/day UTC");
  await repo.entities.create({ id: KEY.entityId });
  await take(9);
  time.nowMs += 1000;
  await repo.entities.delete(KEY.entityId);
  time.nowMs = MIDNIGHT;
  expect(await statements()).toEqual([]);
});
