/** The cost of telemetry per acquire: without it, and with the real SDK. */

import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { RateLimiter } from "../dist/index.js";
import { observe } from "../dist/limiter/otel/index.js";
import { duel } from "../measure.mjs";
import { keys, taking } from "../support.mjs";
import { limiterAt, withTable } from "./dynamodb.mjs";

const KEYS = 10_000;
const COUNT = 100_000;
const TABLE_KEYS = 256;

function meter() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  return { meter: provider.getMeter("bench"), end: () => provider.shutdown() };
}

/** Measures CPU time per acquire and commit: the least of some rounds, since other work adds. */
async function cpuUs(limiter, names, rounds) {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round <= rounds; round += 1) {
    const before = process.cpuUsage();
    for (let at = 0; at < COUNT; at += 1) {
      const request = { entityId: names[at % KEYS], resource: "api", consume: { rpm: 1 } };
      const lease = await limiter.acquire(request);
      await lease.commit();
    }
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / COUNT);
  }
  return least;
}

/** Measures one after the other: an observed limiter slows all others of the process. */
async function memObserve(pace) {
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(["rpm:1000000/sec"]);
  const names = keys(KEYS);
  const offUs = await cpuUs(limiter, names, pace.rounds);
  const meters = meter();
  const stop = observe(limiter, { meter: meters.meter, tracer: false });
  const onUs = await cpuUs(limiter, names, pace.rounds);
  stop();
  const afterUs = await cpuUs(limiter, names, pace.rounds);
  await meters.end();
  await limiter.close();
  return { offUs, onUs, afterUs };
}

/** Returns a contender with a listener that exists only while the work is done. */
function heard(contender, limiter, meter) {
  let loops = 0;
  let stop;
  return {
    loop: async (count) => {
      loops += 1;
      if (loops === 1) stop = observe(limiter, { meter, tracer: false });
      await contender.loop(count);
      loops -= 1;
      if (loops === 0) stop();
    },
  };
}

/** Measures CPU time of this process per acquire and commit on a table, in alternating rounds. */
async function tableObserve(pace) {
  return withTable(async ({ endpoint, table, duelOptions }) => {
    const limiter = await limiterAt(table, endpoint);
    const alone = taking(limiter, keys(TABLE_KEYS));
    const meters = meter();
    const [off, on] = await duel([alone, heard(alone, limiter, meters.meter)], pace, duelOptions);
    await meters.end();
    await limiter.close();
    return { offUs: off.cpuUs, onUs: on.cpuUs, ratio: on.cpuUs / off.cpuUs };
  });
}

export const observed = [
  {
    id: "mem-observe",
    title: "memory, CPU time of acquire + commit: not observed, observed, and no longer observed",
    marks: [
      { of: "offUs", most: 2 },
      { of: "onUs", most: 12 },
      { of: "afterUs", most: 2 },
    ],
    run: memObserve,
  },
  {
    id: "ddb-observe",
    title:
      "DynamoDB (dynoxide), 64 in flight, CPU time of acquire + commit: not observed, observed",
    marks: [{ of: "ratio", most: 1.3 }],
    run: tableObserve,
  },
];
