/**
 * Skips with a reason. A skipped test shows the reason in its title, so that every reporter prints
 * it: `it.skipIf` would leave the reader of a log to guess.
 */

import { describe, it } from "vitest";

/** Why tests are skipped; false or absent when they run. */
export type Reason = string | false | undefined;

const titled = (title: string, reason: string) => `${title} (skipped: ${reason})`;

/**
 * Returns `it`, or, with a reason, an `it` that skips its tests and names the reason.
 *
 * @example
 * itUnless(store.slow)("a very large page is read in parts", async () => { … });
 */
export function itUnless(reason: Reason): typeof it {
  if (reason === false || reason === undefined) return it;
  const skipped = (title: string) => it.skip(titled(title, reason), () => undefined);
  const each = (cases: readonly unknown[]) => (title: string) =>
    it.skip.each(cases)(titled(title, reason), () => undefined);
  return Object.assign(skipped, { each }) as unknown as typeof it;
}

/** Returns `describe`, or, with a reason, one that lists the tests inside as skipped. */
export function describeUnless(reason: Reason): typeof describe {
  if (reason === false || reason === undefined) return describe;
  const skipped = (title: string, suite: () => void) => describe.skip(titled(title, reason), suite);
  const each = (cases: readonly unknown[]) => (title: string, suite: () => void) =>
    describe.skip.each(cases)(titled(title, reason), suite);
  return Object.assign(skipped, { each }) as unknown as typeof describe;
}
