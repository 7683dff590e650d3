/**
 * Consumes of one turn of the event loop share a transaction of a SQLite file, and stay exact; so
 * do corrections, of which each is one statement.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const TARGET = { entityId: "user", resource: "api" };
const REQUEST = { ...TARGET, consume: { rpd: 1 } };

describe("acquires of one turn of the event loop in a file", () => {
  let folder: string;
  const open: RateLimiter[] = [];

  async function limiter(): Promise<RateLimiter> {
    const made = await RateLimiter.open(`sqlite:${join(folder, "limits.db")}`);
    open.push(made);
    return made;
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  });

  afterEach(async () => {
    for (const one of open.splice(0)) await one.close();
    rmSync(folder, { recursive: true });
  });

  async function granted(limiters: readonly RateLimiter[], count: number): Promise<number> {
    const decisions = await Promise.all(
      Array.from({ length: count }, (_, at) =>
        (limiters[at % limiters.length] as RateLimiter).tryAcquire(REQUEST),
      ),
    );
    return decisions.filter((decision) => decision.granted).length;
  }

  it("acquires of one turn grant exactly what the bucket has, in the order in which they came", async () => {
    const one = await limiter();
    await one.repository.limits.setSystem(["rpd:50/day"]);
    await one.acquire(REQUEST);
    const decisions = await Promise.all(Array.from({ length: 64 }, () => one.tryAcquire(REQUEST)));
    const answers = decisions.map((decision) => decision.granted);
    expect(answers).toEqual(answers.map((_, at) => at < 49));
    expect(await one.available(TARGET)).toEqual({ rpd: 0 });
  });

  it("acquires of one turn grant no more where two connections write to one file", async () => {
    const [one, other] = [await limiter(), await limiter()];
    await one.repository.limits.setSystem(["rpd:500/day"]);
    await one.acquire(REQUEST);
    await other.acquire(REQUEST);
    let sum = 2;
    for (let turn = 0; turn < 12; turn += 1) sum += await granted([one, other], 50);
    expect(sum).toBe(500);
    expect(await other.available(TARGET)).toEqual({ rpd: 0 });
  });

  it("acquires of one turn are one transaction, however many promises come before", async () => {
    const one = await limiter();
    await one.repository.limits.setSystem(["rpd:1000/day"]);
    const entities = Array.from({ length: 16 }, (_, at) => `user-${at}`);
    const acquire = (entityId: string) => one.acquire({ ...REQUEST, entityId });
    for (const entityId of entities) await acquire(entityId);
    const before = transactionsIn(join(folder, "limits.db-wal"));
    await Promise.all(
      entities.map(async (entityId, at) => {
        for (let passed = 1; passed < at; passed += 1) await Promise.resolve();
        await acquire(entityId);
      }),
    );
    // The first is written alone, because nothing is under way; the second begins the group.
    expect(transactionsIn(join(folder, "limits.db-wal")) - before).toBe(2);
  });

  it("acquires of one turn refund exactly what they consumed, also in the same turn", async () => {
    const one = await limiter();
    await one.repository.limits.setSystem(["rpd:200/day"]);
    await one.acquire(REQUEST);
    let kept = 1;
    const lanes = Array.from({ length: 16 }, async (_, lane) => {
      for (let round = 0; round < 20; round += 1) {
        const decision = await one.tryAcquire(REQUEST);
        if (!decision.granted) continue;
        if (lane % 2 === 0) {
          await decision.lease.rollback();
          continue;
        }
        kept += 1;
        await decision.lease.commit();
      }
    });
    await Promise.all(lanes);
    expect(await one.available(TARGET)).toEqual({ rpd: 200 - kept });
  });

  it("corrections of one turn are one transaction, whether they consume more or refund", async () => {
    const one = await limiter();
    await one.repository.limits.setSystem(["rpd:1000/day"]);
    const entities = Array.from({ length: 16 }, (_, at) => `user-${at}`);
    const acquire = (entityId: string) =>
      one.acquire({ ...REQUEST, entityId, consume: { rpd: 5 } });
    for (const entityId of entities) await (await acquire(entityId)).commit();
    const leases = await Promise.all(entities.map(acquire));
    const before = transactionsIn(join(folder, "limits.db-wal"));
    leases.forEach((lease, at) => void lease.settle({ rpd: at % 2 === 0 ? 9 : 2 }));
    await Promise.all(leases.map((lease) => lease.commit()));
    // The first is written alone, as above.
    expect(transactionsIn(join(folder, "limits.db-wal")) - before).toBe(2);
    const left = await Promise.all(
      entities.map((entityId) => one.available({ ...TARGET, entityId })),
    );
    expect(left).toEqual(entities.map((_, at) => ({ rpd: at % 2 === 0 ? 986 : 993 })));
  });

  it("corrections of many leases, up and down, by two connections leave exactly what was used", async () => {
    const [one, other] = [await limiter(), await limiter()];
    await one.repository.limits.setSystem(["rpd:100000/day"]);
    let used = 0;
    const lanes = Array.from({ length: 16 }, async (_, lane) => {
      const own = lane % 2 === 0 ? one : other;
      for (let round = 0; round < 20; round += 1) {
        const lease = await own.acquire({ ...TARGET, consume: { rpd: 20 } });
        const cost = 15 + ((lane + round) % 11);
        lease.settle({ rpd: cost });
        used += cost;
        await lease.commit();
      }
    });
    await Promise.all(lanes);
    for (const each of [one, other]) {
      expect(await each.available(TARGET)).toEqual({ rpd: 100_000 - used });
    }
    const [state] = await one.repository.buckets.list(TARGET.entityId);
    expect(state?.totalConsumed).toBe(used);
  });

  it("a correction of a row that another connection has changed is made to the row as it is", async () => {
    const [one, other] = [await limiter(), await limiter()];
    await one.repository.limits.setSystem(["rpd:100/day"]);
    const acquire = (of: RateLimiter) => of.acquire({ ...TARGET, consume: { rpd: 10 } });
    for (const delta of [7, -3]) {
      const lease = await acquire(one);
      await (await acquire(other)).commit();
      lease.adjust({ rpd: delta });
      await lease.commit();
    }
    expect(await other.available(TARGET)).toEqual({ rpd: 100 - 4 * 10 - 7 + 3 });
  });

  it("acquires of one turn end with an error of the store when it is closed under them", async () => {
    const one = await limiter();
    await one.repository.limits.setSystem(["rpd:200/day"]);
    await one.acquire(REQUEST);
    const calls = Array.from({ length: 8 }, () => one.acquire(REQUEST));
    await one.close();
    const settled = await Promise.allSettled(calls);
    expect(settled.every(({ status }) => status === "fulfilled" || status === "rejected")).toBe(
      true,
    );
    expect(settled[0]?.status).toBe("fulfilled");
  });
});

/** Counts the transactions in a write-ahead log: the last frame of each has the file's size. */
function transactionsIn(path: string): number {
  const log = readFileSync(path);
  const frame = log.readUInt32BE(8) + 24;
  let transactions = 0;
  for (let at = 32; at < log.length; at += frame) {
    if (log.readUInt32BE(at + 4) > 0) transactions += 1;
  }
  return transactions;
}
