/** The aggregator on streams of real engines. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { runAggregator } from "@zae-limiter/aws/aggregator/run.ts";
import { streamSource } from "@zae-limiter/aws/aggregator/runner/shard-source.ts";
import { changeOf, type StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, expect, test } from "vitest";

const TIMEOUT_MS = 20_000;

/** All changes so far, as the stream of the table has them. */
async function streamed(store: DynamoItemStore): Promise<StreamChange[]> {
  const source = await streamSource(store.stream()).discover();
  const found: StreamChange[] = [];
  for (const { id } of source.shards) {
    const feed = source.open(id, undefined);
    for (let empty = 0; empty < 3; ) {
      const { changes, ended } = await feed.next();
      found.push(...changes.map((record) => changeOf(record, source.generation)));
      if (ended) break;
      empty = changes.length === 0 ? empty + 1 : 0;
    }
  }
  return found;
}

describeEngines("the aggregator", ({ endpoint }) => {
  const table = newName();
  let root: Repository;
  let store: DynamoItemStore;

  beforeAll(async () => {
    root = await Repository.createTable(table, { endpoint, timeoutMs: TIMEOUT_MS });
    store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
  });
  afterAll(async () => {
    await Promise.all([root.close(), store.close()]);
    await deleteTable({ table, endpoint });
  });

  async function newNamespace(): Promise<Repository> {
    const name = newName();
    await root.namespaces.register(name);
    const repo = await root.namespace(name);
    await repo.limits.setSystem(["rpm:100000", "tpm:10000", "ttl:1000"]);
    return repo;
  }

  const aggregatorWith = (options: { nowMs?: number } = {}) =>
    new Aggregator({ store, clock: () => options.nowMs ?? Date.now(), log: () => undefined });

  /** The changes of one namespace. */
  async function changesOf(repo: Repository): Promise<StreamChange[]> {
    const all = await streamed(store);
    return all.filter(({ key }) => key.PK.startsWith(`${repo.namespaceId}/`));
  }

  test("the aggregator counts what the stream says: in any pieces, and however often", async () => {
    const repo = await newNamespace();
    const limiter = new RateLimiter(repo);
    for (let at = 0; at < 12; at += 1) {
      const lease = await limiter.acquire({
        entityId: `key-${at % 2}`,
        resource: "gpt-4",
        consume: { rpm: 1, tpm: 10 * at, ttl: 1 },
      });
      if (at % 3 === 0) await lease.rollback();
      if (at % 3 === 1) {
        lease.adjust({ tpm: 5 });
        await lease.commit();
      }
    }
    const changes = await changesOf(repo);
    const aggregator = aggregatorWith();
    const deliver = async (size: number) => {
      for (let from = 0; from < changes.length; from += size) {
        const { failedIds } = await aggregator.process(changes.slice(from, from + size));
        expect(failedIds).toEqual([]);
      }
    };
    await deliver(5);
    await deliver(3);
    await deliver(100);
    for (const entityId of ["key-0", "key-1"]) {
      const states = await repo.buckets.list(entityId);
      const truth = Object.fromEntries(
        states.map((state) => [state.limitName, state.totalConsumed]),
      );
      for (const window of WINDOW_TYPES) {
        const { total } = await repo.usage.summary({ entityId, resource: "gpt-4", window });
        expect(total).toEqual(truth);
      }
    }
  });

  test("the aggregator counts the most slots that the stream shows, once and again", async () => {
    const repo = await newNamespace();
    await repo.limits.setResource("gpt-4", ["parallel:9 concurrent", "rpm:1000"]);
    const limiter = new RateLimiter(repo);
    const call = { entityId: "key-1", resource: "gpt-4" };
    const take = (parallel: number) => limiter.acquire({ ...call, consume: { parallel } });
    const leases = [await take(3), await take(4)];
    for (const lease of leases) await lease.commit();
    await (await take(2)).commit();
    const changes = await changesOf(repo);
    for (const size of [2, 100]) {
      for (let from = 0; from < changes.length; from += size) {
        const { failedIds } = await aggregatorWith().process(changes.slice(from, from + size));
        expect(failedIds).toEqual([]);
      }
    }
    const { snapshots } = await repo.usage.snapshots({ ...call, window: "monthly" });
    expect(Math.max(...snapshots.map(({ peaks }) => peaks?.["parallel"] ?? 0))).toBe(7);
    expect(snapshots.reduce((sum, { totalEvents }) => sum + totalEvents, 0)).toBe(3);
  });

  test("an empty bucket is refilled for other readers; a stale view writes nothing (op 77)", async () => {
    const repo = await newNamespace();
    const limiter = new RateLimiter(repo);
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { tpm: 10_000 } });
    const key = bucketKey(repo.namespaceId, "key-1", "gpt-4", 0);
    const { rf } = (await store.get(key, { consistent: true })) as unknown as { rf: number };
    const changes = await changesOf(repo);
    const aggregator = aggregatorWith({ nowMs: rf + 10_000 });
    expect((await aggregator.process(changes)).counters.refills).toBe(1);
    const item = await store.get(key, { consistent: true });
    expect(item).toMatchObject({ rf: rf + 10_000, b_tpm_tk: 1_666_666, b_tpm_tc: 10_000_000 });
    expect((await aggregator.process(changes)).counters.refills).toBe(0);
    expect(await store.get(key, { consistent: true })).toEqual(item);
  });

  test("tokens consumed between the change and the refill are not lost (op 78)", async () => {
    const repo = await newNamespace();
    const limiter = new RateLimiter(repo);
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { tpm: 9000 } });
    const changes = await changesOf(repo);
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { tpm: 1000 } });
    const key = bucketKey(repo.namespaceId, "key-1", "gpt-4", 0);
    const before = await store.get(key, { consistent: true });
    const rf = before?.rf as number;
    const aggregator = aggregatorWith({ nowMs: rf + 12_000 });
    expect((await aggregator.process(changes)).counters.refills).toBe(1);
    const after = await store.get(key, { consistent: true });
    expect(after?.b_tpm_tk).toBe((before?.b_tpm_tk as number) + 2_000_000);
    expect(after?.rf).toBe(rf + 12_000);
  });

  test("an entity's buckets of two resources and two shards are found by the entity (op 83)", async () => {
    const repo = await newNamespace();
    const limiter = new RateLimiter(repo);
    for (const resource of ["gpt-3", "gpt-4"]) {
      await limiter.acquire({ entityId: "key-1", resource, consume: { rpm: 1 } });
      const [first] = await Promise.all([
        store.get(bucketKey(repo.namespaceId, "key-1", resource, 0), { consistent: true }),
      ]);
      const other = bucketKey(repo.namespaceId, "key-1", resource, 1);
      await store.put({
        ...(first as NonNullable<typeof first>),
        ...other,
        GSI3SK: `BUCKET#${resource}#1`,
      });
    }
    const found: string[] = [];
    const partition = `${repo.namespaceId}/ENTITY#key-1`;
    for await (const { PK } of store.query({ index: "GSI3", partition })) found.push(PK);
    expect(found.map((PK) => PK.split("#").slice(1).join("#")).toSorted()).toEqual([
      "key-1#gpt-3#0",
      "key-1#gpt-3#1",
      "key-1#gpt-4#0",
      "key-1#gpt-4#1",
    ]);
  });

  test("the aggregator as a process follows the stream, and archives removed audit events", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-archive-"));
    const stop = new AbortController();
    const lines: Record<string, unknown>[] = [];
    const running = runAggregator(`dynamodb://${table}?endpoint=${endpoint}`, {
      archive: folder,
      leaseSeconds: 1,
      batchMs: 100,
      signal: stop.signal,
      write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
      connection: { timeoutMs: TIMEOUT_MS },
    });
    try {
      const repo = await newNamespace();
      await repo.entities.create({ id: "key-1", principal: "ops" });
      const limiter = new RateLimiter(repo);
      await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 7 } });
      const [event] = await repo.audit.list("key-1");
      const SK = `#AUDIT#${event?.eventId}`;
      await store.delete({ PK: `${repo.namespaceId}/AUDIT#key-1`, SK });
      const archived = () =>
        readdirSync(folder, { recursive: true })
          .map(String)
          .filter((file) => file.endsWith(`${event?.eventId}.jsonl.gz`));
      const used = async () =>
        (await repo.usage.summary({ entityId: "key-1", window: "daily" })).total.rpm;
      while ((await used()) !== 7 || archived().length === 0) await pause(50);
      const [file] = archived();
      const text = gunzipSync(readFileSync(join(folder, file as string))).toString();
      expect(JSON.parse(text)).toMatchObject({
        namespace_id: repo.namespaceId,
        event_id: event?.eventId,
        entity_id: "key-1",
        action: "entity_created",
        principal: "ops",
      });
    } finally {
      stop.abort();
      const counters = await running;
      rmSync(folder, { recursive: true });
      expect(counters.failures).toBe(0);
      expect(lines.at(-1)).toMatchObject({ level: "info", message: "aggregator stopped" });
    }
  });

  test("the aggregator counts nothing from before a deletion or a purge, and what comes after", async () => {
    const repo = await newNamespace();
    const purged = await newNamespace();
    const acquire = (from: Repository, entityId: string, tpm: number) =>
      new RateLimiter(from).acquire({ entityId, resource: "gpt-4", consume: { tpm } });
    const tokens = async (entityId: string) =>
      (await repo.usage.summary({ entityId, window: "hourly" })).total.tpm;
    await acquire(repo, "key-1", 5);
    await acquire(repo, "key-2", 7);
    await acquire(purged, "key-1", 9);
    await repo.entities.delete("key-1");
    await root.namespaces.delete(purged.namespaceName);
    await root.namespaces.purge(purged.namespaceId);
    await pause(5);
    await acquire(repo, "key-1", 3);
    const aggregator = aggregatorWith();
    for (const changes of [await changesOf(repo), await changesOf(purged)]) {
      expect(changes.length).toBeGreaterThan(0);
      expect((await aggregator.process(changes)).failedIds).toEqual([]);
    }
    expect(await tokens("key-1")).toBe(3);
    expect(await tokens("key-2")).toBe(7);
    const left: string[] = [];
    const query = { index: "GSI4", partition: purged.namespaceId } as const;
    for await (const { PK } of store.query(query)) left.push(PK);
    expect(left).toEqual([]);
  });
});
