/** How often soft limits were left below zero, in the snapshots of every kind of store. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { changeOf, ONLY_GENERATION } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { afterAll, expect, test } from "vitest";

const NOON = Date.parse("2026-11-15T12:00:00Z");
const CALL = { entityId: "key-1", resource: "gpt-4" };

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-overdrawn-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Counted {
  readonly repo: Repository;
  /** Counts what was consumed, where the store does not do it by itself. */
  readonly count: () => Promise<void>;
  readonly time: { nowMs: number };
}

const embedded = async (url: string): Promise<Counted> => {
  const time = { nowMs: NOON };
  const repo = await Repository.open(url, { clock: () => time.nowMs });
  return { repo, time, count: async () => {} };
};

/** Buckets as items, with an aggregator on their changes. */
async function distributed(): Promise<Counted> {
  const time = { nowMs: NOON };
  const clock = () => time.nowMs;
  const items = new MemoryItemStore({ clock });
  const repo = await overTable(items, { clock });
  const count = async () => {
    const { item } = await items.update({ PK: "end", SK: "end" }, { set: { is: "here" } });
    const changes = [];
    for await (const record of items.changes({ from: "oldest" })) {
      if (record.key.PK === item?.PK) break;
      changes.push(changeOf(record, ONLY_GENERATION));
    }
    await new Aggregator({ store: items, clock, log: () => undefined }).process(changes);
  };
  return { repo, time, count };
}

const STORES: Readonly<Record<string, () => Promise<Counted>>> = {
  memory: () => embedded("memory:"),
  sqlite: () => embedded(`sqlite:${join(folder, "limits.db")}`),
  "items and an aggregator": distributed,
};

test.each(Object.entries(STORES))(
  "acquires that leave a soft limit below zero are counted: %s",
  async (_, open) => {
    const { repo, time, count } = await open();
    await repo.limits.setResource("gpt-4", ["rpd:100/day", "tpd:100/day soft", "tph:500/hour"]);
    const limiter = new RateLimiter(repo);
    const acquire = (consume: Record<string, number>) => limiter.acquire({ ...CALL, consume });
    await acquire({ rpd: 1, tpd: 90 });
    await acquire({ rpd: 1, tpd: 20 });
    await acquire({ rpd: 1, tpd: 0 });
    await acquire({ rpd: 1, tpd: 5 });
    // An adjustment may leave a hard limit below zero, and is no acquire.
    const lease = await acquire({ tph: 500 });
    lease.adjust({ tph: 100, tpd: 1 });
    await lease.commit();
    // A day later the debt is gone: the stored balance is as it was, and what accrued counts.
    time.nowMs += 40 * 3_600_000;
    await acquire({ rpd: 1, tpd: 10 });
    await count();
    const { snapshots } = await repo.usage.snapshots({ ...CALL, window: "daily" });
    const shown = snapshots.map(({ counters, overdrawn }) => [counters["tpd"], overdrawn]);
    expect(shown).toEqual([
      [10, undefined],
      [116, { tpd: 2 }],
    ]);
    await limiter.close();
  },
);

test("a bypassed limit in debt is counted by its tokens alone", async () => {
  for (const open of Object.values({ memory: STORES["memory"], items: distributed })) {
    const { repo, count } = await (open as () => Promise<Counted>)();
    await repo.limits.setResource("gpt-4", ["rpd:10/day soft"]);
    const limiter = new RateLimiter(repo);
    await limiter.acquire({ ...CALL, consume: { rpd: 12 } });
    await repo.limits.bypass({ resource: "gpt-4" });
    await limiter.acquire({ ...CALL, consume: { rpd: 5 } });
    await count();
    const { snapshots } = await repo.usage.snapshots({ ...CALL, window: "hourly" });
    expect(snapshots.map(({ counters, overdrawn }) => [counters, overdrawn])).toEqual([
      [{ rpd: 17 }, { rpd: 1 }],
    ]);
    await limiter.close();
  }
});
