/** Pure files, which decide and compute without I/O, have a test of their own name. */

import type { SourceFile, Violation } from "./source.ts";

const PROMISE = /\b(?:async|await|Promise)\b/;
const EXPORTED_VALUE = /^export\s+(?:abstract\s+)?(?:const|let|function\*?|class)\b/m;

/** Returns the pure files below `folder` that have no test at their place in `test/unit`. */
export function untestedPureFiles(
  files: readonly SourceFile[],
  folder: string,
  hasTest: (path: string) => boolean,
): Violation[] {
  return files
    .filter(({ path }) => path.startsWith(folder))
    .filter(isPure)
    .map(({ path }) => ({ path, test: testOf(path) }))
    .filter(({ test }) => !hasTest(test))
    .map(({ path, test }) => ({ path, line: 1, rule: `is pure and has no test ${test}` }));
}

/** I/O is always a promise here: a file with values and without promises is pure. */
function isPure({ words }: SourceFile): boolean {
  return EXPORTED_VALUE.test(words) && !PROMISE.test(words);
}

function testOf(path: string): string {
  return path.replace(/\/src\//, "/test/unit/").replace(/\.ts$/, ".test.ts");
}
