/** Redis 7 from the packages of Debian or Ubuntu: downloaded and unpacked, not installed. */

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const CACHE = fileURLToPath(
  new URL("../../node_modules/.cache/zae-limiter-packages", import.meta.url),
);
const PACKAGES = ["redis-server", "redis-tools", "liblzf1", "libjemalloc2"];
const run = promisify(execFile);

/** Returns the program and its libraries; throws when they cannot be fetched. */
export async function fetchedRedis(): Promise<{ program: string; libraries: string }> {
  const home = join(CACHE, "redis-7");
  if (!existsSync(home)) await fetchRedis(home);
  const libraries = join(home, "usr/lib", `${machine()}-linux-gnu`);
  return { program: join(home, "usr/bin/redis-server"), libraries };
}

async function fetchRedis(home: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const made = mkdtempSync(join(CACHE, "new-"));
  try {
    await run("apt-get", ["download", ...PACKAGES], { cwd: made });
    for (const name of readdirSync(made)) await run("dpkg", ["-x", name, "."], { cwd: made });
    if (!existsSync(home)) renameSync(made, home);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function machine(): string {
  return process.arch === "arm64" ? "aarch64" : "x86_64";
}
