/**
 * A package that few tests need and that is too large for every clone: npm fetches it when the
 * first of them runs, and it stays for the next run.
 */

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const CACHE = fileURLToPath(
  new URL("../../node_modules/.cache/zae-limiter-packages", import.meta.url),
);
const run = promisify(execFile);

/** Returns the folder of a package at an exact version; throws when it cannot be fetched. */
export async function fetchedPackage(name: string, version: string): Promise<string> {
  const home = join(CACHE, `${name.replace("/", "+")}@${version}`);
  const folder = join(home, "node_modules", name);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const made = mkdtempSync(join(CACHE, "new-"));
  try {
    // Without a package.json of its own, npm would install into this repository.
    writeFileSync(join(made, "package.json"), "{}");
    const flags = ["--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"];
    await run("npm", ["install", ...flags, `${name}@${version}`], { cwd: made });
    // Another process may have been faster.
    if (!existsSync(home)) renameSync(made, home);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  return folder;
}
