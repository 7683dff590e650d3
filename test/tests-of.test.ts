/** The index from a source file to its tests, `npm run tests-of`. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { testIndex } from "../scripts/tests-of.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const index = testIndex();

test("the tests of a source file begin with the one of its name", () => {
  const { distance, tests } = index.get("packages/limiter/src/core/bucket.ts") ?? {};
  expect(distance).toBe(1);
  expect(tests?.[0]).toBe("packages/limiter/test/unit/core/bucket.test.ts");
});

test("a source file that no test imports leads to the tests of the files that use it", () => {
  const { distance, tests } =
    index.get("packages/limiter/src/records/config/config-resolver.ts") ?? {};
  expect(distance).toBeGreaterThan(1);
  expect(tests).toContain("packages/limiter/test/contract/records/config-version.test.ts");
});

/** Started by another program: a Lambda function, a process of a worker, a command, an example. */
const STARTED =
  /(?:-entry|lambda-worker|worker-process|index|select-items)\.ts$|\/simulator\/src\/command\//;
/** A value, such as a class or a function; a file of types alone runs no code. */
const VALUE = /^export (?:abstract |async )*(?:class|function|const)\b/m;

test("every source file with code is reached from a test, or started by a program", () => {
  const untested = [...index].filter(
    ([path, { tests }]) =>
      tests.length === 0 &&
      !STARTED.test(path) &&
      VALUE.test(readFileSync(`${ROOT}${path}`, "utf8")),
  );
  expect(untested.map(([path]) => path)).toEqual([]);
});
