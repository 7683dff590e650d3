/** Live buckets are stamped for clients of the Python library, after a change was stored. */

import { SweepIncompleteError } from "../../domain/errors/sweep-incomplete.ts";

/** What a switch has done besides storing the setting. */
export interface SwitchResult {
  /** Live buckets that were stamped for clients of the Python library; 0 on embedded stores. */
  readonly stampedBuckets: number;
}

/**
 * Stamps buckets, and calls `done` with their number after the last one. `stamp` returns false on
 * stores that clients of the Python library cannot use. Clients of this library follow what is
 * stored, so a sweep that fails changes none of their answers; repeating it stamps the rest.
 */
export async function sweep(
  stamp: (onStamped: () => void) => Promise<boolean>,
  done: (stampedBuckets: number) => Promise<void> = async () => {},
): Promise<SwitchResult> {
  let stampedBuckets = 0;
  try {
    const isStamped = await stamp(() => {
      stampedBuckets += 1;
    });
    if (isStamped) await done(stampedBuckets);
  } catch (error) {
    throw new SweepIncompleteError(stampedBuckets, error);
  }
  return { stampedBuckets };
}
