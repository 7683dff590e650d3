/** The progress of a copy, and its result. */

import type { CopyDifference, RowCounts } from "./passes.ts";

/** The part of a copy that is under way. */
export type CopyPhase = "survey" | "copy" | "compare";

/** How far a copy is. */
export interface CopyProgress {
  /** The namespace that is copied. */
  readonly namespace: string;
  readonly phase: CopyPhase;
  /** Rows of the source that this phase is done with. */
  readonly done: number;
  /** Rows that there are; not known before the survey is done. */
  readonly total: number;
}

/** A namespace after its copy. */
export interface CopiedNamespace {
  readonly name: string;
  /** Its id in the source. */
  readonly fromId: string;
  /** Its id in the target: the same, unless the name or the id was taken there. */
  readonly toId: string;
  /** Whether an earlier run had begun with it. */
  readonly resumed: boolean;
  /** The rows of the source. */
  readonly counts: RowCounts;
  /** How many rows this run has written or removed. */
  readonly written: number;
  /** Limits in buckets that only the Python library enforces: their balances stay behind. */
  readonly leftBehind: number;
  /** How many rows are not the same on both sides. */
  readonly differing: number;
  /** The first of them. */
  readonly differences: readonly CopyDifference[];
}

/**
 * The result of a copy.
 *
 * @example
 * ```ts
 * import { copyStore, Repository, type CopyReport } from 'zae-limiter';
 * const [from, to] = [await Repository.open('memory:'), await Repository.open('memory:')];
 * await from.entities.create({ id: 'key-1' });
 * const report: CopyReport = await copyStore(from, to);
 * console.log(report.same, report.namespaces[0]?.counts.entities); // true 1
 * await Promise.all([from.close(), to.close()]);
 * ```
 */
export interface CopyReport {
  /** The store that was copied, without credentials. */
  readonly from: string;
  /** The store that it was copied to, without credentials. */
  readonly to: string;
  /** Whether both sides were the same at the end. */
  readonly same: boolean;
  readonly namespaces: readonly CopiedNamespace[];
}
