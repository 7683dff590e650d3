/**
 * The port to a database that keeps items: cells with revisions, one atomic commit, pages in order,
 * a log. It is all that a store has to write; conditions, changes, transactions, feeds and buckets
 * are written once above it.
 *
 * The limiter calls it in this order:
 *
 * 1. `read`: the cells that a step begins with, all as of one moment, and later those that it turns
 *    out to need.
 * 2. `page`: where a step lists, followed by a `read` of the keys it found.
 * 3. `commit`: what the step writes, on condition that every cell it has used is unchanged. When
 *    one has changed, the step runs again from 1, until its time is over.
 * 4. `log`: readers of changes, again and again, each time from where the last page ended.
 * 5. `close`: once, last, when no other call of this client is under way.
 *
 * All others may be called while calls are under way, by any number of clients and processes.
 * `read`, and `page` of the table itself, see every commit that has been answered; only a page of
 * an index may lag behind.
 *
 * A table that cannot answer throws `RateLimiterUnavailable`, with `nothingWritten` where that is
 * certain: a commit that may have happened is never repeated without a token. One that is missing
 * throws `InfrastructureNotFoundError`, and anything else that it refuses is an
 * `InfrastructureError`.
 */

import type { Item, Key } from "./item.ts";
import type { ChangeRecord } from "./item-store.ts";
import type { IndexName } from "./table.ts";

/**
 * Marks an object as an `ItemTable`.
 *
 * @example
 * ```ts
 * import { ITEM_TABLE } from 'zae-limiter/testing';
 * const table = { [ITEM_TABLE]: true };
 * console.log(ITEM_TABLE in table); // true
 * ```
 */
export const ITEM_TABLE: unique symbol = Symbol.for("zae-limiter.item-table");

/** One row as it was read. */
export interface Cell {
  /** The key that was asked for. */
  readonly key: Key;
  /** The item; `undefined` where there is none. */
  readonly item: Item | undefined;
  /** Differs from every revision that this key had before; `undefined` without an item. */
  readonly revision: string | undefined;
}

/** A row that a commit replaces. Its key is among the cells that were read. */
export interface CellWrite {
  readonly key: Key;
  /** The item that was read, for the log. */
  readonly before: Item | undefined;
  /** The item to store; `undefined`: remove the row. */
  readonly after: Item | undefined;
  /** Whether the log has the change. Balances are not logged. */
  readonly isLogged: boolean;
  /**
   * Whether a crash of the server may not forget it either, although it is not logged: rows with
   * the holders of slots. Of other balances it may forget the last moments.
   */
  readonly mustLast?: boolean;
}

/** The writes of a step, and the cells that they depend on. */
export interface Commit {
  /** Every one must still have its revision, or be missing as it was. */
  readonly reads: readonly Cell[];
  /** Written together, or not at all; often none. */
  readonly writes: readonly CellWrite[];
  /** Makes the commit happen once in ten minutes. */
  readonly token: string | undefined;
  /** A key of the step, the same each time it runs, even when it reads and writes nothing. */
  readonly near?: Key | undefined;
  /** Epoch milliseconds: for the log, for tokens, and for items whose `ttl` is over. */
  readonly nowMs: number;
}

/**
 * `done`: all writes are stored, and logged. `changed`: a cell has another revision, and nothing
 * was written. `repeated`: a commit with this token was done in the last ten minutes, and nothing
 * was written; the token is checked before the cells are compared. A commit without writes
 * stores no token.
 */
export type CommitResult = "done" | "changed" | "repeated";

/** A part of a partition of the table or of an index. */
export interface PageRange {
  /** The index; the table itself when `undefined`. */
  readonly index: IndexName | undefined;
  readonly partition: string;
  /** The least sort key, included. */
  readonly from: string | undefined;
  /** The sort keys are below this one, in the order of bytes. */
  readonly before: string | undefined;
  /** Whether the greatest sort key comes first. */
  readonly descending: boolean;
  /** Begin after this item, which may be gone; it has the keys of the table and of the index. */
  readonly after: Item | undefined;
  /** The most items to return. Fewer mean that the range has no more. */
  readonly limit: number;
}

/** The place in the log to read from; `now`: its end. */
export type LogStart = "now" | "oldest" | { readonly after: string };

/** Some of the changes of a log. */
export interface LogPage {
  /** The changes in their order; none where the log ends. */
  readonly records: readonly ChangeRecord[];
  /** The start of the next page: after the last record, or the start that was asked for. */
  readonly position: string;
}

/** How long a call may take. */
export interface TableCallOptions {
  /** Milliseconds; at least 1. */
  readonly timeoutMs: number;
}

/**
 * The database that carries a limiter. `Repository.over` takes it, and the contracts of
 * `zae-limiter/testing` test it.
 */
export interface ItemTable {
  /** Distinguishes a table from an item store. */
  readonly [ITEM_TABLE]: true;
  /** Returns the cells of some keys, in their order, all as of one moment. */
  read(keys: readonly Key[], options: TableCallOptions): Promise<readonly Cell[]>;
  /**
   * Writes all or nothing. A cell that was missing is compared too: two commits must not both
   * succeed when one has read what the other creates. After the writes of a commit, at least as
   * many items whose `ttl` (epoch seconds) is over are removed, and logged as expired; there is no
   * other housekeeping to call.
   */
  commit(commit: Commit, options: TableCallOptions): Promise<CommitResult>;
  /**
   * Returns items of a partition in the order of the bytes of their sort keys, then of `PK` and
   * `SK`. An item is in an index when it has both of its keys.
   */
  page(range: PageRange, options: TableCallOptions): Promise<readonly Item[]>;
  /**
   * Returns logged changes, in the order in which their commits became visible: a reader that was
   * at a position must never find a record before it later. A position that is no longer kept, or
   * never was one, is a `ValidationError`. Changes are kept for a day, as far as there is room.
   */
  log(from: LogStart, limit: number, options: TableCallOptions): Promise<LogPage>;
  /** Ends everything that the table has open. */
  close(): Promise<void>;
}

/** Returns whether something is an item table, by its mark. */
export function isItemTable(value: object): value is ItemTable {
  return ITEM_TABLE in value;
}
