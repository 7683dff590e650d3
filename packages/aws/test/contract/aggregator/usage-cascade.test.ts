/** Usage over all entities of a resource counts an acquire that cascades once. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { changeOf, ONLY_GENERATION } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { afterAll, describe, expect, it } from "vitest";

const NOON = Date.parse("2026-11-15T12:00:00Z");

/** tenant < project < key-1, key-2; other is apart. The project has no limits at all. */
async function family(repo: Repository): Promise<void> {
  const { entities, limits } = repo;
  await entities.create({ id: "tenant" });
  await entities.create({ id: "project", parentId: "tenant", cascade: true });
  await entities.create({ id: "key-1", parentId: "project", cascade: true });
  await entities.create({ id: "key-2", parentId: "project", cascade: true });
  await entities.create({ id: "kept-apart", parentId: "project" });
  await limits.setEntity("tenant", ["tpm:100000"]);
  for (const id of ["key-1", "key-2", "kept-apart", "other"]) {
    await limits.setEntity(id, ["rpm:1000", "tpm:100000"]);
  }
}

async function use(repo: Repository): Promise<void> {
  const limiter = new RateLimiter(repo);
  const acquire = (entityId: string, consume: Record<string, number>) =>
    limiter.acquire({ entityId, resource: "gpt-4", consume });
  await acquire("key-1", { rpm: 1, tpm: 100 });
  await acquire("key-2", { rpm: 1, tpm: 20 });
  await acquire("kept-apart", { rpm: 1, tpm: 5 });
  await acquire("other", { rpm: 1, tpm: 3 });
  // Limits of its own besides those of its children.
  await acquire("tenant", { tpm: 1000 });
}

async function expectOnce({ usage }: Repository): Promise<void> {
  const summary = await usage.summary({ resource: "gpt-4", window: "hourly" });
  expect(summary.total).toEqual({ rpm: 4, tpm: 1128 });
  expect((await usage.summary({ entityId: "tenant", resource: "gpt-4" })).total.tpm).toBe(1120);
  expect((await usage.summary({ entityId: "key-1" })).total).toEqual({ rpm: 1, tpm: 100 });
  const { snapshots } = await usage.snapshots({ resource: "gpt-4", window: "daily" });
  expect(snapshots).toHaveLength(5);
  const once = await usage.withoutCascaded(snapshots);
  const counters = Object.fromEntries(once.map((one) => [one.entityId, one.counters]));
  expect(counters).toEqual({
    tenant: { tpm: 1120 },
    "key-1": { rpm: 1 },
    "key-2": { rpm: 1 },
    "kept-apart": { rpm: 1, tpm: 5 },
    other: { rpm: 1, tpm: 3 },
  });
}

describe("usage of a resource in a store that counts by itself", () => {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(["memory:", `sqlite:${join(folder, "limits.db")}`])(
    "an acquire that cascades counts once in a store that counts by itself: %s",
    async (url) => {
      await using repo = await Repository.open(url, { clock: () => NOON });
      await family(repo);
      await use(repo);
      await expectOnce(repo);
    },
  );
});

describe("usage of a resource that an aggregator counts", () => {
  it("an acquire that cascades counts once where an aggregator counts", async () => {
    const items = new MemoryItemStore({ clock: () => NOON });
    const repo = await overTable(items, { clock: () => NOON });
    await family(repo);
    await use(repo);
    const aggregator = new Aggregator({
      store: items,
      clock: () => NOON,
      log: () => undefined,
    });
    const changes = [];
    for await (const record of items.changes({ from: "oldest" })) {
      changes.push(changeOf(record, ONLY_GENERATION));
      // The last of the acquires.
      if (record.after?.b_tpm_tc === 1_120_000) break;
    }
    await aggregator.process(changes);
    await expectOnce(repo);
    // Without the tenant's own snapshots, those of its keys are all there is.
    await repo.entities.delete("tenant");
    expect((await repo.usage.summary({ resource: "gpt-4" })).total).toEqual({ rpm: 4, tpm: 128 });
  });
});
