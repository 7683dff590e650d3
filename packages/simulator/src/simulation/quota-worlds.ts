/** Worlds with quotas and sessions. Calls come around the edges of periods. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { pick } from "../draw.ts";
import { type Deed, HEALTHY, heated, mildFaults, type Parameters } from "./parameters.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Texts of the periods that quotas may have, with their length. */
const PERIODS = [
  { text: "day UTC", lengthMs: 24 * HOUR_MS },
  { text: "cron(0 */6 * * *) UTC", lengthMs: 6 * HOUR_MS },
  { text: "cron(0 */2 * * *) UTC", lengthMs: 2 * HOUR_MS },
] as const;
/** How much edges may differ by the data of zones. */
const SHIFTS_MS = [0, 0, 900_000, HOUR_MS / 2, -HOUR_MS / 2];
const DEEDS: readonly Deed[] = [
  "commit",
  "rollback",
  "rollback",
  "adjust",
  "flush",
  "more",
  "throw",
  "wait",
  "look",
];

/** Returns how much later the edges of a process are than those of UTC. */
export function shiftOf(shiftsMs: readonly number[], process: number): number {
  return shiftsMs[process % shiftsMs.length] ?? 0;
}

/** Draws quotas, with rates in some of the runs; in others the bucket is split and merged. */
export function quotas(drawn: Parameters, random: Random): Partial<Parameters> {
  const period = pick(random, PERIODS);
  const resharded = random() < 0.4;
  return {
    ...around(drawn, random),
    ...(resharded ? sharded(drawn, random) : {}),
    limits: drawn.limits.map((limit, at) => {
      const amount = pick(random, resharded ? [97, 997] : [3, 10, 31, 97]);
      // A rate of the same bucket moves its base time, too.
      const isRate = at > 0 && random() < 0.3;
      return `${nameOf(limit)}:${amount}/${isRate ? pick(random, ["7sec", "min"]) : period.text}`;
    }),
    quotas: { lengthMs: period.lengthMs, shiftsMs: [0] },
  };
}

/** Draws quotas of processes whose data of zones differ. */
export function zones(drawn: Parameters, random: Random): Partial<Parameters> {
  const period = pick(random, PERIODS);
  const resharded = random() < 0.3;
  return {
    ...around(drawn, random),
    ...(resharded ? sharded(drawn, random) : {}),
    processes: pick(random, [2, 3, 5]),
    limits: drawn.limits.map(
      (limit) => `${nameOf(limit)}:${pick(random, [10, 97])}/${period.text}`,
    ),
    quotas: {
      lengthMs: period.lengthMs,
      shiftsMs: Array.from({ length: 4 }, () => pick(random, SHIFTS_MS)),
    },
  };
}

/** Draws quotas that carry debts or a rest into the next period. */
export function carried(drawn: Parameters, random: Random): Partial<Parameters> {
  const world = quotas(drawn, random);
  const most = pick(random, [1, 4, 20, 1000]);
  return {
    ...world,
    quotas: {
      lengthMs: DAY_MS,
      shiftsMs: [0],
      ...world.quotas,
      carry: pick(random, [
        { carry: "debt" },
        { carry: "rest", carry_max: most },
        { carry: "both", carry_max: most },
      ] as const),
    },
  };
}

/** Draws quotas over all resources, with entities that cascade; parts may belong to others. */
export function budgets(drawn: Parameters, random: Random): Partial<Parameters> {
  const period = pick(random, PERIODS);
  const textOf = (limit: string, amount: number, text: string) =>
    `${nameOf(limit)}:${amount}/${text}`;
  return {
    ...around(drawn, random),
    entities: pick(random, [1, 2, 3]),
    family: pick(random, ["none", "star", "chain"]),
    limits: drawn.limits.map((limit) =>
      textOf(limit, pick(random, [31, 97]), pick(random, ["7sec", "min", period.text])),
    ),
    totals: drawn.limits
      .slice(0, pick(random, [1, 2, 3]))
      .map((limit) => textOf(limit, pick(random, [10, 31, 97]), period.text)),
    resources: pick(random, [1, 2, 3]),
    others: random() < 0.5,
    writeUnitsPerSecond: random() < 0.3 ? pick(random, [5, 20]) : 1000,
    quotas: { lengthMs: period.lengthMs, shiftsMs: [0] },
  };
}

/** Draws sessions, with quotas and rates in some of the runs. */
export function sessions(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    ...around(drawn, random),
    limits: drawn.limits.map((limit, at) => {
      const amount = pick(random, [3, 10, 31]);
      const others = ["session:3sec", "session:5hour", "day UTC", "7sec"];
      const period =
        at === 0 ? pick(random, ["session:2sec", "session:7sec"]) : pick(random, others);
      return `${nameOf(limit)}:${amount}/${period}`;
    }),
    quotas: { lengthMs: 24 * HOUR_MS, shiftsMs: [0] },
  };
}

/** Draws bursts of calls around edges, with clocks that differ and few faults. */
export function around({ minutes, faults }: Parameters, random: Random): Partial<Parameters> {
  return {
    ...HEALTHY,
    isHealthy: false,
    faults: mildFaults(faults),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [1, 2]),
    family: pick(random, ["none", "none", "star"]),
    skewMs: pick(random, [0, 0, 100, 900, 2500]),
    callsPerSecond: Math.min(30, 400 / (minutes * 60)),
    deeds: DEEDS,
    amountMax: 3,
    adjustMax: pick(random, [3, 30]),
    thinkMs: pick(random, [200, 3000]),
    silenceMs: pick(random, [1, 200_000_000]),
    silenceIsExtra: true,
  };
}

/** Makes one bucket whose number of shards changes all the time. */
export function sharded(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    ...(random() < 0.3 ? { writeUnitsPerSecond: heated(drawn, random).writeUnitsPerSecond } : {}),
    entities: 1,
    family: "none",
    reshards: true,
  };
}

function nameOf(limit: string): string {
  return limit.slice(0, limit.indexOf(":"));
}
