/**
 * Mutants: the library, broken on purpose by one text of a source, each in a way that ordinary
 * tests might miss. `npm run soak:mutants` runs the tests that must catch each of them.
 *
 * When the sources change, `test/mutant-texts.test.ts` shows which texts are gone: read `breaks`,
 * find the place that does this now, and change `from` and `to`. When no place does it any more,
 * remove the mutant. The simulator has mutants of its own for the distributed buckets.
 */

export interface Mutant {
  readonly name: string;
  /** The effect of the mutant, in words that hold for any code. */
  readonly breaks: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Test files of the unit and contract tests; at least one of their tests must fail. */
  readonly caughtBy: readonly string[];
}
