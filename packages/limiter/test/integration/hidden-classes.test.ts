/**
 * V8 gives objects that are made alike one hidden class, and finds their fields by it. Objects that
 * are made by spreading another one may get a class each: then every lookup of a field takes ten
 * times as long, in each acquire, and no profile shows it in one place.
 */

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Repository } from "@zae-limiter/limiter/index.ts";
import { createTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("./hidden-classes/acquire.mjs", import.meta.url));
const CALLS = 1200;

/** `LoadIC,0x35…,8012345,254,49,N,N,0x21…,nowMs,,`: what, address, time, line, column, …, name */
const MISS = /^(\w+IC),[^,]*,(\d+),(\d+),(\d+),[^,]*,[^,]*,[^,]*,([^,]*)/;

/** Returns how often each lookup of a field had to search for it since, by its place and name. */
function missesIn(log: string, sinceMs: number): ReadonlyMap<string, number> {
  const misses = new Map<string, number>();
  for (const line of log.split("\n")) {
    const [, kind, atUs, row, column, name] = MISS.exec(line) ?? [];
    if (kind === undefined || Number(atUs) < sinceMs * 1000) continue;
    const place = `${kind} ${name} at ${row}:${column}`;
    misses.set(place, (misses.get(place) ?? 0) + 1);
  }
  return misses;
}

describeEngine("dynoxide", "hidden classes", ({ endpoint }: RunningEngine) => {
  const folder = temporaryFolder();
  const { index } = builtSources();

  it("an acquire and its adjustment find the fields of all their objects by hidden class", async () => {
    const table = `classes-${crypto.randomUUID()}`;
    await createTable({ table, endpoint, stream: false });
    const repo = await Repository.createTable(table, { endpoint });
    await repo.limits.setSystem(["rpm:1000000/sec", "tpm:1000000000/sec"]);
    await repo.close();
    const log = join(folder, "v8.log");
    const flags = ["--log-ic", `--logfile=${log}`, "--no-logfile-per-isolate"];
    const args = [index, table, endpoint, String(CALLS)];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, SCRIPT, ...args]);
    const misses = missesIn(readFileSync(log, "utf8"), Number(stdout));
    // Each time that code is compiled, it searches for each field a few times; and once for each
    // of the 400 entities when the class of their objects changes, as it does for a first fraction.
    expect(misses.size).toBeGreaterThan(0);
    const frequent = [...misses].filter(([, count]) => count > CALLS / 2);
    expect(frequent).toEqual([]);
  });
});
