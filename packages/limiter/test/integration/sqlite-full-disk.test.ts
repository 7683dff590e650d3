/** A disk that is full, by SQLite's own limit on the pages of a file. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { SqliteDatabase } from "@zae-limiter/limiter/storage/sqlite/database.ts";
import { SqliteItemStore } from "@zae-limiter/limiter/storage/sqlite/item-store.ts";
import { afterEach, expect, test, vi } from "vitest";

const folders: string[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

test("a full disk is an outage in which nothing is written, and it ends with the room", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  folders.push(folder);
  const database = await SqliteDatabase.open({ path: join(folder, "limits.db") });
  const store = new SqliteItemStore(database, {});
  const pages = Number(database.prepare("PRAGMA page_count").get()?.page_count);
  database.exec(`PRAGMA max_page_count = ${pages + 8}`);
  let written = 0;
  let failure: unknown;
  while (failure === undefined && written < 1000) {
    try {
      await store.put({ PK: `p-${written}`, SK: "s", text: "x".repeat(2000) });
      written += 1;
    } catch (error) {
      failure = error;
    }
  }
  expect(failure).toBeInstanceOf(RateLimiterUnavailable);
  expect(failure).toMatchObject({ reason: "server", nothingWritten: true });
  expect((failure as Error).message).toContain("the disk is full");
  expect(await store.get({ PK: `p-${written}`, SK: "s" })).toBeUndefined();
  expect(await store.get({ PK: `p-${written - 1}`, SK: "s" })).toBeDefined();
  database.exec(`PRAGMA max_page_count = ${pages + 1000}`);
  await store.put({ PK: `p-${written}`, SK: "s", text: "x".repeat(2000) });
  expect(await store.get({ PK: `p-${written}`, SK: "s" })).toBeDefined();
  await store.close();
});

const REQUEST = { entityId: "user-1", resource: "api", consume: { rpd: 1 } };

async function limiterOnFile() {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  folders.push(folder);
  const path = join(folder, "limits.db");
  const limiter = await RateLimiter.open(`sqlite:${path}`, { onUnavailable: "allow" });
  await limiter.repository.limits.setSystem(["rpd:100/day"]);
  // The first call makes the bucket, the second finds it as it was seen.
  for (let call = 0; call < 2; call += 1) await limiter.acquire(REQUEST);
  const consumed = async () => {
    const [bucket] = await limiter.repository.buckets.list("user-1");
    return bucket?.totalConsumed;
  };
  return { path, limiter, consumed };
}

test("an acquire that fails on the fast path is not counted by the next one", async () => {
  const { path, limiter, consumed } = await limiterOnFile();
  const other = await SqliteDatabase.open({ path });
  const refuse = `CREATE TRIGGER refuse BEFORE UPDATE ON buckets
    BEGIN SELECT RAISE(ABORT, 'no writes for now'); END`;
  await other.write(() => other.exec(refuse));
  for (let call = 0; call < 3; call += 1) {
    await expect(limiter.acquire(REQUEST)).rejects.toThrow("no writes for now");
  }
  await other.write(() => other.exec("DROP TRIGGER refuse"));
  other.close();
  await limiter.acquire(REQUEST);
  expect(await consumed()).toBe(3);
  await limiter.close();
});

test("a full disk on the fast path is covered by `allow`", async () => {
  const { limiter, consumed } = await limiterOnFile();
  const full = () => {
    throw new RateLimiterUnavailable("the disk is full", { nothingWritten: true });
  };
  const fast = vi.spyOn(SqliteDatabase.prototype, "tryRun").mockImplementation(full);
  vi.spyOn(SqliteDatabase.prototype, "write").mockImplementationOnce(async () => full());
  expect((await limiter.acquire(REQUEST)).degraded).toBe(true);
  expect(fast).toHaveBeenCalledTimes(1);
  vi.restoreAllMocks();
  expect((await limiter.acquire(REQUEST)).degraded).toBe(false);
  expect(await consumed()).toBe(3);
  await limiter.close();
});
