/** The DynamoDB adapter on every engine: its table, what calls cost, and how its feed ends. */

import {
  InfrastructureError,
  InfrastructureNotFoundError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import {
  type ChangeRecord,
  type ChangesOptions,
  ITEM_ABSENT,
  ITEM_EXISTS,
  type StoreCall,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { INDEX_NAMES } from "@zae-limiter/limiter/storage/table.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** DynamoDB Local is slow on a busy machine. */
const TIMEOUT_MS = 20_000;

/** A bucket as the limiter writes it: in three indexes. */
const BUCKET: Item = {
  PK: "ns/BUCKET#user#gpt#0",
  SK: "#STATE",
  GSI2PK: "ns/RESOURCE#gpt",
  GSI2SK: "BUCKET#user#0",
  GSI3PK: "ns/ENTITY#user",
  GSI3SK: "BUCKET#gpt#0",
  GSI4PK: "ns",
  GSI4SK: "BUCKET#user#gpt#0",
  b_rpm_tk: 100_000,
};

async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of iterable) all.push(one);
  return all;
}

/** A table for the tests around, and a store on it that counts its calls. */
function withTable(
  { endpoint }: RunningEngine,
  shape: { gsi2Projection?: "ALL"; lsis?: boolean } = {},
) {
  const table = `store-${crypto.randomUUID()}`;
  const calls: StoreCall[] = [];
  const store = new DynamoItemStore({
    table,
    endpoint,
    timeoutMs: TIMEOUT_MS,
    onCall: (call) => calls.push(call),
  });
  beforeAll(() => createTable({ table, endpoint, ...shape }));
  afterAll(async () => {
    await store.close();
    await deleteTable({ table, endpoint });
  });
  /** Returns the requests that a call made, with their costs. */
  const costOf = async (call: () => Promise<unknown>): Promise<StoreCall[]> => {
    calls.length = 0;
    await call();
    return [...calls];
  };
  return { store, table, costOf };
}

function cost(operation: string, units: Partial<StoreCall>): StoreCall {
  return {
    operation,
    readUnits: 0,
    writeUnits: 0,
    indexUnits: 0,
    estimated: false,
    outcome: units.estimated === true ? "condition" : "ok",
    attempt: 1,
    durationMs: expect.any(Number),
    ...units,
  };
}

