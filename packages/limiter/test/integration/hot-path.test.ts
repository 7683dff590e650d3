/**
 * Guards against slow growth, by what does not depend on the machine: promises made, bytes
 * allocated and calls to the store per acquire. The bounds are what was measured, and a little.
 */

import { createHook } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { fakeDynamo } from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { filesRun } from "@zae-limiter/test-support/files-run.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { describe, expect, it } from "vitest";

const LIMITS = ["rpm:1000000/sec", "tpm:1000000/sec"];
const TOGETHER = 64;
const REQUEST = { entityId: "user", resource: "api", consume: { rpm: 1, tpm: 2 } };

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

type Work = () => Promise<unknown>;

async function repeat(work: Work, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await work();
}

/** Promises per call, those of the loop included. */
async function promisesPer(work: Work, count = 1000): Promise<number> {
  let promises = 0;
  const hook = createHook({
    init: (_, type) => {
      if (type === "PROMISE") promises += 1;
    },
  });
  await repeat(work, count / 10);
  hook.enable();
  await repeat(work, count);
  hook.disable();
  return promises / count;
}

/**
 * Bytes per call, once everything is compiled; the least of several passes, since others only add.
 */
async function bytesPer(work: Work, count: number): Promise<number> {
  await repeat(work, count * 10);
  const passes: number[] = [];
  for (let pass = 0; pass < 7; pass += 1) {
    collect();
    const before = process.memoryUsage().heapUsed;
    await repeat(work, count);
    passes.push((process.memoryUsage().heapUsed - before) / count);
  }
  return Math.min(...passes.filter((bytes) => bytes > 0));
}

/** Acquires of one turn of the event loop, for this many entities. */
function together(limiter: RateLimiter, entities: number): Work {
  const requests = Array.from({ length: TOGETHER }, (_, at) => {
    return { ...REQUEST, entityId: `user-${at % entities}` };
  });
  return () => Promise.all(requests.map((request) => limiter.acquire(request)));
}

function taking(limiter: RateLimiter): Work {
  return async () => {
    const lease = await limiter.acquire(REQUEST);
    await lease.commit();
  };
}

function adjusting(limiter: RateLimiter): Work {
  return async () => {
    const lease = await limiter.acquire(REQUEST);
    lease.adjust({ tpm: 3 });
    await lease.commit();
  };
}

describe("an acquire in memory", () => {
  it("an acquire in memory makes one promise, and allocates little", async () => {
    const limiter = await RateLimiter.open("memory:");
    await limiter.repository.limits.setSystem(LIMITS);
    const take = taking(limiter);
    // One of the acquire, the others of its callers: the lease has its own ready.
    expect(await promisesPer(take)).toBeLessThan(5.5);
    expect(await bytesPer(take, 2000)).toBeLessThan(1400);
    await limiter.close();
  });

  it("an acquire in memory makes one promise when it is refused, and no statuses that are not read", async () => {
    const limiter = await RateLimiter.open("memory:");
    await limiter.repository.limits.setSystem(["rpm:1/day", "tpm:2/day"]);
    const ask = () => limiter.tryAcquire(REQUEST);
    expect(await promisesPer(ask)).toBeLessThan(2.5);
    expect(await bytesPer(ask, 2000)).toBeLessThan(750);
    await limiter.close();
  });

  it("an acquire in memory keeps a bucket in a few hundred bytes", async () => {
    const limiter = await RateLimiter.open("memory:", { configCacheTtlSeconds: 0 });
    await limiter.repository.limits.setSystem(["rpm:1000000/sec"]);
    const names = Array.from({ length: 20_000 }, (_, at) => `key-${at}`);
    const take = (entityId: string) =>
      limiter.acquire({ entityId, resource: "api", consume: { rpm: 1 } });
    await take("first");
    collect();
    const before = process.memoryUsage().heapUsed;
    for (const name of names) await take(name);
    collect();
    const bytes = (process.memoryUsage().heapUsed - before) / names.length;
    // The links that were seen are remembered besides, 50,000 at most.
    expect(bytes).toBeLessThan(550);
    await limiter.close();
  });
});

it("an acquire in a file makes one promise, and allocates little", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const limiter = await RateLimiter.open(`sqlite:${join(folder, "limits.db")}`);
  await limiter.repository.limits.setSystem(LIMITS);
  const take = taking(limiter);
  expect(await promisesPer(take)).toBeLessThan(5.5);
  expect(await bytesPer(take, 500)).toBeLessThan(5600);
  // A correction is one more statement, and no more promises.
  expect(await promisesPer(adjusting(limiter))).toBeLessThan(5.5);
  const share = together(limiter, TOGETHER);
  await share();
  expect((await promisesPer(share, 20)) / TOGETHER).toBeLessThan(6.2);
  expect((await bytesPer(share, 30)) / TOGETHER).toBeLessThan(5600);
  await limiter.close();
  rmSync(folder, { recursive: true });
});

