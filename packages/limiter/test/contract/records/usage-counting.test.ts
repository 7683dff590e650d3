/** Usage that embedded stores count by themselves, in the acquire's own step. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter, TOTAL } from "@zae-limiter/limiter/index.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { afterAll, describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
/** Shortly before midnight, before the first of a month. */
const START = Date.parse("2027-02-28T23:50:00Z");

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-usage-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

const STORES = {
  memory: () => "memory:",
  sqlite: () => `sqlite:${join(folder, `${files++}.db`)}`,
};

/** A limiter at a time that the test moves. */
async function open(url: string, options: OpenOptions = {}) {
  const time = { nowMs: START };
  const limiter = await RateLimiter.open(url, { clock: () => time.nowMs, ...options });
  const repo = limiter.repository;
  await repo.limits.setSystem(["rpm:100000", "tpm:1000000"]);
  const acquire = (entityId: string, consume: Record<string, number>, resource = "gpt-4") =>
    limiter.acquire({ entityId, resource, consume });
  return { time, limiter, repo, acquire };
}

/** The snapshots of an entity, each as `window start events counters`. */
async function usageOf(repo: Repository, entityId: string): Promise<string[]> {
  const { snapshots } = await repo.usage.snapshots({ entityId });
  return snapshots
    .map(({ windowType, windowStart, totalEvents, counters }) =>
      [windowType, windowStart.slice(5, 13), totalEvents, JSON.stringify(counters)].join(" "),
    )
    .toSorted();
}

