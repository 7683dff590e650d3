/** A mutant whose text is gone from the sources would be caught by nothing. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { HARMLESS, MUTANTS } from "./mutants.ts";

describe("mutants", () => {
  for (const { name, breaks, changes } of MUTANTS) {
    test(`the sources still have the texts that ${name} changes`, () => {
      for (const { file, from } of changes) {
        const source = readFileSync(new URL(`../../../../${file}`, import.meta.url), "utf8");
        const hint = `${file} does not say "${from}". Move the mutant to the code that does this: ${breaks}`;
        expect(source.includes(from), hint).toBe(true);
      }
    });
  }

  test("each mutant has a name of its own, and each harmless change says why", () => {
    const names = MUTANTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const reason of Object.values(HARMLESS)) expect(reason).toMatch(/^[A-Z].*\.$/);
  });
});
