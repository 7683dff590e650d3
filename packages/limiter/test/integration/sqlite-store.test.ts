/** The item store on a file, beyond the contract of all stores. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type {
  ChangeRecord,
  ChangesOptions,
  StoreCall,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import type { SqliteDatabase } from "@zae-limiter/limiter/storage/sqlite/database.ts";
import type { SqliteItemStore } from "@zae-limiter/limiter/storage/sqlite/item-store.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

let directory: string;
let nowMs: number;
let database: SqliteDatabase;
let store: SqliteItemStore;
/** Another connection to the same file, as another process would have. */
let other: SqliteItemStore;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  nowMs = Date.now();
  const options = { path: join(directory, "limits.db"), clock: () => nowMs };
  ({ store, database } = await openSqlite(options));
  other = (await openSqlite(options)).store;
});

afterEach(async () => {
  await store.close();
  await other.close();
  rmSync(directory, { recursive: true });
});

function rowsOf(table: string): Promise<unknown> {
  return database.read(() => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
}

async function collect<T>(iterable: AsyncIterable<T>, count = Number.POSITIVE_INFINITY) {
  const all: T[] = [];
  if (count === 0) return all;
  for await (const each of iterable) {
    all.push(each);
    if (all.length === count) break;
  }
  return all;
}

/** Sort keys of the items that changed, as the feed reports them. */
async function changed(from: ChangesOptions["from"], count: number): Promise<string[]> {
  const options: ChangesOptions = from === undefined ? {} : { from };
  return (await collect(store.changes(options), count)).map(({ key }) => key.SK);
}

const item = (SK: string, attributes: Record<string, Item[string]> = {}): Item => ({
  PK: "p",
  SK,
  ...attributes,
});

describe("expiry", () => {
  test("items go a few at a time, by later writes, oldest first", async () => {
    const ttl = Math.floor(nowMs / 1000) + 60;
    for (const at of [3, 1, 2, 5, 4]) await store.put(item(`${at}`, { ttl: ttl + at }));
    nowMs += 2 * MINUTE_MS;
    expect(await store.get(item("1"))).toBeDefined();
    await store.put(item("x"));
    expect((await collect(store.query({ partition: "p" }))).map(({ SK }) => SK)).toStrictEqual([
      "3",
      "4",
      "5",
      "x",
    ]);
    await other.put(item("y"));
    await other.put(item("z"));
    expect((await collect(store.query({ partition: "p" }))).map(({ SK }) => SK)).toStrictEqual([
      "x",
      "y",
      "z",
    ]);
    const records = await collect(store.changes({ from: "oldest" }), 13);
    expect(records.filter(({ expired }) => expired).map(({ key }) => key.SK)).toStrictEqual([
      "1",
      "2",
      "3",
      "4",
      "5",
    ]);
    expect(records.find(({ expired }) => expired)).toMatchObject({
      before: item("1", { ttl: ttl + 1 }),
      after: undefined,
      atMs: nowMs,
    });
  });

  test("an item that has expired when it is written is removed by the next write", async () => {
    await store.put(item("x"));
    await store.put(item("over", { ttl: Math.floor(nowMs / 1000) - 1 }));
    await store.put(item("y"));
    expect(await store.get(item("over"))).toBeUndefined();
  });

  test("a batch takes its part of the work", async () => {
    const ttl = Math.floor(nowMs / 1000) + 60;
    const mortal = Array.from({ length: 600 }, (_, at) => item(`mortal-${at}`, { ttl }));
    await store.writeMany({ puts: mortal });
    nowMs += 2 * MINUTE_MS;
    await store.writeMany({ puts: Array.from({ length: 300 }, (_, at) => item(`${at}`)) });
    expect(await rowsOf("items")).toBe(300);
  });
});

describe("the feed", () => {
  test("the feed is trimmed after a day, a few records at a time", async () => {
    for (const at of [1, 2, 3, 4, 5, 6]) await store.put(item(`${at}`));
    nowMs += 25 * HOUR_MS;
    await store.put(item("7"));
    expect(await changed("oldest", 3)).toStrictEqual(["5", "6", "7"]);
    await store.put(item("8"));
    expect(await changed("oldest", 2)).toStrictEqual(["7", "8"]);
    expect(await rowsOf("changes")).toBe(2);
  });

  test("the feed keeps its numbers when everything old is gone", async () => {
    await store.put(item("1"));
    const [first] = await collect(store.changes({ from: "oldest" }), 1);
    nowMs += 25 * HOUR_MS;
    await other.put(item("2"));
    nowMs += 25 * HOUR_MS;
    await other.put(item("3"));
    const [third] = await collect(store.changes({ from: "oldest" }), 1);
    expect(Number(third?.sequence) - Number(first?.sequence)).toBe(2);
  });

  test("the feed refuses a position whose successors are gone", async () => {
    for (const at of [1, 2, 3]) await store.put(item(`${at}`));
    const [first, second] = await collect(store.changes({ from: "oldest" }), 2);
    nowMs += 25 * HOUR_MS;
    await store.put(item("4"));
    const following = (record: ChangeRecord | undefined) =>
      changed({ after: record?.position ?? "" }, 1);
    await expect(following(first)).rejects.toThrow(ValidationError);
    await expect(following(second)).rejects.toThrow("these changes are not kept any more");
  });

  test.each(["", "text", "-1", "1.5", "0000000000000009"])(
    "the feed refuses %j, which is no position of this file",
    async (position) => {
      await store.put(item("1"));
      await expect(changed({ after: position }, 1)).rejects.toThrow(ValidationError);
    },
  );

  test("the feed shows what another process changes", async () => {
    const next = changed("now", 2);
    await other.put(item("1"));
    await other.put(item("2"));
    expect(await next).toStrictEqual(["1", "2"]);
  });

  test("the feed shows at once what this process changes", async () => {
    // A feed whose timer never fires does not read by itself.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      const next = changed("now", 1);
      while (vi.getTimerCount() === 0) await turn();
      await store.put(item("1"));
      expect(await next).toStrictEqual(["1"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("the feed can be left while it waits", async () => {
    const feed = store.changes();
    const next = feed.next();
    await feed.return?.();
    expect(await next).toStrictEqual({ done: true, value: undefined });
  });

  test("the feed is read in pages", async () => {
    await store.writeMany({ puts: Array.from({ length: 350 }, (_, at) => item(`${at}`)) });
    expect(await changed("oldest", 350)).toHaveLength(350);
  });
});

describe("transactions", () => {
  test("tokens are forgotten after ten minutes", async () => {
    const count = async (token: string) => {
      await store.transact([{ update: item("n"), change: { add: { n: 1 } } }], { token });
      return (await other.get(item("n")))?.n;
    };
    expect(await count("a")).toBe(1);
    nowMs += 10 * MINUTE_MS - 1;
    expect(await count("a")).toBe(1);
    nowMs += 1;
    expect(await count("a")).toBe(2);
    for (const token of ["b", "c", "d"]) await count(token);
    expect(await rowsOf("tokens")).toBe(4);
    nowMs += 10 * MINUTE_MS;
    await count("e");
    expect(await rowsOf("tokens")).toBe(1);
  });

  test("a token works between processes", async () => {
    const writes = [{ update: item("n"), change: { add: { n: 1 } } }];
    await store.transact(writes, { token: "a" });
    expect(await other.transact(writes, { token: "a" })).toStrictEqual({ ok: true });
    expect(await store.get(item("n"))).toStrictEqual(item("n", { n: 1 }));
  });

  test("a refused one may be tried again with its token", async () => {
    const writes = [
      { update: item("n"), change: { add: { n: 1 } }, condition: [{ is: "exists", name: "n" }] },
    ] as const;
    expect(await store.transact(writes, { token: "a" })).toMatchObject({ ok: false });
    await store.put(item("n", { n: 1 }));
    expect(await store.transact(writes, { token: "a" })).toStrictEqual({ ok: true });
    expect(await store.get(item("n"))).toStrictEqual(item("n", { n: 2 }));
  });
});

describe("queries", () => {
  test("prefixes end where the alphabet does", async () => {
    const keys = ["a", "a\u{10ffff}", "a\u{10ffff}b", "b", "\ud7ff", "\ue000", "\u{10ffff}x"];
    await store.writeMany({ puts: keys.map((SK) => item(SK)) });
    const found = async (beginsWith: string) =>
      (await collect(store.query({ partition: "p", sort: { beginsWith } }))).map(({ SK }) => SK);
    expect(await found("a")).toStrictEqual(["a", "a\u{10ffff}", "a\u{10ffff}b"]);
    expect(await found("a\u{10ffff}")).toStrictEqual(["a\u{10ffff}", "a\u{10ffff}b"]);
    expect(await found("\u{10ffff}")).toStrictEqual(["\u{10ffff}x"]);
    expect(await found("\ud7ff")).toStrictEqual(["\ud7ff"]);
    expect(await found("")).toStrictEqual([
      "a",
      "a\u{10ffff}",
      "a\u{10ffff}b",
      "b",
      "\ud7ff",
      "\ue000",
      "\u{10ffff}x",
    ]);
  });

  test("every page is found through an index", async () => {
    const plans: string[] = [];
    const prepare = database.prepare.bind(database);
    database.prepare = (sql) => {
      if (/FROM items WHERE .* LIMIT/s.test(sql)) {
        const values = Array.from(sql.matchAll(/\?/g), () => "");
        for (const { detail } of prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values)) {
          plans.push(String(detail));
        }
      }
      return prepare(sql);
    };
    await store.writeMany({
      puts: Array.from({ length: 450 }, (_, at) =>
        item(`${at}`, { GSI1PK: "g", GSI1SK: `${at}`, GSI2PK: "g", GSI2SK: "same" }),
      ),
    });
    for (const index of [undefined, "GSI1", "GSI2"] as const) {
      for (const descending of [false, true]) {
        const partition = index === undefined ? "p" : "g";
        const query = { partition, sort: { from: "0", to: "z" }, descending };
        const items = store.query(index === undefined ? query : { ...query, index });
        expect(await collect(items)).toHaveLength(450);
      }
    }
    expect(plans.length).toBeGreaterThanOrEqual(18);
    for (const plan of plans) expect(plan).toMatch(/^SEARCH items USING/);
    // Keys alone are read from the index, and the row after a place is looked up, not counted off.
    expect(plans).toContain(
      "SEARCH items USING COVERING INDEX items_gsi2 " +
        "(gsi2pk=? AND (gsi2sk,pk,sk)>(?,?,?) AND gsi2sk<?)",
    );
  });
});

test("calls of a store are counted", async () => {
  const calls: StoreCall[] = [];
  const path = join(directory, "counted.db");
  const { store: counted } = await openSqlite({ path, onCall: (call) => calls.push(call) });
  await counted.put(item("1"));
  await counted.get(item("1"));
  await collect(counted.query({ partition: "p" }));
  await counted.close();
  expect(calls.map(({ operation }) => operation)).toStrictEqual(["put", "get", "query"]);
});

test("a hundred thousand items load while another process writes", async () => {
  const puts = Array.from({ length: 100_000 }, (_, at) => item(`${at}`, { n: at }));
  let isLoading = true;
  const loading = store.writeMany({ puts }).finally(() => {
    isLoading = false;
  });
  let meanwhile = 0;
  for (; isLoading; meanwhile += 1) await other.update(item("n"), { add: { n: 1 } });
  await loading;
  expect(await rowsOf("items")).toBe(100_001);
  expect(meanwhile).toBeGreaterThan(100);
});
