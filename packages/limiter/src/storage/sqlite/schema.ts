/** Brings a file to the present schema when it is opened, and refuses files that are not ours. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import { IncompatibleSchemaError } from "../../domain/errors/version-errors.ts";
import type { Connection } from "./driver.ts";
import { APPLICATION_ID, MIGRATIONS, type Migration } from "./migrations.ts";

const CACHE_KIB = 32_768;
/** Frames of 4 KiB before a checkpoint. With more, the rare checkpoint blocks an acquire longer. */
const LOG_FRAMES = 2000;
/** The size of the log file. It grows beyond that while a reader stays in a transaction. */
const LOG_BYTES = LOG_FRAMES * 4096;

/** Sets the connection up, then migrates the file; throws when it is locked. */
export function prepareFile(
  connection: Connection,
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  // `SqliteDatabase` does the waiting. A process that dies loses nothing that was acknowledged; a
  // power cut may lose the last moments, because an acquire must not wait for the disk each time.
  connection.exec("PRAGMA busy_timeout = 0");
  connection.exec("PRAGMA synchronous = NORMAL");
  connection.exec("PRAGMA foreign_keys = OFF");
  // Two megabytes, the default, hold the buckets of 6,000 entities; beyond that every acquire would
  // read a page. The memory is taken only when it is used.
  connection.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  // A checkpoint waits for the disk twice, and writes each changed page once: at the default of
  // 1000 frames it took longer than all the acquires in between.
  connection.exec(`PRAGMA wal_autocheckpoint = ${LOG_FRAMES}`);
  // Asked as a query, because the setting answers with its value.
  connection.prepare(`PRAGMA journal_size_limit = ${LOG_BYTES}`).get();
  const latest = migrations.at(-1)?.version ?? 0;
  const version = versionOf(connection, path, latest);
  // A new file can return pages to the disk. On a file with tables this changes nothing.
  if (version === 0) connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
  // Asked every time, because a copy of a file may have lost the mode.
  if (pragma(connection, "journal_mode") !== "wal") enterWalMode(connection, path);
  if (version < latest) migrate(connection, path, migrations);
}

function migrate(connection: Connection, path: string, migrations: readonly Migration[]): void {
  const latest = migrations.at(-1)?.version ?? 0;
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated the file while this one waited for the lock.
    const current = versionOf(connection, path, latest);
    for (const { version, sql } of migrations) {
      if (version > current) connection.exec(sql);
    }
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    connection.exec(`PRAGMA user_version = ${latest}`);
    connection.exec("COMMIT");
  } catch (error) {
    connection.exec("ROLLBACK");
    throw error;
  }
}

/** Returns the version of the file, 0 when it is empty. */
function versionOf(connection: Connection, path: string, latest: number): number {
  const version = Number(pragma(connection, "user_version"));
  const tables = connection.prepare("SELECT count(*) AS tables FROM sqlite_master").get()?.tables;
  if (tables !== 0 && pragma(connection, "application_id") !== APPLICATION_ID) {
    throw new InfrastructureError(
      `The file "${path}" is a SQLite database of another application; choose another file`,
    );
  }
  refuseNewer(version, path, latest);
  return version;
}

/** Throws when another process has migrated the file to a version this library does not know. */
export function refuseMigrated(version: number, path: string): void {
  refuseNewer(version, path, MIGRATIONS.at(-1)?.version ?? 0);
}

function refuseNewer(version: number, path: string, latest: number): void {
  if (version <= latest) return;
  throw new IncompatibleSchemaError({
    clientVersion: String(latest),
    schemaVersion: String(version),
    message: `The file "${path}" was written by a newer version of zae-limiter: update this one.`,
  });
}

function enterWalMode(connection: Connection, path: string): void {
  connection.exec("PRAGMA journal_mode = WAL");
  if (pragma(connection, "journal_mode") === "wal") return;
  throw new InfrastructureError(
    `The file "${path}" cannot be shared by several processes here (no write-ahead log); ` +
      "is it on a network drive?",
  );
}

function pragma(connection: Connection, name: string): string | number | null | undefined {
  return connection.prepare(`PRAGMA ${name}`).get()?.[name];
}
