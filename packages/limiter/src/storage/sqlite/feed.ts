/** The feed of a file: every change appends a row, and readers poll for new rows. */

import { stoppable } from "../../base/stoppable.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { keyOf } from "../item.ts";
import type { ChangeRecord, ChangesOptions } from "../item-store.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Row } from "./driver.ts";
import { decoded } from "./item-rows.ts";

/** Other processes cannot wake a reader, so it polls. */
const POLL_MS = 100;
const PAGE = 100;
const SHARD = "sqlite";
/** Padded, so that positions sort as text, too. */
const SEQUENCE_DIGITS = 16;

const NEXT = "SELECT * FROM changes WHERE seq > ? ORDER BY seq LIMIT ?";
const OLDEST = "SELECT seq FROM changes ORDER BY seq LIMIT 1";
const NEWEST = "SELECT seq FROM changes ORDER BY seq DESC LIMIT 1";

export class ChangeFeed {
  readonly #database: SqliteDatabase;
  readonly #waiting = new Set<() => void>();
  /** Counts the calls of `wake`, for readers that were not waiting yet. */
  #wakes = 0;
  #closed = false;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Wakes the readers after a change by this process. */
  wake(): void {
    this.#wakes += 1;
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#closed = true;
    this.wake();
  }

  read({ from = "now", signal }: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    return stoppable((ended) => this.#records(from, ended), signal);
  }

  async *#records(
    from: NonNullable<ChangesOptions["from"]>,
    signal: AbortSignal,
  ): AsyncGenerator<ChangeRecord, undefined> {
    if (this.#isOver(signal)) return;
    let last = await this.#database.snapshot(() => this.#startOf(from));
    while (!this.#isOver(signal)) {
      const wakes = this.#wakes;
      const rows = await this.#database.snapshot(() => this.#page(last));
      for (const row of rows) {
        if (this.#isOver(signal)) return;
        last = row.seq as number;
        yield recordOf(row);
      }
      if (rows.length === 0 && wakes === this.#wakes) await this.#more(signal);
    }
  }

  #isOver(signal: AbortSignal): boolean {
    return this.#closed || signal.aborted;
  }

  #startOf(from: NonNullable<ChangesOptions["from"]>): number {
    const newest = this.#newest();
    if (from === "now") return newest;
    if (from === "oldest") return ((this.#database.prepare(OLDEST).get()?.seq as number) ?? 1) - 1;
    const position = /^[0-9]+$/.test(from.after) ? Number(from.after) : Number.NaN;
    // Beyond the newest it would be a position of another file.
    if (position <= newest) return position;
    throw new ValidationError("position", from.after, "expected the position of a change record");
  }

  /** The rows after a position. Numbers have no holes, so a hole is where rows were trimmed. */
  #page(last: number): Row[] {
    const rows = this.#database.prepare(NEXT).all(last, PAGE);
    const next = (rows[0]?.seq as number | undefined) ?? this.#newest() + 1;
    if (next === last + 1) return rows;
    throw new ValidationError("position", last, "these changes are not kept any more");
  }

  #newest(): number {
    return (this.#database.prepare(NEWEST).get()?.seq as number | undefined) ?? 0;
  }

  /** Waits until this process writes, the next poll is due, or the reader is stopped. */
  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      signal.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}

function recordOf(row: Row): ChangeRecord {
  const before = typeof row.before === "string" ? decoded(row.before).item : undefined;
  const after = typeof row.after === "string" ? decoded(row.after).item : undefined;
  const sequence = String(row.seq).padStart(SEQUENCE_DIGITS, "0");
  return {
    key: keyOf({ PK: row.pk as string, SK: row.sk as string }),
    before,
    after,
    atMs: row.at as number,
    expired: row.expired === 1,
    shard: SHARD,
    sequence,
    position: sequence,
  };
}
