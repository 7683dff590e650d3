/** In this process: no store to wait for, so every closure shows. */

import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible";
import { RateLimiter } from "../dist/index.js";
import { duel, median, timed } from "../measure.mjs";
import { keys, taking } from "../support.mjs";

const KEYS = 10_000;
const AMPLE = "1000000/sec";

async function limiterWith(limits) {
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(limits);
  return limiter;
}

/** Goes round all keys. */
function rounds(names) {
  let at = 0;
  return () => {
    at = at + 1 === names.length ? 0 : at + 1;
    return names[at];
  };
}

function consuming(rival, names) {
  const next = rounds(names);
  return {
    loop: async (count) => {
      for (let left = count; left > 0; left -= 1) await rival.consume(next());
    },
  };
}

/** Measures contenders that have all seen every key before. */
async function fought(contenders, pace) {
  for (const contender of contenders) await contender.loop(KEYS);
  return duel(contenders, pace);
}

async function mem1(pace) {
  const names = keys(KEYS);
  const limiter = await limiterWith([`rpm:${AMPLE}`]);
  const rival = new RateLimiterMemory({ points: 1_000_000_000, duration: 60 });
  const results = await fought([taking(limiter, names, { rpm: 1 }), consuming(rival, names)], pace);
  await limiter.close();
  return results;
}

async function mem2(pace) {
  const names = keys(KEYS);
  const limiter = await limiterWith([`rpm:${AMPLE}`, `tpm:${AMPLE}`]);
  const options = { points: 1_000_000_000, duration: 60 };
  const rival = new RateLimiterUnion(
    new RateLimiterMemory({ ...options, keyPrefix: "rpm" }),
    new RateLimiterMemory({ ...options, keyPrefix: "tpm" }),
  );
  const results = await fought(
    [taking(limiter, names, { rpm: 1, tpm: 500 }), consuming(rival, names)],
    pace,
  );
  await limiter.close();
  return results;
}

async function memDeny(pace) {
  const names = keys(KEYS);
  const limiter = await limiterWith(["rpm:1/day"]);
  const rival = new RateLimiterMemory({ points: 1, duration: 86_400 });
  for (const name of names) {
    await limiter.tryAcquire({ entityId: name, resource: "api", consume: { rpm: 1 } });
    await rival.consume(name);
  }
  const [our, their] = [rounds(names), rounds(names)];
  const ours = {
    loop: async (count) => {
      for (let left = count; left > 0; left -= 1) {
        const request = { entityId: our(), resource: "api", consume: { rpm: 1 } };
        const decision = await limiter.tryAcquire(request);
        if (decision.granted) throw new Error("granted");
      }
    },
  };
  const theirs = {
    loop: async (count) => {
      for (let left = count; left > 0; left -= 1) {
        try {
          await rival.consume(their());
        } catch {
          continue;
        }
        throw new Error("granted");
      }
    },
  };
  const results = await duel([ours, theirs], pace);
  await limiter.close();
  return results;
}

/** Measures the memory of a key, and the time of an acquire with a million keys. */
async function mem1m(pace) {
  const count = pace.rounds > 3 ? 1_000_000 : 100_000;
  const names = keys(count);
  const few = names.slice(0, KEYS);
  const small = await limiterWith([`rpm:${AMPLE}`]);
  const large = await limiterWith([`rpm:${AMPLE}`]);
  const ours = taking(small, few, { rpm: 1 });
  const many = taking(large, names, { rpm: 1 });
  await ours.loop(KEYS * 5);
  global.gc();
  const before = process.memoryUsage().heapUsed;
  await many.loop(count);
  global.gc();
  const bytesPerKey = (process.memoryUsage().heapUsed - before) / count;
  const ratios = [];
  let perSecond = 0;
  for (let round = 0; round < pace.rounds; round += 1) {
    const smallMs = await timed(ours, KEYS * 10, 1);
    const largeMs = await timed(many, KEYS * 10, 1);
    ratios.push(largeMs / smallMs);
    perSecond = (KEYS * 10_000) / largeMs;
  }
  await Promise.all([small.close(), large.close()]);
  return { bytesPerKey, slowdown: median(ratios), perSecond, keys: count };
}

export const memory = [
  {
    id: "mem-1",
    title: "memory, one limit, 10k keys: acquire + commit against RateLimiterMemory.consume",
    marks: [{ of: "ratio", least: 1 }],
    run: mem1,
  },
  {
    id: "mem-2",
    title: "memory, two limits all or nothing against RateLimiterUnion of two",
    marks: [{ of: "ratio", least: 1.5 }],
    run: mem2,
  },
  {
    id: "mem-deny",
    title: "memory, refusals: tryAcquire against a rejected consume",
    marks: [{ of: "ratio", least: 1.5 }],
    run: memDeny,
  },
  {
    id: "mem-1m",
    title: "memory, one million keys: bytes per key, and the time per acquire against 10k keys",
    marks: [
      { of: "bytesPerKey", most: 400 },
      { of: "slowdown", most: 3 },
    ],
    run: mem1m,
  },
];
