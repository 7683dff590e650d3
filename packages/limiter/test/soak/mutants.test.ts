/** The tests near a source catch a library that is broken there on purpose. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { compile, type SourceChange } from "../../../../scripts/compile.mjs";
import { MUTANTS } from "../../../../test/mutants/mutants.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const TIMEOUT_MS = 300_000;

/** Runs test files on changed sources; returns how many tests passed and failed. */
async function run(changes: readonly SourceChange[], files: readonly string[]) {
  // Inside node_modules, so that packages are found from there.
  const folder = mkdtempSync(join(ROOT, "node_modules", ".cache", "zae-limiter-mutant-"));
  try {
    await compile(folder, { inPlaceOfSources: true, changes });
    const report = join(folder, "report.json");
    const args = ["run", "--project", "unit", "--project", "contract", "--reporter=json"];
    const { ZAEL_SOAK: _, ...env } = process.env;
    const child = spawn(
      process.execPath,
      [join(ROOT, "node_modules/vitest/vitest.mjs"), ...args, `--outputFile=${report}`, ...files],
      { cwd: ROOT, stdio: "ignore", env: { ...env, ZAEL_COMPILED: folder, ZAEL_QUICK: "1" } },
    );
    await once(child, "exit");
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, "utf8")) as {
      readonly numPassedTests: number;
      readonly numFailedTests: number;
    };
    return { passed: numPassedTests, failed: numFailedTests };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.each(Object.entries(MUTANTS))("the mutants of the folder %s", (_, mutants) => {
  test(
    "the tests that catch these mutants pass on the sources",
    async () => {
      const files = [...new Set(mutants.flatMap(({ caughtBy }) => caughtBy))];
      const { passed, failed } = await run([], files);
      expect(failed).toBe(0);
      expect(passed).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );

  test.each(mutants)(
    "the mutant $name is caught: $breaks",
    async (mutant) => {
      expect((await run([mutant], mutant.caughtBy)).failed).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});
