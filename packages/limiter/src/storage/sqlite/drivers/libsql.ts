/** The package libsql, where the user installed it: prebuilt for every platform. */

import { statSync } from "node:fs";
import type { Connect, Connection } from "../driver.ts";

type Constructor = new (path: string) => Connection;

/** A connection that is not in use, and the file that it has open. */
interface Idle {
  readonly database: Connection;
  readonly file: string;
}

/** Connections that are kept for a file that is opened again. */
const IDLE_MAX = 2;

export async function loadLibsql(): Promise<Connect> {
  const { default: Database } = (await import("libsql")) as unknown as { default: Constructor };
  return (path) => {
    const database = idleOf(path) ?? new Database(path);
    return {
      losesBusyStatements: true,
      prepare: (sql) => database.prepare(sql),
      exec: (sql) => database.exec(sql),
      close: () => {
        // libsql keeps the file open until the last statement is garbage. What SQLite does when a
        // file is closed, folding the write-ahead log into it, is therefore done here.
        try {
          database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        } catch {
          // Another process uses the file, a transaction is open, or the file is damaged.
          database.close();
          return;
        }
        keep(path, database);
      },
    };
  };
}

/**
 * Idle connections by path. The descriptors of a connection that is closed stay open until it is
 * garbage, so a program that opens and closes one file again and again would run out of them.
 */
const idle = new Map<string, Idle>();

/** Takes a kept connection; a file that was changed since needs another one. */
function idleOf(path: string): Connection | undefined {
  const kept = idle.get(path);
  if (kept === undefined) return undefined;
  idle.delete(path);
  if (kept.file === fileAt(path)) return kept.database;
  kept.database.close();
  return undefined;
}

function keep(path: string, database: Connection): void {
  const file = fileAt(path);
  if (file === undefined || idle.has(path)) {
    database.close();
    return;
  }
  idle.set(path, { database, file });
  if (idle.size <= IDLE_MAX) return;
  const [oldest] = idle.keys();
  idle.get(oldest as string)?.database.close();
  idle.delete(oldest as string);
}

/**
 * Returns what changes when a file is replaced or written by others, such as from a backup;
 * `undefined` where there is none.
 */
function fileAt(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return undefined;
  return [found.dev, found.ino, found.size, found.mtimeNs].join(":");
}