for (const [name, url] of Object.entries(STORES)) {
  describe(`usage on ${name}`, () => {
    test("usage counts a call once that counts for a total too", async () => {
      const { repo, limiter } = await open(url());
      await repo.limits.setResource("bare", ["rpm:1000"]);
      await repo.limits.setEntity("team", ["rpm:1000", "tpm:1000"], { resource: TOTAL });
      const call = { entityId: "team", totals: true };
      await limiter.acquire({ ...call, resource: "gpt-4", consume: { rpm: 1, tpm: 50 } });
      await limiter.acquire({ ...call, resource: "bare", consume: { rpm: 1, tpm: 7 } });
      const { total } = await repo.usage.summary({ entityId: "team", window: "hourly" });
      expect(total).toEqual({ rpm: 2, tpm: 57 });
      const { snapshots } = await repo.usage.snapshots({ entityId: "team", window: "hourly" });
      const rows = repo.usage
        .withoutTotals(snapshots)
        .map(({ resource, totalEvents, counters }) => [resource, totalEvents, counters]);
      expect(rows.toSorted()).toEqual([
        [TOTAL, 0, { tpm: 7 }],
        ["bare", 1, { rpm: 1 }],
        ["gpt-4", 1, { rpm: 1, tpm: 50 }],
      ]);
      const all = await repo.usage.summary({ window: "hourly" });
      expect(all.total).toEqual({ rpm: 2, tpm: 57 });
      expect(await repo.usage.top({})).toEqual([
        {
          entityId: "team",
          totalEvents: 2,
          counters: { rpm: 2, tpm: 57 },
          resources: ["bare", "gpt-4"],
        },
      ]);
      const whole = await repo.usage.summary({ entityId: "team", resource: TOTAL });
      expect(whole.total).toEqual({ rpm: 2, tpm: 57 });
      await limiter.close();
    });

    test("usage is there at once, for every window, without any other work", async () => {
      const { repo, limiter, acquire } = await open(url());
      await acquire("key-1", { rpm: 1, tpm: 500 });
      await acquire("key-1", { rpm: 1 });
      await acquire("key-1", { rpm: 0 });
      expect(await usageOf(repo, "key-1")).toEqual([
        'daily 02-28T00 2 {"rpm":2,"tpm":500}',
        'hourly 02-28T23 2 {"rpm":2,"tpm":500}',
        'monthly 02-01T00 2 {"rpm":2,"tpm":500}',
      ]);
      await acquire("key-1", { rpm: 3 });
      const summary = await repo.usage.summary({ resource: "gpt-4", window: "monthly" });
      expect(summary).toMatchObject({ snapshotCount: 1, total: { rpm: 5, tpm: 500 } });
      await limiter.close();
    });

    test("an expired bucket is counted once, also when a call of its child finds it expired", async () => {
      const { time, repo, limiter, acquire } = await open(url());
      await repo.entities.create({ id: "team" });
      await repo.entities.create({ id: "key-1", parentId: "team", cascade: true });
      // Enough calls that a store which removes expired buckets with some writes does so here.
      for (let call = 0; call < 70; call += 1) {
        await acquire("key-1", { rpm: 1 });
        if (call % 3 === 0) await acquire(`other-${call}`, { rpm: 1 });
        time.nowMs += 2 * HOUR_MS;
      }
      const { snapshots } = await repo.usage.snapshots({ entityId: "team", window: "hourly" });
      expect(snapshots.length).toBeGreaterThan(0);
      for (const { totalEvents, counters } of snapshots) {
        expect([totalEvents, counters.rpm]).toEqual([1, 1]);
      }
      await limiter.close();
    });

    test("adjustments and rollbacks change what was consumed, not how many acquires there were", async () => {
      const { repo, limiter, acquire } = await open(url());
      const lease = await acquire("key-1", { tpm: 500 });
      lease.adjust({ tpm: 200 });
      await lease.commit();
      const second = await acquire("key-1", { tpm: 100 });
      second.adjust({ tpm: -40 });
      await second.commit();
      await (await acquire("key-1", { tpm: 900 })).rollback();
      await expect(acquire("key-1", { tpm: 1_000_001 })).rejects.toThrow();
      expect((await usageOf(repo, "key-1"))[0]).toBe('daily 02-28T00 3 {"tpm":760}');
      await limiter.close();
    });

    test("usage belongs to the time of the change: hours, days and months are divided exactly", async () => {
      const { repo, limiter, acquire, time } = await open(url());
      const lease = await acquire("key-1", { tpm: 500 });
      time.nowMs += 15 * 60_000;
      await acquire("key-1", { tpm: 30 });
      // What is given back now counts down now.
      await lease.rollback();
      time.nowMs += HOUR_MS;
      await acquire("key-1", { tpm: 7 });
      expect(await usageOf(repo, "key-1")).toEqual([
        'daily 02-28T00 1 {"tpm":500}',
        'daily 03-01T00 2 {"tpm":-463}',
        'hourly 02-28T23 1 {"tpm":500}',
        'hourly 03-01T00 1 {"tpm":-470}',
        'hourly 03-01T01 1 {"tpm":7}',
        'monthly 02-01T00 1 {"tpm":500}',
        'monthly 03-01T00 2 {"tpm":-463}',
      ]);
      await limiter.close();
    });

    test("ancestors that are charged have usage of their own", async () => {
      const { repo, limiter, acquire } = await open(url());
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      await acquire("key-1", { rpm: 1 });
      await acquire("org", { rpm: 2 });
      expect((await usageOf(repo, "org"))[0]).toBe('daily 02-28T00 2 {"rpm":3}');
      expect((await usageOf(repo, "key-1"))[0]).toBe('daily 02-28T00 1 {"rpm":1}');
      await limiter.close();
    });

    test("usage of a limit that is removed stays, and so does that of a bucket that is over", async () => {
      const { repo, limiter, acquire, time } = await open(url());
      await acquire("key-1", { rpm: 1, tpm: 500 });
      await repo.limits.setEntity("key-1", ["rpm:50"]);
      await acquire("key-1", { rpm: 2 });
      expect((await usageOf(repo, "key-1"))[0]).toBe('daily 02-28T00 2 {"rpm":3,"tpm":500}');
      await acquire("key-2", { tpm: 40 });
      // Its time to live is over, and others come along.
      time.nowMs += 46 * HOUR_MS;
      for (let others = 0; others < 200; others += 1) {
        time.nowMs += HOUR_MS / 100;
        await acquire(`other-${others}`, { rpm: 1 });
      }
      expect(await repo.buckets.list("key-2")).toEqual([]);
      await acquire("key-2", { tpm: 2 });
      expect(await usageOf(repo, "key-2")).toEqual([
        'daily 02-28T00 1 {"tpm":40}',
        'daily 03-02T00 1 {"tpm":2}',
        'hourly 02-28T23 1 {"tpm":40}',
        'hourly 03-02T23 1 {"tpm":2}',
        'monthly 02-01T00 1 {"tpm":40}',
        'monthly 03-01T00 1 {"tpm":2}',
      ]);
      await limiter.close();
    });

    test("limits named like attributes of a snapshot are counted like any other", async () => {
      const { repo, limiter } = await open(url());
      const names = ["ttl", "resource", "window", "PK", "total_events", "GSI2SK"];
      await limiter.acquire({
        entityId: "key-1",
        resource: "gpt-4",
        limits: names.map((limit) => `${limit}:100`),
        consume: Object.fromEntries(names.map((limit, at) => [limit, at + 1])),
      });
      const { snapshots } = await repo.usage.snapshots({ entityId: "key-1", window: "daily" });
      expect(snapshots[0]).toMatchObject({
        resource: "gpt-4",
        windowType: "daily",
        totalEvents: 1,
        counters: Object.fromEntries(names.map((limit, at) => [limit, at + 1])),
      });
      await limiter.close();
    });

    test("usage goes with its entity, and is separate by namespace", async () => {
      const { repo, limiter, acquire } = await open(url());
      await repo.entities.create({ id: "key-1" });
      await acquire("key-1", { rpm: 1 });
      await repo.namespaces.register("other");
      const other = await repo.namespace("other");
      expect(await usageOf(other, "key-1")).toEqual([]);
      await repo.entities.delete("key-1");
      expect(await usageOf(repo, "key-1")).toEqual([]);
      await limiter.close();
    });

    test("usage by resource, over more entities than one page has, adds up", async () => {
      const { repo, limiter, acquire } = await open(url(), { usage: { maxEntities: 2000 } });
      for (let at = 0; at < 1300; at += 1) await acquire(`key-${at}`, { rpm: 1, tpm: at });
      const { snapshotCount, total } = await repo.usage.summary({
        resource: "gpt-4",
        window: "hourly",
      });
      expect(snapshotCount).toBe(1300);
      expect(total).toEqual({ rpm: 1300, tpm: (1299 * 1300) / 2 });
      await limiter.close();
    });
  });
}

describe("usage in a file", () => {
  test("usage in a file that one process left pending is written by any other", async () => {
    const url = STORES.sqlite();
    const first = await open(url);
    await first.acquire("key-1", { tpm: 500 });
    // Not closed: as if it had been killed.
    const second = await open(url);
    expect((await usageOf(second.repo, "key-1"))[0]).toBe('daily 02-28T00 1 {"tpm":500}');
    await first.acquire("key-1", { tpm: 1 });
    await second.acquire("key-1", { tpm: 2 });
    expect((await usageOf(first.repo, "key-1"))[0]).toBe('daily 02-28T00 3 {"tpm":503}');
    await first.limiter.close();
    await second.limiter.close();
  });
});
