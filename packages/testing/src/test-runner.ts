/** The parts of a test runner that the contracts use, so that they depend on none. */

import { format } from "node:util";

/** Compares; throws where the comparison fails. `expect` of Vitest and of Jest do. */
export interface Matchers {
  /** Compares by identity. */
  toBe(expected: unknown): unknown;
  /** Passes for larger numbers. */
  toBeGreaterThan(expected: number): unknown;
  /** Passes for larger numbers and for the same one. */
  toBeGreaterThanOrEqual(expected: number): unknown;
  /** Passes for objects of the class. */
  toBeInstanceOf(expected: unknown): unknown;
  /** Passes for smaller numbers. */
  toBeLessThan(expected: number): unknown;
  /** Passes for smaller numbers and for the same one. */
  toBeLessThanOrEqual(expected: number): unknown;
  /** Passes for `undefined` only. */
  toBeUndefined(): unknown;
  /** Passes for a text with this part. */
  toContain(expected: string): unknown;
  /** Compares by value; absent and `undefined` members are the same. */
  toEqual(expected: unknown): unknown;
  /** Compares the length. */
  toHaveLength(expected: number): unknown;
  /** Compares the members that are named. */
  toMatchObject(expected: object): unknown;
  /** Compares by value and type. */
  toStrictEqual(expected: unknown): unknown;
}

/**
 * The functions of a test runner. Vitest as a module and the globals of Jest have all of them;
 * `node:test` has them under the names `describe`, `test`, `before` and `after`, and takes `expect`
 * from the package of that name.
 */
export interface TestRunner {
  /** Groups tests. */
  readonly describe: (title: string, suite: () => void) => unknown;
  /** Declares a test. */
  readonly test: ((title: string, run: () => Promise<void>) => unknown) & {
    readonly skip: (title: string, run: () => Promise<void>) => unknown;
  };
  /** Makes a comparison. */
  readonly expect: (value: unknown) => Matchers;
  /** Runs before the tests of the group. */
  readonly beforeAll: (work: () => Promise<void>) => unknown;
  /** Runs after the tests of the group. */
  readonly afterAll: (work: () => Promise<void>) => unknown;
}

/** Declares one case per row: `each(rows)(title, run)`. */
export interface Each<Result> {
  <Row extends readonly unknown[]>(
    rows: readonly Row[],
  ): (title: string, run: (...row: Row) => Result) => void;
  <One>(rows: readonly One[]): (title: string, run: (one: One) => Result) => void;
}

/** The functions of a test runner, and what can be made of them. */
export interface Cases extends TestRunner {
  readonly testEach: Each<Promise<void>>;
  readonly describeEach: Each<void>;
  /** A test that is skipped where there is a reason; the title then says it. */
  readonly testUnless: (
    reason: string | undefined,
  ) => (title: string, run: () => Promise<void>) => unknown;
}

/** Adds what can be made of the functions of a test runner. */
export function casesOf(runner: TestRunner): Cases {
  const { describe, test, expect, beforeAll, afterAll } = runner;
  return {
    describe,
    test,
    expect,
    beforeAll,
    afterAll,
    testEach: each((title, run) => test(title, run)),
    describeEach: each((title, suite) => describe(title, suite)),
    testUnless: (reason) =>
      reason === undefined ? test : (title, run) => test.skip(`${title} (${reason})`, run),
  };
}

/** Declares one case per row with `declare`; `%s` and `%j` in a title are places for its values. */
export function each<Result>(declare: (title: string, run: () => Result) => unknown): Each<Result> {
  return (rows: readonly unknown[]) => (title: string, run: (...row: never[]) => Result) => {
    // The same number of values as there are places: `format` would add the others at the end.
    const places = title.match(/%[sj]/g)?.length ?? 0;
    for (const row of rows) {
      const values: readonly unknown[] = Array.isArray(row) ? row : [row];
      const shown = Array.from({ length: places }, (_, place) => values[place]);
      declare(format(title, ...shown), () => run(...(values as never[])));
    }
  };
}
