/** Two contenders in alternating rounds: what the machine does meanwhile, it does to both. */

import { performance } from "node:perf_hooks";
import { setImmediate as untilNoTick } from "node:timers/promises";

/** Numbers and times of rounds; with `--quick` they are too few for a measurement. */
export const PACE = {
  full: { rounds: 9, roundMs: 400, warmUpMs: 800, samples: 4000 },
  quick: { rounds: 3, roundMs: 80, warmUpMs: 120, samples: 400 },
};

/**
 * Collections of the whole heap that a process has been through before it is measured, as every
 * process has that runs for long. In Node.js 20 the third of them makes `process.nextTick` five
 * times slower for the life of the process: a collection that finds no tick drops the shape of
 * their objects, and the engine no longer makes them in compiled code. Whether a process came that
 * far by itself was chance, and streams and sockets pay for it. After three of them half of the
 * servers had become slower, after six all had.
 */
export const COLLECTIONS = 6;

/**
 * Measures contenders in alternating rounds. A contender has `loop(count)`, which does its work
 * `count` times, one after the other. `engineUs` returns the CPU time of an engine's process so far.
 *
 * @returns per contender: `perSecond`, `cpuUs` and `engineUs` as medians over rounds, `p50Us`,
 *   `p99Us`, `bytes`
 */
export async function duel(contenders, pace, { inFlight = 1, engineUs } = {}) {
  const states = [];
  for (const contender of contenders) await warmUp(contender, pace, inFlight);
  for (let at = 0; at < COLLECTIONS; at += 1) {
    await untilNoTick();
    global.gc();
  }
  for (const contender of contenders) {
    const count = await warmUp(contender, pace, inFlight);
    states.push({ contender, rounds: [], cpu: [], engine: [], count });
  }
  for (let round = 0; round < pace.rounds; round += 1) {
    const order = round % 2 === 0 ? states : [...states].reverse();
    for (const state of order) {
      // Garbage of the round before is not this contender's. A full collection also throws away
      // compiled code: a call with `fetch` then takes three times as long for half a second.
      global.gc({ type: "minor" });
      const before = process.cpuUsage();
      const engineBefore = engineUs?.();
      const ms = await timed(state.contender, state.count, inFlight);
      const { user, system } = process.cpuUsage(before);
      if (engineUs !== undefined) state.engine.push((engineUs() - engineBefore) / state.count);
      state.rounds.push((state.count / ms) * 1000);
      state.cpu.push((user + system) / state.count);
    }
  }
  const results = [];
  for (const { contender, rounds, cpu, engine } of states) {
    results.push({
      perSecond: median(rounds),
      cpuUs: median(cpu),
      ...(engineUs === undefined ? {} : { engineUs: median(engine) }),
      ...(await latencies(contender, pace, inFlight)),
      bytes: await allocated(contender, inFlight),
    });
  }
  return results;
}

/** Milliseconds for `count` in all, spread over `inFlight` at a time. */
export async function timed(contender, count, inFlight) {
  const each = Math.ceil(count / inFlight);
  const startedAt = performance.now();
  if (inFlight === 1) await contender.loop(each);
  else await Promise.all(Array.from({ length: inFlight }, () => contender.loop(each)));
  return performance.now() - startedAt;
}

/** Runs until everything is compiled; how many make a round. */
async function warmUp(contender, pace, inFlight) {
  let count = inFlight * 4;
  let spentMs = 0;
  let ms = 0;
  do {
    ms = await timed(contender, count, inFlight);
    spentMs += ms;
    if (ms < pace.roundMs / 2) count *= 2;
  } while (spentMs < pace.warmUpMs || ms < pace.roundMs / 4);
  return Math.max(inFlight, Math.round((count * pace.roundMs) / ms));
}

/** Measures single operations, apart from the rounds, since measuring costs time as well. */
async function latencies(contender, pace, inFlight) {
  const samples = [];
  const lane = async () => {
    for (let at = 0; at < pace.samples / inFlight; at += 1) {
      const startedAt = performance.now();
      await contender.loop(1);
      samples.push((performance.now() - startedAt) * 1000);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return { p50Us: quantile(samples, 0.5), p99Us: quantile(samples, 0.99) };
}

/** Measures the growth of the heap per operation, over too few for a garbage collection. */
async function allocated(contender, inFlight) {
  const grown = async (count) => {
    global.gc();
    const before = process.memoryUsage().heapUsed;
    await timed(contender, count, inFlight);
    return (process.memoryUsage().heapUsed - before) / count;
  };
  const about = Math.max(100, await grown(inFlight * 2));
  const count = Math.max(inFlight * 2, Math.min(5000, Math.floor(6_000_000 / about)));
  const results = [];
  for (let pass = 0; pass < 5; pass += 1) results.push(await grown(count));
  return Math.max(0, Math.round(median(results)));
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, share) {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
