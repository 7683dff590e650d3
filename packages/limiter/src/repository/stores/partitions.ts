/** How much one partition of a store takes. */

/**
 * Writes per second to one partition of DynamoDB. It is assumed of stores of the caller's too: a
 * bucket that is split too early costs less than one that is throttled.
 */
export const WRITES_PER_PARTITION = 1000;
