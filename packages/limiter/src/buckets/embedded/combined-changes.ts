/**
 * Consumes and adjustments of one turn of the event loop that share a transaction.
 *
 * Each is decided when it comes, by the cached row and the changes before it. The write checks that
 * the file still holds that row: all changes of one row are one statement, and all rows are one
 * transaction. Where another process has changed a row by then, the slow path decides again.
 */

import { encodeRow } from "./bucket-row.ts";
import type { CachedRow } from "./sqlite-table.ts";

/** A consume, or an adjustment, which is always granted. */
export interface Decided {
  readonly granted: boolean;
}

/** Changes of one row that share its write, in the order in which they came. */
export class RowGroup {
  readonly row: CachedRow;
  /** The text that the file must have for the changes to be right. */
  readonly before: string;
  /** The text that is written; `undefined` where nothing was granted. */
  after: string | undefined = undefined;
  /** The slow path has replaced the bucket, so that the changes must be decided again. */
  isVoid = false;
  #isChanged = false;
  readonly #answers: ((isWritten: boolean) => void)[] = [];

  constructor(row: CachedRow) {
    this.row = row;
    this.before = row.text;
  }

  /** Resolves with `undefined` where nothing was written, and the slow path decides the call. */
  add<Outcome extends Decided>(outcome: Outcome): Promise<Outcome | undefined> {
    if (outcome.granted) this.#isChanged = true;
    return new Promise((resolve) => {
      this.#answers.push((isWritten) => resolve(isWritten ? outcome : undefined));
    });
  }

  /** Ends the group: no more changes join, and the row is written as its bucket is now. */
  seal(): void {
    if (this.isVoid) return;
    const { row } = this;
    row.group = undefined;
    if (!this.#isChanged) return;
    this.after = encodeRow(row.bucket);
    row.text = this.after;
  }

  answer(isWritten: boolean): void {
    for (const answer of this.#answers) answer(isWritten);
  }
}

/** Transactions of the file that the rows are in. */
interface Transactions {
  /** Runs the work as a transaction; returns a symbol, with nothing done, when the file is busy. */
  tryWrite<T>(work: () => T): T | symbol;
  write<T>(work: () => T): Promise<T>;
}

interface CombinedChangesOptions {
  readonly database: Transactions;
  /** Whether the file holds the row as it must be; a row that is changed is written. */
  readonly write: (row: CachedRow, before: string, after: string | undefined) => boolean;
  /** Called when a cached row is wrong. */
  readonly forget: (row: CachedRow) => void;
  /** Called when no change waits any more. */
  readonly onWritten: () => void;
}

export class CombinedChanges {
  readonly #options: CombinedChangesOptions;
  #groups: RowGroup[] = [];
  readonly #flush = () => this.#writeAll();

  constructor(options: CombinedChangesOptions) {
    this.#options = options;
  }

  /** Adds a change that is in the row's bucket already. */
  add<Outcome extends Decided>(row: CachedRow, outcome: Outcome): Promise<Outcome | undefined> {
    if (row.group === undefined) {
      row.group = new RowGroup(row);
      // Runs once no promise of this turn has anything left to do: all its changes are here then,
      // however many promises each had to pass.
      if (this.#groups.length === 0) process.nextTick(this.#flush);
      this.#groups.push(row.group);
    }
    return row.group.add(outcome);
  }

  #writeAll(): void {
    const groups = this.#groups;
    this.#groups = [];
    this.#options.onWritten();
    for (const group of groups) group.seal();
    const work = () => groups.map((group) => this.#write(group));
    try {
      const written = this.#options.database.tryWrite(work);
      if (typeof written === "symbol") void this.#writeLater(groups, work);
      else this.#answer(groups, written);
    } catch {
      // The slow path gets the same error, and reports it.
      this.#answer(groups, []);
    }
  }

  async #writeLater(groups: readonly RowGroup[], work: () => boolean[]): Promise<void> {
    try {
      this.#answer(groups, await this.#options.database.write(work));
    } catch {
      this.#answer(groups, []);
    }
  }

  #write({ row, before, after, isVoid }: RowGroup): boolean {
    return !isVoid && this.#options.write(row, before, after);
  }

  #answer(groups: readonly RowGroup[], written: readonly boolean[]): void {
    groups.forEach((group, at) => {
      const isWritten = written[at] === true;
      if (!isWritten && !group.isVoid) this.#options.forget(group.row);
      group.answer(isWritten);
    });
  }
}
