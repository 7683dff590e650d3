/** Live buckets are stamped for clients of the Python library, after a change was stored. */

import { SweepIncompleteError } from "../../domain/errors/sweep-incomplete.ts";

/** Effect of a switch besides storing the setting. */
export interface SwitchResult {
  /** Live buckets that were stamped for clients of the Python library; 0 but on DynamoDB. */
  readonly stampedBuckets: number;
}

/**
 * Stamps buckets, and calls `done` with their number after the last one. Clients of this library
 * follow what is stored, so a sweep that fails changes none of their answers; repeating it stamps
 * the rest.
 */
export async function sweep(
  stamp: (onStamped: () => void) => Promise<void>,
  done: (stampedBuckets: number) => Promise<void> = async () => {},
): Promise<SwitchResult> {
  let stampedBuckets = 0;
  try {
    await stamp(() => {
      stampedBuckets += 1;
    });
    await done(stampedBuckets);
  } catch (error) {
    throw new SweepIncompleteError(stampedBuckets, error);
  }
  return { stampedBuckets };
}
