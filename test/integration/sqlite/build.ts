/** The sources as plain JavaScript, for child processes: `dist` may be older than the sources. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

export interface Build {
  /** The address of the module that opens a file. */
  readonly open: string;
  /** The address of the package. */
  readonly index: string;
  /** The file of the command. */
  readonly binary: string;
  remove(): void;
}

/** Inside node_modules by default, so that the packages are found from there. */
export function buildSources(parent: string = join(ROOT, "node_modules", ".cache")): Build {
  mkdirSync(parent, { recursive: true });
  const directory = mkdtempSync(join(parent, "zae-limiter-"));
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const project = join(ROOT, "tsconfig.build.json");
  // Types are checked elsewhere.
  execFileSync(process.execPath, [compiler, "-p", project, "--noCheck", "--outDir", directory]);
  return {
    open: pathToFileURL(join(directory, "storage", "sqlite", "open.js")).href,
    index: pathToFileURL(join(directory, "index.js")).href,
    binary: join(directory, "cli", "main.js"),
    remove: () => rmSync(directory, { recursive: true }),
  };
}
