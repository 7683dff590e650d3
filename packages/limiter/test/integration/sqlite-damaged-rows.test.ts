/** Rows of buckets that cannot be read, and files that are opened and closed again and again. */

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { DamagedRecordError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { SqliteDatabase } from "@zae-limiter/limiter/storage/sqlite/database.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, describe, expect, test } from "vitest";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  folders.push(folder);
  return join(folder, "limits.db");
}

const TARGET = { entityId: "user-1", resource: "gpt-4" };

describe.each(["", "{", "null", "[1]", '[1,"system",0,null,[["rpm",1,"x"]],1,0]'])(
  "a bucket whose row is %j",
  (state) => {
    test("a damaged row is a DamagedRecordError, is left out of lists, and is deleted with its entity", async () => {
      const path = newFile();
      const limiter = await RateLimiter.open(`sqlite:${path}`);
      await limiter.repository.limits.setSystem(["rpm:10"]);
      await limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
      await limiter.acquire({ ...TARGET, entityId: "user-2", consume: { rpm: 1 } });
      const database = await SqliteDatabase.open({ path });
      const damage = "UPDATE buckets SET state = ? WHERE entity = 'user-1'";
      await database.write(() => database.prepare(damage).run(state));
      database.close();
      const fails = limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
      await expect(fails).rejects.toBeInstanceOf(DamagedRecordError);
      const { buckets, entities } = limiter.repository;
      expect((await buckets.capacity("gpt-4", "rpm")).entities).toHaveLength(1);
      await entities.delete("user-1");
      const lease = await limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
      expect(lease.consumed).toEqual({ rpm: 1 });
      await limiter.close();
    });
  },
);

itUnless(process.platform !== "linux" && "only Linux lists open files in /proc")(
  "closed files leave no descriptors behind",
  async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const opened = () => readdirSync("/proc/self/fd").length;
    const kept: RateLimiter[] = [];
    const before = opened();
    for (let time = 0; time < 30; time += 1) {
      const limiter = await RateLimiter.open(`sqlite:${newFile()}`);
      await limiter.repository.limits.setSystem(["rpm:10"]);
      await limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
      await limiter.close();
      kept.push(limiter);
    }
    await expect
      .poll(
        () => {
          collect();
          return opened() - before;
        },
        { timeout: 10_000 },
      )
      .toBeLessThan(10);
    expect(kept).toHaveLength(30);
  },
);
