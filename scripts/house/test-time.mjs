/** How long the last `npm test` took, kept below `node_modules`. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../entry-points.mjs";

const FILE = join(root, "node_modules", ".cache", "zae-limiter-test-time.json");

/** Writes the seconds of a run of `npm test` that ran all tests, with how they ended. */
export function writeTestTime(seconds, result) {
  mkdirSync(dirname(FILE), { recursive: true });
  const time = { seconds: Math.round(seconds), result, endedAt: new Date().toISOString() };
  writeFileSync(FILE, `${JSON.stringify(time)}\n`);
}

/** Returns the last time; `undefined` when `npm test` has not run here. */
export function readTestTime() {
  return existsSync(FILE) ? JSON.parse(readFileSync(FILE, "utf8")) : undefined;
}
