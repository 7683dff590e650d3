/** All calls for one bucket wait in one queue, whichever limiter and method they use. */

import { type LimiterEvent, RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const BUCKET = { entityId: "key-1", resource: "gpt-4", limits: ["rps:20/sec"] };
const big = { ...BUCKET, consume: { rps: 20 }, maxWaitSeconds: 3 };
const small = { ...BUCKET, consume: { rps: 1 } };

async function drained(events?: (event: LimiterEvent) => void) {
  const time = new VirtualTime(1_800_000_000_000);
  const repo = await Repository.open("memory:", { clock: time.clock, timer: time.timer });
  const limiter = new RateLimiter(repo, events === undefined ? {} : { events });
  await limiter.acquire({ ...BUCKET, consume: { rps: 20 } });
  return { time, repo, limiter };
}

/** A small call every 50 ms, for which there would always be enough. */
async function askAlong(time: VirtualTime, ask: () => Promise<{ granted: boolean }>) {
  let granted = 0;
  for (let turn = 0; turn < 25; turn += 1) {
    void ask().then((decision) => {
      if (decision.granted) granted += 1;
    });
    await time.pass(50);
  }
  await time.pass(1000);
  return granted;
}

test("calls that do not wait cannot overtake one that does", async () => {
  const { time, limiter } = await drained();
  const waiting = limiter.tryAcquire(big);
  await time.settle();
  await askAlong(time, () => limiter.tryAcquire(small));
  expect((await waiting).granted).toBe(true);
  await limiter.close();
});

test("calls of another limiter that do not wait cannot overtake one that does", async () => {
  const { time, repo, limiter } = await drained();
  const other = new RateLimiter(repo);
  const waiting = limiter.tryAcquire(big);
  await time.settle();
  await askAlong(time, () => other.tryAcquire({ ...small, maxWaitSeconds: 0.1 }));
  expect((await waiting).granted).toBe(true);
  await limiter.close();
});

test("a call that waits is announced once, as what it came to", async () => {
  const seen: string[] = [];
  const { time, limiter } = await drained(({ type }) => seen.push(type));
  seen.length = 0;
  const granted = limiter.tryAcquire({ ...small, maxWaitSeconds: 1 });
  await time.pass(100);
  expect((await granted).granted).toBe(true);
  expect(seen).toEqual(["acquired"]);
  const refused = limiter.tryAcquire({ ...big, maxWaitSeconds: 0.01 });
  await time.pass(100);
  expect((await refused).granted).toBe(false);
  expect(seen).toEqual(["acquired", "rejected"]);
  await limiter.close();
});

test("giving back is announced", async () => {
  const seen: string[] = [];
  const { time, limiter } = await drained(({ type }) => seen.push(type));
  await time.pass(1000);
  const lease = await limiter.acquire(small);
  await lease.rollback();
  expect(seen.slice(-2)).toEqual(["acquired", "restored"]);
  await limiter.close();
});

test("any number of calls may share a signal, without a warning of a leak", async () => {
  const { time, limiter } = await drained();
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  const { signal, abort } = abortable();
  const waits = Array.from({ length: 50 }, () =>
    limiter.tryAcquire({ ...small, maxWaitSeconds: 60, signal }),
  );
  const runs = Array.from({ length: 50 }, () =>
    limiter.run({ ...small, maxWaitSeconds: 60, signal }, () => expect.fail("it started")),
  );
  await time.settle();
  abort(new Error("stop"));
  for (const outcome of await Promise.allSettled([...waits, ...runs])) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: "stop" } });
  }
  await time.settle();
  process.off("warning", warn);
  expect(warnings).toEqual([]);
  await limiter.close();
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason: Error) => controller.abort(reason) };
}
