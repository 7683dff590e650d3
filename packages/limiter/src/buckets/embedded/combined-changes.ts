/**
 * Consumes and adjustments of one turn of the event loop that share a transaction.
 *
 * Each is decided when it comes, by the cached row and the changes before it. The write checks that
 * the file still holds that row: all changes of one row are one statement, and all rows are one
 * transaction. Where another process has changed a row meanwhile, the slow path decides again.
 */

import { type CachedRow, type Decided, RowGroup } from "./cached-row.ts";

/** Transactions of the file that the rows are in. */
interface Transactions {
  /** A symbol, with nothing done, when the file is busy. */
  tryWrite<T>(work: () => T): T | symbol;
  write<T>(work: () => T): Promise<T>;
}

interface CombinedChangesOptions {
  readonly database: Transactions;
  /** Whether the file holds the row as it must be; a row that is changed is written. */
  readonly write: (row: CachedRow, before: string, after: string | undefined) => boolean;
  /** The cached row is wrong. */
  readonly forget: (row: CachedRow) => void;
}

export class CombinedChanges {
  readonly #options: CombinedChangesOptions;
  #groups: RowGroup[] = [];
  readonly #flush = () => this.#writeAll();

  constructor(options: CombinedChangesOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  /** Adds a change that is in the row's bucket already. */
  add<Outcome extends Decided>(row: CachedRow, outcome: Outcome): Promise<Outcome | undefined> {
    if (row.group === undefined) {
      row.group = new RowGroup(row);
      // Runs once no promise of this turn has anything left to do: all its changes are here then,
      // however many promises each had to pass.
      if (this.isEmpty) process.nextTick(this.#flush);
      this.#groups.push(row.group);
    }
    return row.group.add(outcome);
  }

  #writeAll(): void {
    const groups = this.#groups;
    this.#groups = [];
    for (const group of groups) group.seal();
    const work = () => groups.map((group) => this.#write(group));
    try {
      const written = this.#options.database.tryWrite(work);
      if (typeof written === "symbol") void this.#writeLater(groups, work);
      else this.#answer(groups, written);
    } catch {
      // The slow path meets the same error, and tells it.
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
