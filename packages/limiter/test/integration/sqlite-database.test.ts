/** One file: how it is opened, what a transaction promises, and which writer waits. */

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  InfrastructureError,
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { SqliteDatabase } from "@zae-limiter/limiter/storage/sqlite/database.ts";
import { type Connection, loadDriver } from "@zae-limiter/limiter/storage/sqlite/driver.ts";
import { MIGRATIONS } from "@zae-limiter/limiter/storage/sqlite/migrations.ts";
import { prepareFile } from "@zae-limiter/limiter/storage/sqlite/schema.ts";
import { BUSY } from "@zae-limiter/limiter/storage/sqlite/write-queue.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

let directory: string;
let path: string;
const opened: { close(): unknown }[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  path = join(directory, "limits.db");
});

afterEach(() => {
  vi.restoreAllMocks();
  for (const each of opened.splice(0)) each.close();
  rmSync(directory, { recursive: true });
});

async function open(options: { timeoutMs?: number } = {}): Promise<SqliteDatabase> {
  const database = await SqliteDatabase.open({ path, ...options });
  opened.push(database);
  return database;
}

/**
 * The file without the rest of the library, but with its driver: two drivers in one process would
 * miss each other's locks.
 */
async function raw(): Promise<Connection> {
  const connection = (await loadDriver())(path);
  opened.push(connection);
  return connection;
}

/** Takes the lock of the file until the returned function is called. */
async function lock(): Promise<() => void> {
  const connection = await raw();
  connection.exec("BEGIN IMMEDIATE");
  return () => connection.exec("COMMIT");
}

/** Does something that is visible in the file. */
function remember(database: SqliteDatabase, token: string): () => string {
  return () => {
    database.prepare("INSERT INTO tokens (token, at) VALUES (?, ?)").run(token, 0);
    return token;
  };
}

function remembered(database: SqliteDatabase): Promise<unknown[]> {
  const sql = "SELECT token FROM tokens ORDER BY token";
  return database.read(() =>
    database
      .prepare(sql)
      .all()
      .map(({ token }) => token),
  );
}

async function refusalOf(call: Promise<unknown>): Promise<Error> {
  const error = await call.then(
    () => new Error("It was not refused"),
    (reason: Error) => reason,
  );
  // A machine path has no place in an expectation.
  error.message = error.message.replaceAll(directory, "");
  return error;
}

describe("opening", () => {
  test("opening creates the file and its folders", async () => {
    path = join(directory, "some", "folders", "limits.db");
    await open();
    expect(existsSync(path)).toBe(true);
  });

  test("opening a second time changes nothing", async () => {
    (await open()).close();
    const before = readFileSync(path);
    (await open()).close();
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("opening brings back the write-ahead log of a copy that lost it", async () => {
    await (await open()).write(() => undefined);
    const copy = join(directory, "copy.db");
    (await raw()).exec(`VACUUM INTO '${copy}'`);
    path = copy;
    const database = await open();
    const mode = await database.read(() => database.prepare("PRAGMA journal_mode").get());
    expect(mode?.journal_mode).toBe("wal");
  });

  test.each(["", ":memory:"])("opening needs a file, not %j", async (name) => {
    path = name;
    expect(await refusalOf(open())).toBeInstanceOf(ValidationError);
  });

  test("opening refuses what is not a database", async () => {
    writeFileSync(path, "text ".repeat(1000));
    const error = await refusalOf(open());
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error.message).toBe('The file "/limits.db" is not a SQLite database');
    expect(error.cause).toBeInstanceOf(Error);
    expect(readFileSync(path, "utf8")).toBe("text ".repeat(1000));
  });

  test("opening refuses the database of another application", async () => {
    (await raw()).exec("CREATE TABLE recipes (name TEXT)");
    const error = await refusalOf(open());
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error.message).toBe(
      'The file "/limits.db" is a SQLite database of another application; choose another file',
    );
  });

  test("opening refuses a file of a newer version", async () => {
    (await open()).close();
    (await raw()).exec("PRAGMA user_version = 99");
    const error = await refusalOf(open());
    expect(error).toBeInstanceOf(IncompatibleSchemaError);
    const latest = MIGRATIONS.at(-1)?.version;
    expect(error).toMatchObject({ clientVersion: String(latest), schemaVersion: "99" });
    expect(error.message).toContain("newer version of zae-limiter");
  });

  test("a client of an older version writes no more once a newer one has migrated the file", async () => {
    const [database, { store }] = [await open(), await openSqlite({ path })];
    opened.push(store);
    const newer = [...MIGRATIONS, { version: 99, reason: "new", sql: "CREATE TABLE new (a)" }];
    prepareFile(await raw(), path, newer);
    vi.spyOn(performance, "now").mockReturnValue(performance.now() + 100);
    const written = database.write(remember(database, "late"));
    await expect(written).rejects.toBeInstanceOf(IncompatibleSchemaError);
    const insert = "INSERT INTO tokens (token, at) VALUES ('late', 0)";
    expect(() => database.tryRun(insert)).toThrow(IncompatibleSchemaError);
    await expect(store.put({ PK: "a", SK: "b" })).rejects.toThrow("newer version of zae-limiter");
    vi.restoreAllMocks();
    expect(await remembered(database)).toEqual([]);
  });

  test("opening brings a file of an older version up to date", async () => {
    const newer = { version: 99, reason: "a test", sql: "CREATE TABLE newer (name TEXT)" };
    const database = await open();
    await database.write(remember(database, "a"));
    const connection = await raw();
    prepareFile(connection, path, [...MIGRATIONS, newer]);
    expect(connection.prepare("SELECT token FROM tokens").get()?.token).toBe("a");
    expect(connection.prepare("SELECT count(*) AS n FROM newer").get()?.n).toBe(0);
    expect(connection.prepare("PRAGMA user_version").get()?.user_version).toBe(99);
  });

  test("opening leaves a file as it was when a migration fails", async () => {
    (await open()).close();
    const broken = { version: 99, reason: "a test", sql: "CREATE TABLE newer (n); nonsense" };
    const connection = await raw();
    expect(() => prepareFile(connection, path, [...MIGRATIONS, broken])).toThrow("nonsense");
    await open();
    expect(() => connection.prepare("SELECT * FROM newer")).toThrow("no such table");
  });

  test("versions count up without holes", () => {
    expect(MIGRATIONS.map(({ version }) => version)).toStrictEqual(
      MIGRATIONS.map((_, at) => at + 1),
    );
  });

  test("opening refuses a folder, and a path through a file", async () => {
    writeFileSync(join(directory, "file"), "");
    for (const name of [".", "file/limits.db"]) {
      path = join(directory, name);
      const error = await refusalOf(open());
      expect(error).toBeInstanceOf(InfrastructureError);
      expect(error.message).toMatch(/^The file "[^"]*" could not be opened/);
    }
  });

  test("opening waits for a lock, but not without end", async () => {
    const unlock = await lock();
    const error = await refusalOf(open({ timeoutMs: 20 }));
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: true });
    const opening = open();
    setTimeout(unlock, 20);
    expect(await remembered(await opening)).toStrictEqual([]);
  });
});

