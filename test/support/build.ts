/**
 * The sources as plain JavaScript, for child processes: `dist` may be older than the sources.
 * `test/support/built-sources.ts` bundles them once per run.
 */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inject } from "vitest";
import { compile } from "../../scripts/compile.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Build {
  /** The address of the module that opens a file. */
  readonly open: string;
  /** The address of the package. */
  readonly index: string;
  /** The file of the command. */
  readonly binary: string;
}

/** Returns the build that all test files of this run share. */
export function builtSources(): Build {
  return buildIn(inject("builtSources"));
}

/**
 * Compiles each source to a file of its own, for tests of the modules that a process loads.
 * By default inside node_modules, so that the packages are found from there.
 */
export async function compileSources(
  parent: string = join(ROOT, "node_modules", ".cache"),
): Promise<Build & { remove(): void }> {
  mkdirSync(parent, { recursive: true });
  const directory = mkdtempSync(join(parent, "zae-limiter-"));
  await compile(directory);
  return { ...buildIn(directory), remove: () => rmSync(directory, { recursive: true }) };
}

function buildIn(directory: string): Build {
  return {
    open: pathToFileURL(join(directory, "limiter", "storage", "sqlite", "connection.js")).href,
    index: pathToFileURL(join(directory, "index.js")).href,
    binary: join(directory, "cli", "main.js"),
  };
}
