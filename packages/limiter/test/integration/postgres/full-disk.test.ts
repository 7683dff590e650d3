/** A server whose disk is full: a disk of its own, in memory, which only root can make. */

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, expect, vi } from "vitest";

const NOT_ROOT = process.getuid?.() !== 0 && "only root can make a disk";
const SIZE = "160m";
const BLOCK = Buffer.alloc(1 << 20);

const cleaning: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleaning.splice(0).reverse()) await clean();
});

/** Makes a disk, and returns its folder. */
function newDisk(): string {
  const disk = mkdtempSync(join(tmpdir(), "zae-limiter-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE},mode=1777`, "tmpfs", disk]);
  cleaning.push(() => {
    execFileSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true });
  });
  return disk;
}

/** Writes to a file until there is no room. */
function fill(path: string): void {
  const file = openSync(path, "w");
  try {
    for (;;) writeSync(file, BLOCK);
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  } finally {
    closeSync(file);
  }
}

describePostgres("a full disk", () => {
  itUnless(NIGHTLY_ONLY || NOT_ROOT)(
    "a full disk is an outage with nothing written, and it ends with the room",
    async () => {
      const disk = newDisk();
      vi.stubEnv("TMPDIR", disk);
      const server = await PostgresServer.start();
      cleaning.push(() => server.remove());
      vi.unstubAllEnvs();
      await Repository.migrate(server.url);
      const limiter = await RateLimiter.open(server.url, { durable: true });
      cleaning.push(() => limiter.close());
      await limiter.repository.limits.setSystem(["n:100/day"]);
      const take = (key: number) =>
        limiter.acquire({ entityId: `key-${key}`, resource: "api", consume: { n: 1 } });
      await take(0);
      const filler = join(disk, "filler");
      fill(filler);
      let failure: unknown;
      let keys = 1;
      for (; failure === undefined && keys < 5000; keys += 1) {
        await take(keys).catch((error: unknown) => {
          failure = error;
        });
      }
      expect(failure).toBeInstanceOf(RateLimiterUnavailable);
      expect(failure).toMatchObject({ reason: "server", nothingWritten: true });
      expect(String(failure)).toContain("No space left");
      const full = await limiter.repository.buckets.list(`key-${keys - 1}`);
      expect(full).toEqual([]);
      rmSync(filler);
      await expect
        .poll(() => take(keys).then(() => "done", String), { timeout: 20_000 })
        .toBe("done");
      const [first] = await limiter.repository.buckets.list("key-0");
      expect(first?.totalConsumed).toBe(1);
    },
  );
});