describeEngines("DynamoDB store", (engine) => {
  const { endpoint } = engine;

  describe("its table", () => {
    it("the table of a store is created and deleted any number of times", async () => {
      const table = `store-${crypto.randomUUID()}`;
      await Promise.all([createTable({ table, endpoint }), createTable({ table, endpoint })]);
      await createTable({ table, endpoint });
      const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      await store.put({ PK: "p", SK: "s" });
      await createTable({ table, endpoint });
      expect(await store.get({ PK: "p", SK: "s" })).toStrictEqual({ PK: "p", SK: "s" });
      await deleteTable({ table, endpoint });
      await deleteTable({ table, endpoint });
      await expect(store.get({ PK: "p", SK: "s" })).rejects.toThrow(InfrastructureNotFoundError);
      await store.close();
    });

    it("a missing table is reported by every call", async () => {
      const table = `missing-${crypto.randomUUID()}`;
      const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      const key = { PK: "p", SK: "s" };
      const calls = [
        store.get(key),
        store.getMany([key]),
        store.getMany([key], { snapshot: true }),
        store.put(key),
        store.update(key, { set: { a: 1 } }),
        store.delete(key),
        store.transact([{ put: key }]),
        store.writeMany({ puts: [key] }),
        collect(store.query({ partition: "p" })),
        collect(store.changes()),
      ];
      for (const [index, outcome] of (await Promise.allSettled(calls)).entries()) {
        const reason = outcome.status === "rejected" ? outcome.reason : "it went well";
        expect(reason, `call ${index}`).toBeInstanceOf(InfrastructureNotFoundError);
        expect(reason).toMatchObject({
          stackName: table,
          cause: { name: "ResourceNotFoundException" },
        });
      }
      await store.close();
    });
  });

  describe("a table in the shape of the reference", () => {
    const { store, costOf } = withTable(engine, { gsi2Projection: "ALL", lsis: true });

    it("a table in the shape of the reference takes every call", async () => {
      const key = { PK: BUCKET.PK, SK: BUCKET.SK };
      expect(await store.put(BUCKET, [ITEM_ABSENT])).toStrictEqual({ ok: true, item: undefined });
      const { item } = await store.update(key, { add: { b_rpm_tk: -1 } }, [ITEM_EXISTS]);
      expect(item).toStrictEqual({ ...BUCKET, b_rpm_tk: 99_999 });
      expect(await store.put(BUCKET, [ITEM_ABSENT])).toStrictEqual({ ok: false, item });
      expect(await store.get(key, { consistent: true })).toStrictEqual(item);
      const other = { PK: "ns/other", SK: "#META", LSI1SK: "one", GSI1PK: "g", GSI1SK: "s" };
      await store.writeMany({ puts: [other] });
      const both = await store.getMany([other, key, other], { consistent: true });
      expect(both).toStrictEqual([other, item, other]);
      expect(await store.getMany([key, other], { snapshot: true })).toStrictEqual([item, other]);
      const blocked = await store.transact([
        { check: key, condition: [ITEM_EXISTS] },
        { update: other, change: { set: { a: 1 } }, condition: [ITEM_ABSENT] },
      ]);
      expect(blocked).toStrictEqual({ ok: false, failures: new Map([[1, { item: other }]]) });
      expect(await store.delete(other)).toStrictEqual({ ok: true, item: other });
    });

    it("the indexes of a table of the Python library return what ours would", async () => {
      await store.put(BUCKET);
      for (const index of INDEX_NAMES.slice(1)) {
        const [partition, sort] = [`${index}PK`, `${index}SK`] as const;
        const items = await collect(store.query({ index, partition: String(BUCKET[partition]) }));
        expect(items).toStrictEqual([
          {
            PK: BUCKET.PK,
            SK: BUCKET.SK,
            [partition]: BUCKET[partition],
            [sort]: BUCKET[sort],
          },
        ]);
      }
    });

    it("a table in the shape of the reference costs twice as much to change", async () => {
      await store.put(BUCKET);
      expect(await costOf(() => store.update(BUCKET, { add: { b_rpm_tk: -1 } }))).toStrictEqual([
        cost("UpdateItem", { writeUnits: 2, indexUnits: 1 }),
      ]);
    });
  });

  describe("what calls cost", () => {
    const { store, costOf } = withTable(engine);
    beforeAll(async () => {
      await store.put(BUCKET);
      await store.put({ PK: "big", SK: "#STATE", text: "x".repeat(2500) });
    });

    it("a change that no index copies costs one unit", async () => {
      expect(await costOf(() => store.update(BUCKET, { add: { b_rpm_tk: -1 } }))).toStrictEqual([
        cost("UpdateItem", { writeUnits: 1 }),
      ]);
    });

    it("a new item costs one unit more for each index that it is in", async () => {
      const item = { ...BUCKET, PK: "ns/BUCKET#other#gpt#0" };
      expect(await costOf(() => store.put(item))).toStrictEqual([
        cost("PutItem", { writeUnits: 4, indexUnits: 3 }),
      ]);
    });

    it("a read costs by the size and the consistency", async () => {
      expect(await costOf(() => store.get(BUCKET, { consistent: true }))).toStrictEqual([
        cost("GetItem", { readUnits: 1 }),
      ]);
      expect(await costOf(() => store.getMany([BUCKET]))).toStrictEqual([
        cost("BatchGetItem", { readUnits: 0.5 }),
      ]);
      expect(await costOf(() => store.getMany([BUCKET], { snapshot: true }))).toStrictEqual([
        cost("TransactGetItems", { readUnits: 2 }),
      ]);
      const query = { index: "GSI3", partition: "ns/ENTITY#user" } as const;
      expect(await costOf(() => collect(store.query(query)))).toStrictEqual([
        cost("Query", { readUnits: 0.5, indexUnits: 0.5 }),
      ]);
    });

    it("a transaction costs double, unless it is a single write", async () => {
      const write = { update: BUCKET, change: { add: { b_rpm_tk: 1 } } };
      const token = crypto.randomUUID();
      expect(await costOf(() => store.transact([write], { token }))).toStrictEqual([
        cost("TransactWriteItems", { writeUnits: 2 }),
      ]);
      expect(await costOf(() => store.transact([write]))).toStrictEqual([
        cost("UpdateItem", { writeUnits: 1 }),
      ]);
      expect(await costOf(() => store.transact([]))).toStrictEqual([]);
    });

    it("a refused condition costs what the stored item weighs", async () => {
      const big = { PK: "big", SK: "#STATE" };
      expect(await costOf(() => store.put(big, [ITEM_ABSENT]))).toStrictEqual([
        cost("PutItem", { writeUnits: 3, estimated: true }),
      ]);
      const missing = { PK: "missing", SK: "#STATE" };
      expect(
        await costOf(() => store.update(missing, { add: { n: 1 } }, [ITEM_EXISTS])),
      ).toStrictEqual([cost("UpdateItem", { writeUnits: 1, estimated: true })]);
    });

    it("a batch costs one request for each hundred keys and each 25 writes", async () => {
      const items = Array.from({ length: 130 }, (_, at) => ({ PK: "many", SK: `#${at}` }));
      const written = await costOf(() => store.writeMany({ puts: items }));
      expect(written.map((call) => call.operation)).toStrictEqual(
        Array.from({ length: 6 }, () => "BatchWriteItem"),
      );
      const read = await costOf(async () => {
        expect(await store.getMany([...items, ...items])).toStrictEqual([...items, ...items]);
      });
      expect(read.map((call) => call.operation)).toStrictEqual(["BatchGetItem", "BatchGetItem"]);
    });
  });

  describe("its feed", () => {
    const { store, table } = withTable(engine);

    it("the feed of a store ends when it is broken off while it waits", async () => {
      const feed = store.changes()[Symbol.asyncIterator]();
      const waiting = feed.next();
      await feed.return?.();
      expect(await waiting).toStrictEqual({ done: true, value: undefined });
    });

    it("the feed of a store ends with the store", async () => {
      const other = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      const waiting = collect(other.changes());
      await other.get({ PK: "p", SK: "s" });
      await other.close();
      expect(await waiting).toStrictEqual([]);
      await expect(other.get({ PK: "p", SK: "s" })).rejects.toThrow(InfrastructureError);
    });

    it("the feed of a store goes on after a position", async () => {
      const next = async (from: ChangesOptions["from"]): Promise<ChangeRecord> => {
        for await (const record of store.changes({ from: from ?? "now" })) return record;
        throw new Error("The feed ended");
      };
      for (const n of [1, 2, 3]) await store.put({ PK: "feed", SK: "s", n });
      const first = await next("oldest");
      const second = await next({ after: first.position });
      const third = await next({ after: second.position });
      expect([first, second, third].map(({ after }) => after?.n)).toStrictEqual([1, 2, 3]);
    });

    it.each(["", "1", "[]", '{"shard":{}}', '{"shard":"@x"}'])(
      "the feed of a store does not take %j for a position",
      async (after) => {
        await expect(collect(store.changes({ from: { after } }))).rejects.toThrow("position");
      },
    );
  });
});