describe("a write", () => {
  test("a write is done when it returns", async () => {
    const database = await open();
    expect(await database.write(remember(database, "a"))).toBe("a");
    expect(await remembered(await open())).toStrictEqual(["a"]);
  });

  test("a write that throws is rolled back, and hands on its error", async () => {
    const database = await open();
    const error = new Error("no");
    const work = () => {
      remember(database, "a")();
      throw error;
    };
    expect(() => database.tryWrite(work)).toThrow(error);
    await expect(database.write(work)).rejects.toBe(error);
    expect(await remembered(database)).toStrictEqual([]);
    expect(await database.write(remember(database, "b"))).toBe("b");
  });

  test("a write happens before the call returns when the lock is free", async () => {
    const database = await open();
    let happened = false;
    const written = database.write(() => {
      happened = true;
    });
    expect(happened).toBe(true);
    await written;
    const another = await open();
    expect(another.tryWrite(remember(another, "a"))).toBe("a");
  });

  test("a write waits while another process has the lock", async () => {
    const database = await open();
    const unlock = await lock();
    expect(database.tryWrite(remember(database, "a"))).toBe(BUSY);
    const written = database.write(remember(database, "a"));
    // Readers are not held up by a writer.
    expect(await remembered(database)).toStrictEqual([]);
    setTimeout(unlock, 20);
    expect(await written).toBe("a");
    expect(await remembered(database)).toStrictEqual(["a"]);
  });

  test("a write gives up in time, with nothing written", async () => {
    const database = await open({ timeoutMs: 30 });
    const unlock = await lock();
    const error = await refusalOf(database.write(remember(database, "a")));
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: true });
    expect(error.message).toMatch(/^The file "\/limits.db" was locked by other writers for \d+ ms/);
    unlock();
    expect(await database.write(remember(database, "b"))).toBe("b");
    expect(await remembered(database)).toStrictEqual(["b"]);
  });

  test("a write that gave up leaves the file readable, as of one moment too", async () => {
    const database = await open({ timeoutMs: 30 });
    const unlock = await lock();
    await refusalOf(database.write(remember(database, "a")));
    unlock();
    const sql = "SELECT count(*) AS count FROM tokens";
    expect(await database.snapshot(() => database.prepare(sql).get()?.count)).toBe(0);
  });

  test("a write that waits keeps its place in the queue", async () => {
    const database = await open();
    const unlock = await lock();
    const order: string[] = [];
    const writes = ["a", "b", "c", "d"].map((token) =>
      database.write(() => order.push(remember(database, token)())),
    );
    unlock();
    // The lock is free now, but the others were first.
    expect(database.tryWrite(remember(database, "e"))).toBe(BUSY);
    writes.push(database.write(() => order.push(remember(database, "e")())));
    await Promise.all(writes);
    expect(order).toStrictEqual(["a", "b", "c", "d", "e"]);
  });

  test("a write behind a patient one gives up in its own time", async () => {
    const database = await open();
    const unlock = await lock();
    const patient = database.write(remember(database, "patient"), 10_000);
    const error = await refusalOf(database.write(remember(database, "hasty"), 20));
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    unlock();
    expect(await patient).toBe("patient");
    expect(await remembered(database)).toStrictEqual(["patient"]);
  });

  test("a write that fails in the queue does not hold up the others", async () => {
    const database = await open();
    const unlock = await lock();
    const failing = refusalOf(
      database.write(() => {
        throw new Error("no");
      }),
    );
    const written = database.write(remember(database, "a"));
    unlock();
    expect((await failing).message).toBe("no");
    expect(await written).toBe("a");
  });

  test("many writes at once are all done, in order", async () => {
    const database = await open();
    const order: number[] = [];
    const numbers = Array.from({ length: 3000 }, (_, at) => at);
    await Promise.all(
      numbers.map((at) =>
        database.write(() => {
          remember(database, String(at))();
          order.push(at);
        }),
      ),
    );
    expect(order).toStrictEqual(numbers);
    expect(await remembered(database)).toHaveLength(numbers.length);
  });
});

