/** How much of a long test runs: a part in `npm test`, everything in `npm run test:nightly`. */

import type { Reason } from "./unless.ts";

const IS_NIGHTLY = process.env.ZAEL_NIGHTLY !== undefined;

/** Reason to skip a test that runs each night, for `itUnless` and `describeUnless`. */
export const NIGHTLY_ONLY: Reason = !IS_NIGHTLY && "it runs in npm run test:nightly";

/**
 * Returns how many of `all` generated cases to check: a fifth, at night all. FC_RUNS sets another
 * number. The seed is the same by day, so the other cases would be the same each time; the night
 * draws new ones.
 */
export function casesOf(all: number): number {
  return Number(process.env.FC_RUNS ?? (IS_NIGHTLY ? all : Math.ceil(all / 5)));
}
