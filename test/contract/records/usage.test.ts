import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ValidationError } from "../../../src/index.ts";
import type { Repository } from "../../../src/repository/repository.ts";
import { decodeItem } from "../../../src/storage/attribute-value.ts";
import type { Item } from "../../../src/storage/item.ts";
import { describeStores, type TestStore } from "../stores.ts";

/** Written by the Python library, whose keys do not have the window type. */
const GOLDEN = new URL("../../fixtures/golden/21-usage-snapshots.json", import.meta.url);
const GOLDEN_NAMESPACE = "OJEOS3iJbYI";

/** A snapshot with our keys. */
function snapshot(
  namespaceId: string,
  fields: { entity: string; window: string; start: string; tpm: number },
): Item {
  const { entity, window, start, tpm } = fields;
  const PK = `${namespaceId}/ENTITY#${entity}`;
  return {
    PK,
    SK: `#USAGE#gpt-4#${window}#${start}`,
    GSI2PK: `${namespaceId}/RESOURCE#gpt-4`,
    GSI2SK: `USAGE#${window}#${start}#${entity}`,
    GSI4PK: namespaceId,
    GSI4SK: PK,
    entity_id: entity,
    resource: "gpt-4",
    window,
    window_start: start,
    total_events: 1,
    tpm,
  };
}

const hour = (at: number) => `2026-11-15T${String(at).padStart(2, "0")}:00:00Z`;

async function seed(store: TestStore, repo: Repository): Promise<void> {
  const puts = [1000, 2000, 1500].map((tpm, at) =>
    snapshot(repo.namespaceId, { entity: "key-1", window: "hourly", start: hour(10 + at), tpm }),
  );
  puts.push(
    snapshot(repo.namespaceId, { entity: "key-1", window: "daily", start: hour(0), tpm: 4500 }),
    snapshot(repo.namespaceId, { entity: "key-2", window: "hourly", start: hour(11), tpm: 7 }),
  );
  await store.items.writeMany({ puts });
}

describeStores("usage", (store) => {
  test("is read by entity, newest first, by window and time, both ends included", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const { snapshots, cursor } = await repo.usage.snapshots({
      entityId: "key-1",
      window: "hourly",
      start: hour(11),
      end: new Date(hour(12)),
    });
    expect(cursor).toBeUndefined();
    expect(snapshots.map(({ windowStart }) => windowStart)).toEqual([hour(12), hour(11)]);
    expect(snapshots[0]).toEqual({
      entityId: "key-1",
      resource: "gpt-4",
      windowType: "hourly",
      windowStart: hour(12),
      windowEnd: "2026-11-15T12:59:59Z",
      counters: { tpm: 1500 },
      totalEvents: 1,
    });
  });

  test("is read by resource, over all entities", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const { snapshots } = await repo.usage.snapshots({ resource: "gpt-4", window: "hourly" });
    expect(snapshots.map(({ entityId }) => entityId).sort()).toEqual([
      "key-1",
      "key-1",
      "key-1",
      "key-2",
    ]);
    expect((await repo.usage.snapshots({ resource: "other" })).snapshots).toEqual([]);
  });

  test("comes in pages that add up, also when a filter leaves things out", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const starts: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await repo.usage.snapshots({
        entityId: "key-1",
        resource: "gpt-4",
        window: "hourly",
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      });
      starts.push(...page.snapshots.map(({ windowStart }) => windowStart));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(starts).toEqual([hour(12), hour(11), hour(10)]);
  });

  test("is summed up over all that matches", async () => {
    const repo = await store.open();
    await seed(store, repo);
    expect(await repo.usage.summary({ entityId: "key-1", window: "hourly" })).toEqual({
      snapshotCount: 3,
      total: { tpm: 4500 },
      average: { tpm: 1500 },
      minWindowStart: hour(10),
      maxWindowStart: hour(12),
    });
    expect(await repo.usage.summary({ entityId: "nobody" })).toEqual({
      snapshotCount: 0,
      total: {},
      average: {},
    });
  });

  test("refuses a question without a subject, a wrong window, a wrong time", async () => {
    const repo = await store.open();
    for (const wrong of [
      {},
      { entityId: "key-1", window: "weekly" as "daily" },
      { entityId: "key-1", start: "yesterday" },
      { entityId: "key-1", limit: 0 },
      { entityId: "key-1", cursor: "nonsense" },
    ]) {
      await expect(repo.usage.snapshots(wrong)).rejects.toThrow(ValidationError);
    }
  });

  test("of the Python library is read too", async () => {
    const repo = await store.open();
    const { items } = JSON.parse(readFileSync(GOLDEN, "utf8")) as {
      items: Record<string, unknown>[];
    };
    const own = JSON.parse(
      JSON.stringify(items).replaceAll(GOLDEN_NAMESPACE, repo.namespaceId),
    ) as typeof items;
    await store.items.writeMany({ puts: own.map((item) => decodeItem(item)) });
    const { snapshots } = await repo.usage.snapshots({ entityId: "plain", resource: "gpt-4" });
    expect(snapshots.map(({ windowType }) => windowType).sort()).toEqual([
      "daily",
      "hourly",
      "monthly",
    ]);
    expect(snapshots.every(({ counters }) => counters.tpm === 2100 && counters.rpm === 4)).toBe(
      true,
    );
  });
});
