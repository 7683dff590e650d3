/** A setting was stored, and not all live buckets carry it yet. */

import { InfrastructureError } from "./errors.ts";

/**
 * A setting was stored, but not every live bucket was stamped with it. Clients of this library
 * follow the stored setting all the same; those of the Python library follow the stamps. Repeating
 * the call completes them.
 *
 * @example
 * ```ts
 * import { SweepIncompleteError } from 'zae-limiter';
 * const error = new SweepIncompleteError(12, new Error('the table is throttled'));
 * console.log(error.code, error.stampedBuckets); // ZAEL_SWEEP_INCOMPLETE 12
 * ```
 */
export class SweepIncompleteError extends InfrastructureError {
  override readonly code = "ZAEL_SWEEP_INCOMPLETE";

  constructor(
    /** How many buckets were stamped before it failed. */
    readonly stampedBuckets: number,
    cause: unknown,
  ) {
    super(
      `The setting is stored and in force. ${stampedBuckets} buckets were stamped for clients of ` +
        "the Python library before the store failed. Repeat the call to stamp the rest",
      { cause },
    );
  }
}
