/**
 * Decides calls of the fast path of an embedded store. Tables in this process implement it and
 * `BucketTable`. `EmbeddedFastPath` is the only caller, and calls it outside of any step: each call
 * is a step of its own, or does nothing.
 */

import type { AdjustedBucket, FastOutcome, FastRequest } from "../fast-path.ts";
import type { FastConfig } from "./packed-bucket.ts";

export interface FastTable {
  /** Other processes may write to the store; what this one does is noticed at once. */
  readonly isShared: boolean;
  /** Consumes from a bucket on the fast path; `undefined`, with nothing done: the slow path. */
  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastOutcome | Promise<FastOutcome | undefined> | undefined;
  /** Adjusts a bucket on the fast path; false, with nothing done: use the slow path. */
  adjust(bucket: AdjustedBucket, deltasMilli: readonly number[], acquires: number): boolean;
  /** Adjusts together with other writes of this turn; absent where writes need no sharing. */
  adjustShared?(
    bucket: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): Promise<boolean>;
  /** Says which limits are in force for a bucket, and until when: the fast path needs them. */
  remember(entityId: string, resource: string, fast: FastConfig, untilMs: number): void;
}
