/** The feed of a file: rows that every change leaves behind, polled by those who follow it. */

import { InfrastructureError, ValidationError } from "../../domain/errors.ts";
import { keyOf } from "../item.ts";
import type { ChangeRecord, ChangesOptions } from "../item-store.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Row } from "./driver.ts";
import { itemOf } from "./item-rows.ts";

/** Other processes cannot wake a reader, so it looks by itself. */
const POLL_MS = 100;
const PAGE = 100;
const SHARD = "sqlite";
/** Padded, so that positions sort as text, too. */
const SEQUENCE_DIGITS = 16;

const NEXT = "SELECT * FROM changes WHERE seq > ? ORDER BY seq LIMIT ?";
const OLDEST = "SELECT seq FROM changes ORDER BY seq LIMIT 1";
/** The newest number ever given, also when its row is gone. */
const NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'";

export class ChangeFeed {
  readonly #database: SqliteDatabase;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** This process changed something. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#closed = true;
    this.wake();
  }

  read(options: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    const stop = new AbortController();
    const stopWith = () => stop.abort();
    if (options.signal?.aborted === true) stop.abort();
    options.signal?.addEventListener("abort", stopWith, { once: true });
    const records = this.#records(options.from ?? "now", stop.signal);
    const iterator: AsyncIterableIterator<ChangeRecord> = {
      next: () => records.next(),
      // A generator that waits does not hear `return`, so it is woken first.
      return: () => {
        options.signal?.removeEventListener("abort", stopWith);
        stop.abort();
        return records.return(undefined);
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  async *#records(
    from: NonNullable<ChangesOptions["from"]>,
    stop: AbortSignal,
  ): AsyncGenerator<ChangeRecord, undefined> {
    if (this.#closed || stop.aborted) return;
    let last = await this.#database.snapshot(() => this.#startOf(from));
    while (!this.#closed && !stop.aborted) {
      const rows = await this.#database.snapshot(() => this.#page(last));
      for (const row of rows) {
        if (this.#closed || stop.aborted) return;
        last = row.seq as number;
        yield recordOf(row);
      }
      if (rows.length === 0) await this.#more(stop);
    }
  }

  #startOf(from: NonNullable<ChangesOptions["from"]>): number {
    const newest = this.#newest();
    if (from === "now") return newest;
    if (from === "oldest")
      return ((this.#database.prepare(OLDEST).get()?.seq as number | undefined) ?? newest + 1) - 1;
    const position = Number(from.after);
    if (Number.isSafeInteger(position) && position >= 0 && position <= newest) return position;
    throw new ValidationError("position", from.after, "expected the position of a change record");
  }

  /** The rows after a position. Numbers have no holes, so a hole is where rows were trimmed. */
  #page(last: number): Row[] {
    const rows = this.#database.prepare(NEXT).all(last, PAGE);
    const next = (rows[0]?.seq as number | undefined) ?? this.#newest() + 1;
    if (next === last + 1) return rows;
    throw new InfrastructureError(
      `The changes after position ${last} are not kept any more: they are older than a day`,
    );
  }

  #newest(): number {
    return (this.#database.prepare(NEWEST).get()?.seq as number | undefined) ?? 0;
  }

  /** Until this process writes, the time to look has come, or the reader is stopped. */
  #more(stop: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        stop.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      stop.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}

function recordOf(row: Row): ChangeRecord {
  const before = typeof row.before === "string" ? itemOf(row.before) : undefined;
  const after = typeof row.after === "string" ? itemOf(row.after) : undefined;
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
