/**
 * The shape of a SQLite driver, not its package: whatever prepares and runs statements
 * synchronously will do. A driver is loaded when a file is opened, never earlier.
 */

import { InfrastructureError, ValidationError } from "../../domain/errors/errors.ts";
import { loadBetterSqlite3 } from "./drivers/better-sqlite3.ts";
import { loadLibsql } from "./drivers/libsql.ts";
import { loadNodeSqlite } from "./drivers/node-sqlite.ts";

/** A value that is bound to a statement. */
export type Bindable = string | number | null;
/** A row by the names of its columns; a driver may add properties of its own. */
export type Row = Readonly<Record<string, string | number | null>>;

export interface Statement {
  run(...values: Bindable[]): unknown;
  get(...values: Bindable[]): Row | undefined;
  all(...values: Bindable[]): Row[];
}

export interface Connection {
  prepare(sql: string): Statement;
  exec(sql: string): unknown;
  close(): unknown;
  /** A prepared statement that met a lock stays unfinished, and every statement after it fails. */
  readonly losesBusyStatements?: boolean;
}

/** Opens a file, and creates it when it is not there. */
export type Connect = (path: string) => Connection;

/** The fastest first; libsql is for Node versions without node:sqlite. */
const DRIVER_NAMES = ["better-sqlite3", "node:sqlite", "libsql"] as const;
export type DriverName = (typeof DRIVER_NAMES)[number];

const LOADERS: Readonly<Record<DriverName, () => Promise<Connect>>> = {
  "better-sqlite3": loadBetterSqlite3,
  "node:sqlite": loadNodeSqlite,
  libsql: loadLibsql,
};

/** Returns the named driver, or else the first that is there. */
export async function loadDriver(name?: DriverName): Promise<Connect> {
  if (name !== undefined && !DRIVER_NAMES.includes(name)) {
    throw new ValidationError("driver", name, `expected one of ${DRIVER_NAMES.join(", ")}`);
  }
  const failures: unknown[] = [];
  for (const candidate of name === undefined ? DRIVER_NAMES : [name]) {
    try {
      return await LOADERS[candidate]();
    } catch (error) {
      failures.push(error);
    }
  }
  if (name !== undefined) {
    throw new InfrastructureError(`The SQLite driver ${name} does not load`, {
      cause: failures[0],
    });
  }
  throw new InfrastructureError(
    `No SQLite driver: Node ${process.versions.node} has no node:sqlite (22.13 and later do). ` +
      "Install one with: npm install libsql",
    { cause: new AggregateError(failures) },
  );
}
