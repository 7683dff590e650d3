/**
 * The local DynamoDB of the measurements: dynoxide, which the tests use too. The npm registry has an
 * old release of it, whose allocator and whose indexes take most of the time of a write. The newest
 * one is built from its sources where cargo is installed.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const CRATE = "dynoxide-rs";
const VERSION = "3.2.0";
const FOLDER = fileURLToPath(new URL("./engine", import.meta.url));
const BUILT = join(FOLDER, "bin", "dynoxide");
/** Neither its import of exports nor its tools for language models are needed here. */
const FEATURES = "native-sqlite,http-server,cli";

/** Builds the newest release, once; without cargo the one of the npm registry is measured with. */
export function buildEngine() {
  if (existsSync(BUILT)) return;
  if (spawnSync("cargo", ["--version"]).status !== 0) {
    console.error("There is no cargo: local DynamoDB is the older release from npm.");
    return;
  }
  console.error(`Building local DynamoDB (${CRATE} ${VERSION}); this takes two or three minutes …`);
  const args = ["install", CRATE, "--version", VERSION, "--locked", "--root", FOLDER];
  const options = ["--quiet", "--no-default-features", "--features", FEATURES];
  const { status } = spawnSync("cargo", [...args, ...options], { stdio: "inherit" });
  if (status !== 0) console.error("It could not be built: the older release from npm is used.");
}

/** Returns the path of the local DynamoDB that is measured with. */
export function enginePath() {
  if (existsSync(BUILT)) return BUILT;
  const require = createRequire(new URL("../test/engines/package.json", import.meta.url));
  const manifest = require.resolve(`@dynoxide/${process.platform}-${process.arch}/package.json`);
  return join(dirname(manifest), "dynoxide");
}

/** Returns its name and version; of one that was built, the version of its crate. */
export function engineName() {
  if (existsSync(BUILT)) return `dynoxide (${CRATE} ${VERSION})`;
  return spawnSync(enginePath(), ["--version"], { encoding: "utf8" }).stdout.trim();
}
