/** One call of a process to the table, with all its attempts. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Condition } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Failure } from "./failure.ts";

/** A write that was done. */
export interface Landing {
  readonly key: Key;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
  /** The condition that held before. */
  readonly condition?: Condition | undefined;
}

export interface TableCall {
  readonly process: number;
  readonly operation: string;
  /** Time of the process's own clock when it made the call. */
  readonly plannedMs: number;
  /** Calls with the same token are one call. */
  readonly token: string | undefined;
  /** Effects of all its attempts. */
  readonly landings: Landing[];
}

/** The answer of the table to one attempt. */
export type Outcome<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** A request that could never work. */
  | { readonly kind: "wrong"; readonly error: Error };

/** Observes a table, for checkers. */
export interface TableObserver {
  /** A request has arrived. */
  arrived?(call: TableCall, failure: Failure | undefined): void;
  /** Items were written, all at one moment. */
  landed?(call: TableCall, landings: readonly Landing[]): void;
  /** The condition of a write did not hold. */
  missed?(call: TableCall, key: Key): void;
  /** The process received the answer that its call was done. */
  answered?(call: TableCall): void;
  /** The request could never work, and the process got the error. */
  refused?(call: TableCall, error: Error): void;
  /** The process received an error, or no answer at all. */
  unanswered?(call: TableCall): void;
}
