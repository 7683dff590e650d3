/**
 * Items that are read and written in steps: work that sees all rows as of one moment and writes
 * them together. Memory and SQLite run a step at once, in a transaction; `OptimisticSteps` runs it
 * on cells that it has read from an `ItemTable`, and again when one has changed.
 *
 * Work must be synchronous, must do nothing but read and write rows, and must name the same rows
 * each time it runs: ids and other random values are made before it.
 */

import type { Item, Key } from "./item.ts";
import type { CallListener, ChangeRecord, ChangesOptions } from "./item-store.ts";
import type { PageRange } from "./item-table.ts";

/** The rows of a step. */
export interface StepRows {
  /** Returns an item; `along` are keys that the work will ask for next, if this one is read. */
  get(key: Key, along?: readonly Key[]): Item | undefined;
  /** Stores an item, or removes it; the log has the change. */
  set(key: Key, item: Item | undefined): void;
}

/** Rows that a step may also list. */
export interface ListedRows extends StepRows {
  /**
   * Stores an item, or removes it, without a trace in the log. `mustLast`: it may not be forgotten
   * when the server crashes, as what is logged may not.
   */
  setUnlogged(key: Key, item: Item | undefined, mustLast?: boolean): void;
  /** Returns the keys of a range as an index has them: the step does not depend on their items. */
  keys(range: PageRange): readonly Item[];
  /** Returns whole items of a range; `alongOf` names keys that the work will ask for of each. */
  page(range: PageRange, alongOf?: (item: Item) => readonly Key[]): readonly Item[];
}

export interface OnceOptions<Result> {
  readonly token: string;
  /** The result of the other times. */
  readonly repeated: Result;
  /** Whether work that writes nothing may be a repetition: its conditions fail by the first. */
  readonly mayFail: boolean;
}

export interface StepOptions<Result> {
  /** How long the step may take; the store's own setting when absent. */
  readonly timeoutMs?: number | undefined;
  /** Rows that the work begins with: they are read together, as of one moment. */
  readonly keys?: readonly Key[];
  /** Rows that the work may read: where reading is a request, they are read with the first. */
  readonly along?: readonly Key[];
  /** Runs the work once in ten minutes. */
  readonly once?: OnceOptions<Result> | undefined;
}

export interface StepTable<Rows extends StepRows = StepRows> {
  /**
   * Begins an operation of the item store, which may be several steps or pages: refuses it when the
   * store is closed, and notifies listeners where they do not get every request.
   */
  begin(operation: string): void;
  /** Runs work that may write. */
  step<Result>(work: (rows: Rows) => Result, options: StepOptions<Result>): Promise<Result>;
  /** Runs work that only reads. */
  peek<Result>(work: (rows: Rows) => Result, options: StepOptions<Result>): Promise<Result>;
  /** Returns a page outside of any step. */
  page(range: PageRange): Promise<readonly Item[]>;
  /** Gives way to other work of the process between two pages or batches, where that is needed. */
  pause(): Promise<void> | undefined;
  /** Returns the feed of changes. */
  changes(options: ChangesOptions): AsyncIterableIterator<ChangeRecord>;
  /** Adds a listener for requests to the store; the result removes it. */
  listen(listener: CallListener): () => void;
  close(): Promise<void>;
}
