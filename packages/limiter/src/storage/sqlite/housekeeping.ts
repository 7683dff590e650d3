/**
 * Removes expired items and old log rows, a few with each write: there are no timers, and no write
 * has to pay for a long absence.
 */

import type { SqliteDatabase } from "./database.ts";
import type { ItemRows } from "./item-rows.ts";

/** As long as DynamoDB Streams keeps its records. */
const LOG_KEPT_MS = 24 * 3_600_000;
const TOKEN_KEPT_MS = 600_000;
const EXPIRED_PER_CHANGE = 2;
/** More rows than one change, and the items that it drops, can add. */
const TRIMMED_PER_CHANGE = 4;

const TIDIED_PER_SHRINK = 32;
/** Free pages that the next writes will use, of 4 KiB each. */
const PAGES_KEPT = 256;
const SHRINK = "PRAGMA incremental_vacuum(128)";

const OLDEST_LOGGED = "SELECT seq, at FROM changes ORDER BY seq LIMIT ?";
const TRIM_LOG = "DELETE FROM changes WHERE seq <= ?";
const TOKEN = "SELECT 1 AS known FROM tokens WHERE token = ? AND at > ?";
const KEEP_TOKEN = "INSERT OR REPLACE INTO tokens (token, at) VALUES (?, ?)";
const TRIM_TOKENS = `DELETE FROM tokens WHERE token IN
  (SELECT token FROM tokens WHERE at <= ? ORDER BY at LIMIT ${TRIMMED_PER_CHANGE})`;

export class Housekeeping {
  readonly #database: SqliteDatabase;
  readonly #rows: ItemRows;
  #tidied = 0;
  /** The second in which nothing was left to do; times to live count in seconds, too. */
  #idleSecond = -1;

  constructor(database: SqliteDatabase, rows: ItemRows) {
    this.#database = database;
    this.#rows = rows;
  }

  /** Tidies up after changes, in their transaction. */
  tidy(nowMs: number, changes: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second === this.#idleSecond && this.#rows.earliestTtl >= second) return;
    const dropped = this.#rows.dropExpired(nowMs, changes * EXPIRED_PER_CHANGE);
    const trimmed = this.#trimLog(nowMs - LOG_KEPT_MS, changes * TRIMMED_PER_CHANGE);
    if (dropped === 0 && trimmed === 0) this.#idleSecond = second;
    else this.#shrink();
  }

  /** Returns free pages to the disk, a few at a time; older files do not support it. */
  #shrink(): void {
    this.#tidied += 1;
    if (this.#tidied % TIDIED_PER_SHRINK !== 0) return;
    const free = this.#database.prepare("PRAGMA freelist_count").get()?.freelist_count;
    if (Number(free) > PAGES_KEPT) this.#database.exec(SHRINK);
  }

  /** Whether a transaction of that token was carried out in the last ten minutes. */
  knows(token: string, nowMs: number): boolean {
    return this.#database.prepare(TOKEN).get(token, nowMs - TOKEN_KEPT_MS) !== undefined;
  }

  remember(token: string, nowMs: number): void {
    this.#database.prepare(KEEP_TOKEN).run(token, nowMs);
    this.#database.prepare(TRIM_TOKENS).run(nowMs - TOKEN_KEPT_MS);
  }

  /**
   * Trims the log from the oldest on, without leaving holes: readers take a hole for lost records.
   * The newest stays, because it was written just before; the next number is counted from it.
   */
  #trimLog(before: number, atMost: number): number {
    const rows = this.#database.prepare(OLDEST_LOGGED).all(atMost);
    const kept = rows.findIndex(({ at }) => (at as number) >= before);
    const over = kept === -1 ? rows : rows.slice(0, kept);
    const last = over.at(-1);
    if (last !== undefined) this.#database.prepare(TRIM_LOG).run(last.seq as number);
    return over.length;
  }
}
