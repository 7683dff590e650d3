/** How the time of an acquire grows with what it has to do. In memory, where it shows most. */

import { RateLimiter } from "../dist/index.js";
import { median, timed } from "../measure.mjs";

async function timeOf(contender, pace) {
  await timed(contender, 20_000, 1);
  const results = [];
  for (let round = 0; round < pace.rounds; round += 1) {
    results.push((await timed(contender, 3000, 1)) / 3);
  }
  return median(results);
}

function taking(limiter, request) {
  return {
    loop: async (count) => {
      for (let left = count; left > 0; left -= 1) await (await limiter.acquire(request)).commit();
    },
  };
}

async function byLimits(pace) {
  const found = {};
  for (const count of [1, 2, 5, 10]) {
    const limiter = await RateLimiter.open("memory:");
    const names = Array.from({ length: count }, (_, at) => `l${at}`);
    await limiter.repository.limits.setSystem(names.map((name) => `${name}:1000000/sec`));
    const consume = Object.fromEntries(names.map((name) => [name, 1]));
    const request = { entityId: "user", resource: "api", consume };
    found[`${count} limits`] = await timeOf(taking(limiter, request), pace);
    await limiter.close();
  }
  return found;
}

async function byDepth(pace) {
  const found = {};
  for (const depth of [0, 1, 2, 4]) {
    const limiter = await RateLimiter.open("memory:");
    const { entities, limits } = limiter.repository;
    await limits.setSystem(["rpm:1000000/sec"]);
    for (let level = depth; level >= 0; level -= 1) {
      const parent = level === depth ? {} : { parentId: `e${level + 1}`, cascade: true };
      await entities.create({ id: `e${level}`, ...parent });
    }
    const request = { entityId: "e0", resource: "api", consume: { rpm: 1 } };
    found[`depth ${depth}`] = await timeOf(taking(limiter, request), pace);
    await limiter.close();
  }
  return found;
}

/**
 * Creates a time that passes when no call has anything else to do: then it moves to the next
 * wake-up that is soon. Calls that would sleep for an hour are woken by others.
 */
function virtualTime() {
  let nowMs = Date.now();
  const soon = new Set();
  const sleep = (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const sleeper = { dueMs: nowMs + ms, wake: resolve };
      if (ms < 60_000) soon.add(sleeper);
      const done = () => {
        soon.delete(sleeper);
        resolve();
      };
      signal?.addEventListener("abort", done, { once: true });
    });
  const advance = () => {
    let next;
    for (const sleeper of soon)
      if (next === undefined || sleeper.dueMs < next.dueMs) next = sleeper;
    if (next === undefined) return;
    soon.delete(next);
    nowMs = Math.max(nowMs, next.dueMs);
    next.wake();
  };
  return { clock: () => Math.floor(nowMs), timer: { nowMs: () => nowMs, sleep }, advance };
}

/** Queues all calls, and measures the CPU per waiter until the last is served. */
async function byWaiters(pace) {
  const found = {};
  const counts = pace.rounds > 3 ? [1, 100, 1000, 10_000] : [1, 100, 1000];
  for (const count of counts) {
    const { clock, timer, advance } = virtualTime();
    const limiter = await RateLimiter.open("memory:", { clock, timer });
    await limiter.repository.limits.setSystem(["rps:1000/sec:1"]);
    const request = {
      entityId: "user",
      resource: "api",
      consume: { rps: 1 },
      maxWaitSeconds: 3600,
    };
    await limiter.acquire({ ...request, maxWaitSeconds: 0 });
    const before = process.cpuUsage();
    let left = count;
    const waiting = Array.from({ length: count }, async () => {
      await limiter.acquire(request);
      left -= 1;
    });
    while (left > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      advance();
    }
    await Promise.all(waiting);
    const { user, system } = process.cpuUsage(before);
    found[`${count} waiters`] = (user + system) / count;
    await limiter.close();
  }
  return found;
}

export const growth = [
  {
    id: "grow",
    title:
      "microseconds per acquire at 1, 2, 5, 10 limits; at depth 0, 1, 2, 4; at 1 to 10k waiters",
    marks: [],
    run: async (pace) => ({
      growth: { ...(await byLimits(pace)), ...(await byDepth(pace)), ...(await byWaiters(pace)) },
    }),
  },
];