describe("closing", () => {
  test("closing the database rejects the calls that wait", async () => {
    const database = await open();
    const unlock = await lock();
    const error = refusalOf(database.write(remember(database, "a")));
    database.close();
    expect((await error).message).toBe('The file "/limits.db" was closed');
    unlock();
    expect(await remembered(await open())).toStrictEqual([]);
  });

  test("closing twice is fine, and nothing works afterwards", async () => {
    const { database, store } = await openSqlite({ path });
    await store.close();
    database.close();
    for (const call of [
      database.write(() => 1),
      database.read(() => 1),
      store.put({ PK: "a", SK: "b" }),
    ]) {
      expect(await refusalOf(call)).toBeInstanceOf(InfrastructureError);
    }
  });

  test("closing leaves everything in the one file", async () => {
    const { store } = await openSqlite({ path });
    await store.put({ PK: "a", SK: "b" });
    await store.close();
    const copy = join(directory, "copy.db");
    writeFileSync(copy, readFileSync(path));
    const again = await openSqlite({ path: copy });
    opened.push(again.database);
    expect(await again.store.get({ PK: "a", SK: "b" })).toStrictEqual({ PK: "a", SK: "b" });
  });
});

describe("a file that fails", () => {
  test("a full disk is said, and what is stored stays readable", async () => {
    const { database, store } = await openSqlite({ path });
    opened.push(database);
    await store.put({ PK: "a", SK: "b" });
    await database.read(() => {
      const pages = Number(database.prepare("PRAGMA page_count").get()?.page_count);
      database.prepare(`PRAGMA max_page_count = ${pages + 5}`).get();
    });
    const filling = "x".repeat(200_000);
    const error = await refusalOf(store.put({ PK: "a", SK: "c", filling }));
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    expect(error.message).toBe('The file "/limits.db" could not grow: the disk is full');
    expect(error.cause).toBeInstanceOf(Error);
    expect(await store.get({ PK: "a", SK: "c" })).toBeUndefined();
    expect(await store.delete({ PK: "a", SK: "b" })).toMatchObject({ ok: true });
  });

  test("a log that a reader kept long shrinks once the reader is gone", async () => {
    const { store } = await openSqlite({ path });
    opened.push(store);
    const reader = await raw();
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM items").get();
    const text = "x".repeat(100_000);
    const write = (at: number) => store.put({ PK: "a", SK: `${at}`, text });
    for (let at = 0; at < 100; at += 1) await write(at);
    const logBytes = () => statSync(`${path}-wal`).size;
    expect(logBytes()).toBeGreaterThan(2 * 8_388_608);
    reader.exec("COMMIT");
    for (let at = 100; at < 103; at += 1) await write(at);
    expect(logBytes()).toBeLessThanOrEqual(8_388_608);
  });

  test("a read-only file is said", async () => {
    const { database, store } = await openSqlite({ path });
    opened.push(database);
    await database.read(() => database.prepare("PRAGMA query_only = 1").run());
    const error = await refusalOf(store.put({ PK: "a", SK: "b" }));
    expect(error.message).toBe('The file "/limits.db" is read-only');
    expect(error.cause).toBeInstanceOf(Error);
  });

  test("a damaged file is said", async () => {
    const { store } = await openSqlite({ path });
    await store.writeMany({
      puts: Array.from({ length: 500 }, (_, at) => ({
        PK: "a",
        SK: `${at}`,
        text: "x".repeat(99),
      })),
    });
    await store.close();
    const bytes = readFileSync(path);
    // The first page, with the schema, is left as it is.
    writeFileSync(path, bytes.fill(0x55, 4096));
    const again = await openSqlite({ path });
    opened.push(again.database);
    const error = await refusalOf(again.store.get({ PK: "a", SK: "1" }));
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error.message).toMatch(/^The file "\/limits.db" is damaged/);
  });
});
