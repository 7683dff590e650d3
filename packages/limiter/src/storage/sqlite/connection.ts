/** Opens a SQLite file as a store. */

import type { Random } from "../../base/random.ts";
import type { Clock } from "../../base/time.ts";
import type { CallListener } from "../item-store.ts";
import { SqliteDatabase } from "./database.ts";
import type { DriverName } from "./driver.ts";
import { SqliteItemStore } from "./item-store.ts";

interface SqliteOptions {
  /** The file; it and its folder are created when they are not there. */
  readonly path: string;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** How long a call may wait for other writers; 2000 when absent. */
  readonly timeoutMs?: number | undefined;
  /**
   * The first that is there when absent: better-sqlite3, node:sqlite, libsql. A process must not
   * open one file with two of them: they would not see each other's locks.
   */
  readonly driver?: DriverName | undefined;
  readonly onCall?: CallListener | undefined;
}

/** Opens a file and the store on it; closing the store closes both. */
export async function openSqlite(
  options: SqliteOptions,
): Promise<{ readonly database: SqliteDatabase; readonly store: SqliteItemStore }> {
  const database = await SqliteDatabase.open(options);
  return { database, store: new SqliteItemStore(database, options) };
}
