/** The log of a file: every change appends a row, and rows older than a day go. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { keyOf } from "../item.ts";
import type { ChangeRecord } from "../item-store.ts";
import type { LogPage, LogStart } from "../item-table.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Row } from "./driver.ts";
import { decoded } from "./item-rows.ts";

const SHARD = "sqlite";
/** Padded, so that positions sort as text, too. */
const SEQUENCE_DIGITS = 16;

const NEXT = "SELECT * FROM changes WHERE seq > ? ORDER BY seq LIMIT ?";
const OLDEST = "SELECT seq FROM changes ORDER BY seq LIMIT 1";
const NEWEST = "SELECT seq FROM changes ORDER BY seq DESC LIMIT 1";

/** Returns changes from a place on, within a transaction of the caller. */
export function logPage(database: SqliteDatabase, from: LogStart, limit: number): LogPage {
  const newest = numberOf(database, NEWEST) ?? 0;
  const start = startOf(database, from, newest);
  const rows = from === "now" ? [] : database.prepare(NEXT).all(start, limit);
  // Numbers have no holes, so a hole is where rows were trimmed.
  const next = (rows[0]?.seq as number | undefined) ?? newest + 1;
  if (next !== start + 1) {
    throw new ValidationError("position", start, "these changes are not kept any more");
  }
  const last = (rows.at(-1)?.seq as number | undefined) ?? start;
  return { records: rows.map(recordOf), position: positionOf(last) };
}

function startOf(database: SqliteDatabase, from: LogStart, newest: number): number {
  if (from === "now") return newest;
  if (from === "oldest") return (numberOf(database, OLDEST) ?? 1) - 1;
  const position = /^[0-9]+$/.test(from.after) ? Number(from.after) : Number.NaN;
  // Beyond the newest it would be a position of another file.
  if (position <= newest) return position;
  throw new ValidationError("position", from.after, "expected the position of a change record");
}

function numberOf(database: SqliteDatabase, sql: string): number | undefined {
  return database.prepare(sql).get()?.seq as number | undefined;
}

function positionOf(number: number): string {
  return String(number).padStart(SEQUENCE_DIGITS, "0");
}

function recordOf(row: Row): ChangeRecord {
  const sequence = positionOf(row.seq as number);
  return {
    key: keyOf({ PK: row.pk as string, SK: row.sk as string }),
    before: typeof row.before === "string" ? decoded(row.before).item : undefined,
    after: typeof row.after === "string" ? decoded(row.after).item : undefined,
    atMs: row.at as number,
    expired: row.expired === 1,
    shard: SHARD,
    sequence,
    position: sequence,
  };
}