describe("an acquire on DynamoDB", () => {
  it("an acquire on DynamoDB is one call, and a refusal by a cached state makes none", async () => {
    const calls: StoreCall[] = [];
    let nowMs = 1_900_000_000_000;
    const store = counted(new MemoryItemStore());
    const repository = await overTable(store, {
      clock: () => nowMs,
      namespace: "default",
      onCall: (call) => calls.push(call),
      configCacheTtlSeconds: 600,
    });
    await repository.limits.setSystem(["rps:100/sec"]);
    const limiter = new RateLimiter(repository);
    const request = { entityId: "user", resource: "api", consume: { rps: 1 } };
    await limiter.acquire(request);
    // A new bucket is read once more.
    nowMs += 5000;
    await limiter.acquire(request);
    calls.length = 0;
    // At four fifths of the rate, for a minute.
    for (let at = 0; at < 4800; at += 1) {
      nowMs += at % 2 === 0 ? 12 : 13;
      await limiter.acquire(request);
    }
    expect(calls.length / 4800).toBeLessThanOrEqual(1.02);
    expect(calls.filter(({ operation }) => operation !== "update")).toEqual([]);
    const scarce = { ...request, limits: ["slow:1/day"], consume: { slow: 1 } };
    await limiter.acquire(scarce);
    await limiter.tryAcquire(scarce);
    calls.length = 0;
    for (let at = 0; at < 100; at += 1) {
      expect((await limiter.tryAcquire(scarce)).granted).toBe(false);
    }
    expect(calls).toEqual([]);
    await limiter.close();
  });

  it("an acquire on DynamoDB makes few promises on its way to the store and back", async () => {
    const limiter = new RateLimiter(await overTable(new MemoryItemStore()));
    await limiter.repository.limits.setSystem(LIMITS);
    const take = taking(limiter);
    // Those of the store and of the loop included.
    expect(await promisesPer(take)).toBeLessThan(26.5);
    const share = together(limiter, 1);
    await share();
    expect((await promisesPer(share, 20)) / TOGETHER).toBeLessThan(10.7);
    expect((await bytesPer(share, 30)) / TOGETHER).toBeLessThan(9000);
    await limiter.close();
  });

  it("an acquire on DynamoDB runs code in few files of the buckets and the limiter", async () => {
    const limiter = new RateLimiter(await overTable(new MemoryItemStore()));
    await limiter.repository.limits.setSystem(LIMITS);
    const take = taking(limiter);
    await repeat(take, 50);
    const files = await filesRun(take);
    await limiter.close();
    // ARCHITECTURE names them in the order in which they are read.
    const centre = files.filter((path) => /^limiter\/(?:buckets|acquire)\//.test(path));
    expect(centre).toContain("limiter/buckets/distributed/consume/next.ts");
    expect(centre.length, centre.join("\n")).toBeLessThanOrEqual(33);
  });

  it("an acquire on DynamoDB makes one promise when cached states refuse it", async () => {
    const clock = () => 1_900_000_000_000;
    const limiter = new RateLimiter(await overTable(new MemoryItemStore({ clock }), { clock }));
    await limiter.repository.limits.setSystem(["rpm:1/day", "tpm:2/day"]);
    const ask = () => limiter.tryAcquire(REQUEST);
    await ask();
    await ask();
    expect(await promisesPer(ask)).toBeLessThan(2.5);
    await limiter.close();
  });

  it("an acquire on DynamoDB sends a request with a fraction of the allocations of the SDK", async () => {
    await using server = await fakeDynamo({ body: { Attributes: { PK: { S: "p" } } } });
    const bytes = async (transport: "lean" | "sdk") => {
      const store = new DynamoItemStore({ table: "t", endpoint: server.endpoint, transport });
      const key = { PK: "p", SK: "s" };
      let at = 0;
      const update = () => {
        at += 1;
        return store.update(key, { add: { a: at, b: -at } }, [{ is: ">=", name: "a", value: at }]);
      };
      const found = await bytesPer(update, 30);
      await store.close();
      return found;
    };
    // The server is in this process, and its share is in both.
    const [lean, sdk] = [await bytes("lean"), await bytes("sdk")];
    expect(lean / sdk).toBeLessThan(0.2);
  });
});
