/** A disk that is full, by SQLite's own limit on the pages of a file. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { RateLimiterUnavailable } from "../../src/domain/errors.ts";
import { SqliteDatabase } from "../../src/storage/sqlite/database.ts";
import { SqliteItemStore } from "../../src/storage/sqlite/item-store.ts";

const folders: string[] = [];
afterEach(() => {
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
