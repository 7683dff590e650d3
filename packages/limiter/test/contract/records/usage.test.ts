import { readFileSync } from "node:fs";
import { ValidationError } from "@zae-limiter/limiter/index.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describeStores, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { expect, test } from "vitest";

/** Written by the Python library, whose keys do not have the window type. */
const GOLDEN = new URL(
  "../../../../../test/fixtures/golden/21-usage-snapshots.json",
  import.meta.url,
);
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
  test("usage is read by entity, newest first, by window and time, both ends included", async () => {
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

  test("usage is read by resource, over all entities", async () => {
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

  test("usage comes in pages that add up, also when a filter leaves things out", async () => {
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

  test("usage is summed up over all that matches", async () => {
    const repo = await store.open();
    await seed(store, repo);
    expect(await repo.usage.summary({ entityId: "key-1", window: "hourly" })).toEqual({
      snapshotCount: 3,
      total: { tpm: 4500 },
      average: { tpm: 1500 },
      minWindowStart: hour(10),
      maxWindowStart: hour(12),
    });
    expect(await repo.usage.summary({ entityId: "unknown" })).toEqual({
      snapshotCount: 0,
      total: {},
      average: {},
    });
  });

  test("three hours are read by window, time and resource, in pages, and summed up (A194)", async () => {
    const repo = await store.open();
    const hours = [
      { tpm: 1000, rpm: 5 },
      { tpm: 2000, rpm: 10 },
      { tpm: 1500, rpm: 8 },
    ];
    const at = (entity: string, start: string, counters: Record<string, number>) => ({
      ...snapshot(repo.namespaceId, { entity, window: "hourly", start, tpm: 0 }),
      ...counters,
    });
    const puts = hours.map((counters, index) => at("key-1", hour(10 + index), counters));
    puts.push(
      snapshot(repo.namespaceId, { entity: "key-1", window: "daily", start: hour(0), tpm: 4500 }),
      at("key-2", hour(10), { tpm: 1 }),
      at("key-2", hour(12), { tpm: 2 }),
    );
    await store.items.writeMany({ puts });
    const pages: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await repo.usage.snapshots({
        resource: "gpt-4",
        window: "hourly",
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      });
      pages.push(page.snapshots.length);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(pages).toEqual([2, 2, 1]);
    const within = { window: "hourly", start: hour(10), end: hour(11) } as const;
    for (const [query, found] of [
      [{ entityId: "key-1", resource: "gpt-4" }, [hour(11), hour(10)]],
      [{ entityId: "key-1" }, [hour(11), hour(10)]],
      [{ resource: "gpt-4" }, [hour(11), hour(10), hour(10)]],
    ] as const) {
      const { snapshots } = await repo.usage.snapshots({ ...query, ...within });
      expect(snapshots.map(({ windowStart }) => windowStart)).toEqual(found);
    }
    const summary = await repo.usage.summary({ entityId: "key-1", window: "hourly" });
    expect(summary).toMatchObject({
      snapshotCount: 3,
      total: { tpm: 4500, rpm: 23 },
      minWindowStart: hour(10),
      maxWindowStart: hour(12),
    });
    expect(summary.average.tpm).toBe(1500);
    expect(summary.average.rpm).toBeCloseTo(7.667, 3);
  });

  test("windows end with their last second; what is no window ends where it starts (A195)", async () => {
    const repo = await store.open();
    const windows = [
      ["hourly", "2026-11-15T10:00:00Z", "2026-11-15T10:59:59Z"],
      ["daily", "2026-11-15T00:00:00Z", "2026-11-15T23:59:59Z"],
      ["monthly", "2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z"],
      ["monthly", "2026-12-01T00:00:00Z", "2026-12-31T23:59:59Z"],
      ["monthly", "2024-02-01T00:00:00Z", "2024-02-29T23:59:59Z"],
      ["monthly", "2023-02-01T00:00:00Z", "2023-02-28T23:59:59Z"],
      ["weekly", "2026-11-15T00:00:00Z", "2026-11-15T00:00:00Z"],
      ["hourly", "soon", "soon"],
    ] as const;
    const puts = windows.map(([window, start]) =>
      snapshot(repo.namespaceId, { entity: "key-1", window, start, tpm: 1 }),
    );
    await store.items.writeMany({ puts });
    const { snapshots } = await repo.usage.snapshots({ entityId: "key-1" });
    const ends = snapshots.map(({ windowType, windowStart, windowEnd }) => [
      windowType,
      windowStart,
      windowEnd,
    ]);
    expect(ends.toSorted()).toEqual(windows.map((window) => [...window]).toSorted());
  });

  test("items that are no snapshots are skipped (A196)", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const odd = snapshot(repo.namespaceId, {
      entity: "key-1",
      window: "hourly",
      start: hour(13),
      tpm: 5,
    });
    const { resource: _, ...incomplete } = odd;
    await store.items.put(incomplete as Item);
    const { snapshots } = await repo.usage.snapshots({ entityId: "key-1", window: "hourly" });
    expect(snapshots).toHaveLength(3);
  });

  test("without a window type, hours are summed up and days are not added to them", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const { snapshotCount, total } = await repo.usage.summary({ entityId: "key-1" });
    expect({ snapshotCount, total }).toEqual({ snapshotCount: 3, total: { tpm: 4500 } });
  });

  test("an average counts every snapshot, also those without the limit", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const { PK, SK } = snapshot(repo.namespaceId, {
      entity: "key-1",
      window: "hourly",
      start: hour(10),
      tpm: 0,
    });
    await store.items.update({ PK, SK }, { set: { rpm: 6 } });
    const { average } = await repo.usage.summary({ entityId: "key-1", window: "hourly" });
    expect(average).toEqual({ tpm: 1500, rpm: 2 });
  });

  test("pages go on through windows and through snapshots of the Python library", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const old = snapshot(repo.namespaceId, {
      entity: "key-1",
      window: "hourly",
      start: hour(9),
      tpm: 3,
    });
    // Its keys have no window in them.
    const GSI2SK = `USAGE#${hour(9)}#key-1`;
    await store.items.put({ ...old, SK: `#USAGE#gpt-4#${hour(9)}`, GSI2SK });
    for (const query of [{ entityId: "key-1", resource: "gpt-4" }, { resource: "gpt-4" }]) {
      const options = { ...query, start: hour(0), end: hour(12) };
      const all = (await repo.usage.snapshots(options)).snapshots;
      expect(all.filter(({ windowStart }) => windowStart === hour(9))).toHaveLength(1);
      const paged: typeof all = [];
      let cursor: string | undefined;
      do {
        const page = await repo.usage.snapshots({
          ...options,
          limit: 1,
          ...(cursor === undefined ? {} : { cursor }),
        });
        paged.push(...page.snapshots);
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(paged).toEqual(all);
    }
    const backwards = { entityId: "key-1", resource: "gpt-4", start: hour(12), end: hour(10) };
    expect((await repo.usage.snapshots(backwards)).snapshots).toEqual([]);
  });

  test("usage of a whole namespace comes newest first, in pages, and is summed up", async () => {
    const repo = await store.open();
    await seed(store, repo);
    const other = { entity: "key-9", window: "hourly", start: hour(11), tpm: 40 };
    const put = snapshot(repo.namespaceId, other);
    await store.items.put({
      ...put,
      SK: put.SK.replace("gpt-4", "gpt-5"),
      GSI2PK: `${repo.namespaceId}/RESOURCE#gpt-5`,
      resource: "gpt-5",
    });
    await repo.entities.create({ id: "key-2" });
    await repo.limits.setEntity("key-3", ["rpm:5"]);
    const all: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { window: "hourly", limit: 2 } as const;
      const page = await repo.usage.snapshots({ ...query, ...(cursor && { cursor }) });
      expect(page.snapshots.length).toBeLessThanOrEqual(2);
      all.push(
        ...page.snapshots.map(
          ({ windowStart, entityId, resource }) =>
            `${windowStart.slice(11, 13)} ${entityId} ${resource}`,
        ),
      );
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(all).toEqual([
      "12 key-1 gpt-4",
      "11 key-9 gpt-5",
      "11 key-2 gpt-4",
      "11 key-1 gpt-4",
      "10 key-1 gpt-4",
    ]);
    const late = await repo.usage.snapshots({ start: hour(12) });
    expect(late.snapshots.map(({ windowStart }) => windowStart)).toEqual([hour(12)]);
    expect(await repo.usage.summary({})).toMatchObject({ snapshotCount: 5, total: { tpm: 4547 } });
    expect(await repo.usage.summary({ window: "daily" })).toMatchObject({ total: { tpm: 4500 } });
  });

  test("the sum over a namespace counts an acquire that cascades once for each resource", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
    for (const resource of ["gpt-4", "gpt-5"]) {
      for (const entity of ["org", "key-1"]) {
        const item = snapshot(repo.namespaceId, {
          entity,
          window: "hourly",
          start: hour(10),
          tpm: 100,
        });
        await store.items.put({
          ...item,
          SK: item.SK.replace("gpt-4", resource),
          GSI2PK: `${repo.namespaceId}/RESOURCE#${resource}`,
          resource,
        });
      }
    }
    expect(await repo.usage.summary({})).toMatchObject({ snapshotCount: 2, total: { tpm: 200 } });
  });

  test("the entities that consumed most are ranked over a namespace or a resource", async () => {
    const repo = await store.open();
    await seed(store, repo);
    expect(await repo.usage.top({})).toEqual([
      { entityId: "key-1", totalEvents: 3, counters: { tpm: 4500 }, resources: ["gpt-4"] },
      { entityId: "key-2", totalEvents: 1, counters: { tpm: 7 }, resources: ["gpt-4"] },
    ]);
    const eleven = { resource: "gpt-4", start: hour(11), end: hour(11), by: "tpm", limit: 1 };
    expect(await repo.usage.top(eleven)).toMatchObject([
      { entityId: "key-1", totalEvents: 1, counters: { tpm: 2000 } },
    ]);
    expect(await repo.usage.top({ window: "monthly" })).toEqual([]);
    await expect(repo.usage.top({ entityId: "key-1" } as object)).rejects.toThrow(ValidationError);
  });

  test("usage refuses a wrong window and a wrong time", async () => {
    const repo = await store.open();
    for (const wrong of [
      { entityId: "key-1", window: "weekly" as "daily" },
      { entityId: "key-1", start: "yesterday" },
      { entityId: "key-1", limit: 0 },
      { entityId: "key-1", cursor: "nonsense" },
    ]) {
      await expect(repo.usage.snapshots(wrong)).rejects.toThrow(ValidationError);
    }
  });

  test("usage of the Python library is read too", async () => {
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
