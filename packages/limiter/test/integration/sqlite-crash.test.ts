/** A process that is killed loses nothing that was acknowledged, and leaves nothing half done. */

import { join } from "node:path";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ChangeRecord } from "@zae-limiter/limiter/storage/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import type { SqliteItemStore } from "@zae-limiter/limiter/storage/sqlite/item-store.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, test } from "vitest";
import { Child, SCRIPTS } from "./sqlite/child.ts";

/** Enough rows in the last round to pass checkpoints of the write-ahead log. */
const ROUNDS = [5, 30, 101, 700];
const BATCH = 50;

const build = builtSources();
const directory = temporaryFolder();

/** Keys that a child reported as stored before it was killed. */
async function acknowledged(path: string, round: number, count: number): Promise<string[]> {
  const child = new Child(SCRIPTS.put, [build.open, path, String(round)]);
  const keys: string[] = [];
  while (keys.length < count) keys.push((await child.answer()) as string);
  await child.kill();
  // Reports that were on the way when it was killed count, too.
  for await (const line of child.lines) {
    if (line.endsWith('"')) keys.push(JSON.parse(line) as string);
  }
  return keys;
}

async function collect(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The newest state of each item according to the feed. */
async function replayed(store: SqliteItemStore, last: string): Promise<Map<string, Item>> {
  const items = new Map<string, Item>();
  for await (const { key, after, position } of store.changes({ from: "oldest" })) {
    if (after !== undefined) items.set(`${key.PK} ${key.SK}`, after);
    if (position === last) break;
  }
  return items;
}

test("nothing that was acknowledged is lost by kill -9", async () => {
  const path = join(directory, "limits.db");
  const keys: string[] = [];
  for (const [round, count] of ROUNDS.entries()) {
    keys.push(...(await acknowledged(path, round, count)));
  }

  const { store, database } = await openSqlite({ path });
  const stored = await collect(store.query({ partition: "put" }));
  const found = new Set(stored.map(({ SK }) => SK));
  expect(keys.filter((key) => !found.has(key))).toStrictEqual([]);
  // The write that each killed child was about may be there without a report.
  expect(found.size - keys.length).toBeLessThanOrEqual(ROUNDS.length);

  for (const key of keys.filter((name) => name.endsWith("9"))) {
    expect(await collect(store.query({ partition: `batch ${key}` }))).toHaveLength(BATCH);
  }
  const check = await database.read(() => database.prepare("PRAGMA integrity_check").get());
  expect(check?.integrity_check).toBe("ok");

  const feed = store.changes();
  const next = feed.next();
  await store.put({ PK: "last", SK: "last" });
  const last = (await next).value as ChangeRecord;
  const items = await replayed(store, last.position);
  expect(stored.filter(({ PK, SK }) => !items.has(`${PK} ${SK}`))).toStrictEqual([]);
  await store.close();
});
