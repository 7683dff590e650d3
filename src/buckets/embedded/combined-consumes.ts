/**
 * Consumes of one turn of the event loop that share a transaction.
 *
 * Each is decided when it comes, by the row as it was last seen, and by those before it. That the
 * rows still are so is checked when they are written: all consumes of one row are one statement,
 * and all rows one transaction. A row that another process has changed meanwhile is decided again,
 * the slow way.
 */

import type { FastConsume } from "./fast-consume.ts";
import type { PackedBucket } from "./packed-bucket.ts";

/** A row as it was last seen. */
export interface SeenRow {
  readonly bucket: PackedBucket;
  /** As it is in the file, unless another process has written it. */
  text: string;
}

export interface RowKey {
  readonly name: string;
  readonly entityId: string;
  readonly resource: string;
}

/** `undefined`: nothing was written, and the call is decided the slow way. */
type Answer = (outcome: FastConsume | undefined) => void;

interface SharedRow extends RowKey {
  readonly seen: SeenRow;
  /** As it must be in the file. */
  readonly before: string;
  isChanged: boolean;
  /** What was seen was replaced since, without these consumes. */
  isVoid: boolean;
  readonly waiting: { readonly outcome: FastConsume; readonly answer: Answer }[];
}

/** Transactions of the file that the rows are in. */
interface Transactions {
  /** A symbol, with nothing done, when the file is busy. */
  tryWrite<T>(work: () => T): T | symbol;
  write<T>(work: () => T): Promise<T>;
}

interface CombinedConsumesOptions {
  readonly database: Transactions;
  /** Whether the row is in the file as it must be; where it is changed, it is written. */
  readonly write: (row: RowKey, before: string, after: string | undefined) => boolean;
  /** What was seen of a row is wrong. */
  readonly forget: (name: string) => void;
}

export class CombinedConsumes {
  readonly #options: CombinedConsumesOptions;
  #rows = new Map<string, SharedRow>();

  constructor(options: CombinedConsumesOptions) {
    this.#options = options;
  }

  has(name: string): boolean {
    return this.#rows.has(name);
  }

  /** `before`: the row without this consume and those that share its write. */
  add(
    key: RowKey,
    seen: SeenRow,
    before: string,
    outcome: FastConsume,
  ): Promise<FastConsume | undefined> {
    let row = this.#rows.get(key.name);
    if (row === undefined) {
      row = { ...key, seen, before, isChanged: false, isVoid: false, waiting: [] };
      // Those of the same turn are all here before this runs.
      if (this.#rows.size === 0) queueMicrotask(() => this.#flush());
      this.#rows.set(key.name, row);
    }
    if (outcome.granted) row.isChanged = true;
    const { waiting } = row;
    return new Promise((answer) => {
      waiting.push({ outcome, answer });
    });
  }

  /** The row was written by a call that did not know of these consumes. */
  void(name: string): void {
    const row = this.#rows.get(name);
    if (row !== undefined) row.isVoid = true;
  }

  #flush(): void {
    const rows = [...this.#rows.values()];
    this.#rows = new Map();
    const due = rows.filter(({ isVoid }) => !isVoid);
    for (const row of rows) if (row.isVoid) this.#answer(row, false);
    if (due.length === 0) return;
    const texts = due.map(({ seen, isChanged }) => {
      if (!isChanged) return undefined;
      seen.text = seen.bucket.text();
      return seen.text;
    });
    const work = () => due.map((row, at) => this.#options.write(row, row.before, texts[at]));
    try {
      const done = this.#options.database.tryWrite(work);
      if (typeof done === "symbol") void this.#writeLater(due, work);
      else this.#answerAll(due, done);
    } catch {
      // The slow way meets the same error, and tells it.
      this.#answerAll(due, []);
    }
  }

  async #writeLater(rows: readonly SharedRow[], work: () => boolean[]): Promise<void> {
    try {
      this.#answerAll(rows, await this.#options.database.write(work));
    } catch {
      this.#answerAll(rows, []);
    }
  }

  #answerAll(rows: readonly SharedRow[], done: readonly boolean[]): void {
    rows.forEach((row, at) => {
      this.#answer(row, done[at] === true);
    });
  }

  #answer({ name, waiting }: SharedRow, isWritten: boolean): void {
    if (!isWritten) this.#options.forget(name);
    for (const { outcome, answer } of waiting) answer(isWritten ? outcome : undefined);
  }
}
