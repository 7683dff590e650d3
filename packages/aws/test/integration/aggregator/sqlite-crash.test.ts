/**
 * A process that is killed while it takes from a file: what was taken and what was counted agree.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { expect, test } from "vitest";

const ENTITIES = 5;
const KILLS = 4;
const TAKES_PER_LIFE = 60;

/** Takes, corrects and gives back as fast as it can, and says so. */
const TAKER = `
  const { RateLimiter } = await import(process.argv[2]);
  const limiter = await RateLimiter.open(process.argv[3]);
  for (let at = 0; ; at += 1) {
    const lease = await limiter.acquire({
      entityId: "key-" + (at % ${ENTITIES}), resource: "gpt-4", consume: { rpm: 1, tpm: 100 },
    });
    if (at % 3 === 0) { lease.adjust({ tpm: 7 }); await lease.commit(); }
    if (at % 7 === 0 && at % 3 !== 0) await lease.rollback();
    process.stdout.write(".");
    if (at % 20 === 0) await limiter.repository.usage.summary({ entityId: "key-0" });
  }
`;

async function takes(child: ChildProcess, count: number): Promise<void> {
  let seen = 0;
  for await (const text of child.stdout ?? []) {
    seen += String(text).length;
    if (seen >= count) return;
  }
}

test("usage in a file is exact, whenever a process is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-usage-"));
  const url = `sqlite:${join(folder, "limits.db")}`;
  const build = builtSources();
  try {
    const script = join(folder, "taker.mjs");
    writeFileSync(script, TAKER);
    const repo = await Repository.open(url, { timeoutMs: 20_000 });
    await repo.limits.setSystem(["rpm:1000000", "tpm:100000000"]);
    for (let life = 0; life < KILLS; life += 1) {
      const child = spawn(process.execPath, [script, build.index, url], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await takes(child, TAKES_PER_LIFE + 13 * life);
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
    for (let number = 0; number < ENTITIES; number += 1) {
      const entityId = `key-${number}`;
      const states = await repo.buckets.list(entityId);
      const truth = Object.fromEntries(
        states.map(({ limitName, totalConsumed }) => [limitName, totalConsumed]),
      );
      expect(truth.rpm).toBeGreaterThan(0);
      for (const window of WINDOW_TYPES) {
        const { total } = await repo.usage.summary({ entityId, resource: "gpt-4", window });
        expect(total).toEqual(truth);
      }
    }
    await repo.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
