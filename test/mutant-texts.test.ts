/** The mutants of `npm run soak:mutants` break the sources as they are, and name tests. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { MUTANTS } from "./mutants/mutants.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const all = Object.values(MUTANTS).flat();

test.each(all)("the source that the mutant $name breaks still has its text", (mutant) => {
  const text = readFileSync(`${ROOT}${mutant.file}`, "utf8");
  expect(text.split(mutant.from)).toHaveLength(2);
  expect(mutant.to).not.toBe(mutant.from);
});

test.each(all)("the tests that must catch the mutant $name are there", ({ caughtBy }) => {
  expect(caughtBy.filter((path) => !existsSync(`${ROOT}${path}`))).toEqual([]);
  expect(caughtBy.length).toBeGreaterThan(0);
});

test("no two mutants have one name", () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});
