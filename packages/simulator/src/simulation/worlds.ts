/**
 * Worlds: the parameters of a run that searches for one kind of trouble. "any" has a little of
 * everything; each other world provokes what is too rare in "any", and keeps the rest.
 */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { pick } from "../draw.ts";
import { children, filled, moved, operated, several, switched, totals } from "./operator-worlds.ts";
import {
  type Deed,
  drawLimit,
  drawParameters,
  HEALTHY,
  heated,
  mildFaults,
  type Parameters,
} from "./parameters.ts";
import { budgets, carried, quotas, sessions, zones } from "./quota-worlds.ts";
import { slots } from "./slot-worlds.ts";
import { windows } from "./window-worlds.ts";

/**
 * The names of the worlds, for `simulateSeeds`: the kind of trouble a run searches for.
 */
export const WORLD_NAMES = [
  "any",
  "expiring",
  "clocks",
  "splits",
  "merges",
  "lost",
  "edges",
  "foreign",
  "links",
  "scarce",
  "waits",
  "switched",
  "moved",
  "filled",
  "several",
  "totals",
  "children",
  "operated",
  "quotas",
  "zones",
  "sessions",
  "carried",
  "budgets",
  "slots",
  "windows",
] as const;
/** The name of a world that runs are made in. */
export type WorldName = (typeof WORLD_NAMES)[number];

/** Changes the parameters that a seed has drawn, for one world. */
type Draw = (drawn: Parameters, random: Random) => Partial<Parameters>;

const WORLDS: Readonly<Record<WorldName, Draw>> = {
  any: () => ({}),
  expiring,
  clocks,
  splits,
  merges,
  lost,
  edges,
  foreign,
  links,
  scarce,
  waits,
  switched,
  moved,
  filled,
  several,
  totals,
  children,
  operated,
  quotas,
  zones,
  sessions,
  carried,
  budgets,
  slots,
  windows,
};

export function drawWorld(world: WorldName, seed: number, minutes: number | undefined): Parameters {
  const drawn = drawParameters(seed, minutes);
  const random = seededRandom(seed, `world ${world}`);
  return { ...drawn, ...WORLDS[world](drawn, random), world };
}

/** Draws small buckets with large debts, and silences around their time to live, an hour. */
function expiring({ limits, minutes, deeds }: Parameters, random: Random): Partial<Parameters> {
  return {
    limits: limits.map((limit) => {
      const period = pick(random, ["sec", "7sec", "min"]);
      return `${nameOf(limit)}:${pick(random, [1, 3, 10, 31])}/${period}`;
    }),
    laterLimits: [],
    entities: pick(random, [1, 2]),
    callsPerSecond: Math.min(10, 200 / (minutes * 60)),
    deeds: [...new Set<Deed>([...deeds, "commit", "adjust"])],
    amountMax: 1,
    adjustMax: pick(random, [100, 1000, 10_000]),
    silenceMs: pick(random, [1_700_000, 2_500_000, 3_700_000, 7_300_000]),
    silenceIsExtra: true,
    crashesPerMinute: 0,
    writeUnitsPerSecond: 1000,
    isHealthy: true,
    faults: { expiryLagMs: pick(random, [0, 10_000, 600_000, 7_200_000]) },
  };
}

/** Clocks that differ by more than the library corrects, over buckets that fill slowly. */
function clocks({ limits, minutes }: Parameters, random: Random): Partial<Parameters> {
  return {
    processes: pick(random, [2, 3, 5]),
    entities: pick(random, [1, 2]),
    limits: limits.map((limit) => {
      const period = pick(random, ["min", "hour", "day"]);
      return `${nameOf(limit)}:${pick(random, [31, 100, 997])}/${period}`;
    }),
    laterLimits: [],
    callsPerSecond: Math.min(10, 200 / (minutes * 60)),
    skewMs: pick(random, [2500, 5000, 10_000]),
    writeUnitsPerSecond: 1000,
    silenceMs: 0,
  };
}

/** Buckets that are split while calls are under way; in half of the runs everything is refunded. */
function splits(drawn: Parameters, random: Random): Partial<Parameters> {
  const { limits, faults } = drawn;
  const refunds: readonly Deed[] = ["rollback", "throw", "abort"];
  return {
    ...heated(drawn, random),
    processes: pick(random, [2, 3, 5, 8]),
    entities: 1,
    family: "none",
    limits: limits.map((limit) => {
      const period = pick(random, ["7sec", "13sec", "hour", "day"]);
      return `${nameOf(limit)}:${pick(random, [97, 997, 10_007])}/${period}`;
    }),
    laterLimits: [],
    deeds: random() < 0.5 ? refunds : ["commit", "rollback", "adjust"],
    latencyMs: pick(random, [4, 20]),
    silenceMs: 0,
    faults: faults.transactionMs === undefined ? {} : { transactionMs: faults.transactionMs },
  };
}

/** Shards that are split and merged while calls are under way, debts and late refunds included. */
function merges(drawn: Parameters, random: Random): Partial<Parameters> {
  const { limits, faults, minutes } = drawn;
  const { lostResponses, lostRequests, transactionMs } = faults;
  const refunds: readonly Deed[] = ["rollback", "throw", "abort"];
  return {
    processes: pick(random, [2, 3, 5]),
    entities: pick(random, [1, 2]),
    family: "none",
    limits: limits.map((limit) => {
      const period = pick(random, ["sec", "7sec", "13sec", "hour", "day"]);
      return `${nameOf(limit)}:${pick(random, [64, 97, 997, 10_007])}/${period}`;
    }),
    laterLimits: [],
    callsPerSecond: Math.min(60, 600 / (minutes * 60)),
    deeds: random() < 0.3 ? refunds : ["commit", "rollback", "adjust", "more"],
    amountMax: pick(random, [1, 3, 10]),
    adjustMax: pick(random, [3, 300]),
    thinkMs: pick(random, [200, 3000]),
    latencyMs: pick(random, [1, 4, 20]),
    silenceMs: 0,
    writeUnitsPerSecond: pick(random, [20, 1000]),
    reshards: true,
    faults: {
      ...(lostResponses === undefined ? {} : { lostResponses }),
      ...(lostRequests === undefined ? {} : { lostRequests }),
      ...(transactionMs === undefined ? {} : { transactionMs }),
    },
  };
}

/** Requests and answers are lost on the way, most of all where several buckets are consumed. */
function lost({ limits }: Parameters, random: Random): Partial<Parameters> {
  return {
    processes: pick(random, [2, 3, 5]),
    entities: pick(random, [2, 3, 5]),
    family: pick(random, ["star", "chain"]),
    limits: limits.map((limit) => drawLimit(random, nameOf(limit))),
    deeds: ["commit", "rollback", "throw", "abort", "more", "wait"],
    crashesPerMinute: 0,
    silenceMs: 0,
    faults: {
      lostRequests: pick(random, [0.02, 0.1]),
      lostResponses: pick(random, [0.02, 0.1]),
    },
  };
}

/** Draws many processes that ask for one token, one milli-token before it is there. */
function edges(_: Parameters, random: Random): Partial<Parameters> {
  return {
    ...HEALTHY,
    processes: pick(random, [3, 5, 8]),
    entities: 1,
    limits: [pick(random, ["a:2/4sec", "a:4/8sec", "a:3/10sec", "a:5/7sec"])],
    callsPerSecond: pick(random, [0.2, 1]),
    amountMax: 1,
    deeds: ["commit"],
    edges: true,
  };
}

/** Clients of the Python library double buckets that ours have in their caches. */
function foreign({ limits, minutes }: Parameters, random: Random): Partial<Parameters> {
  return {
    ...HEALTHY,
    isHealthy: false,
    processes: pick(random, [2, 3, 5]),
    entities: pick(random, [1, 2, 3]),
    limits: limits.map((limit) => {
      const period = pick(random, ["sec", "7sec", "min"]);
      return `${nameOf(limit)}:${pick(random, [64, 100, 997])}/${period}`;
    }),
    callsPerSecond: Math.min(30, 400 / (minutes * 60)),
    amountMax: pick(random, [1, 3]),
    foreignDoublings: true,
  };
}

/** Entities get a parent while calls for them are under way. */
function links({ limits, minutes, faults }: Parameters, random: Random): Partial<Parameters> {
  return {
    ...HEALTHY,
    isHealthy: false,
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [3, 5, 8]),
    limits: limits.map((limit) => {
      const period = pick(random, ["sec", "7sec", "min"]);
      return `${nameOf(limit)}:${pick(random, [31, 100, 997])}/${period}`;
    }),
    callsPerSecond: Math.min(30, 400 / (minutes * 60)),
    deeds: ["commit", "rollback", "adjust", "wait"],
    latecomers: true,
    faults: mildFaults(faults),
  };
}

/** Buckets that are nearly empty and hardly fill, so that refusals are justified. */
function scarce({ limits, minutes }: Parameters, random: Random): Partial<Parameters> {
  return {
    ...HEALTHY,
    processes: pick(random, [2, 3, 5]),
    entities: pick(random, [1, 2]),
    thinkMs: pick(random, [200, 3000]),
    limits: limits.map((limit) => {
      const period = pick(random, ["hour", "day"]);
      return `${nameOf(limit)}:${pick(random, [7, 10, 31])}/${period}`;
    }),
    callsPerSecond: Math.min(10, 200 / (minutes * 60)),
    amountMax: 3,
    deeds: ["commit", "rollback", "rollback", "throw", "look"],
  };
}

/**
 * Draws one process in which calls wait for what other calls of it refund. In half of the runs some
 * wait for one limit, some for another one, and some for both.
 */
function waits({ minutes }: Parameters, random: Random): Partial<Parameters> {
  const one = [pick(random, ["a:1/2sec", "a:2/5sec", "a:3/8sec"])];
  const callsPerSecond = Math.min(pick(random, [1, 2, 4]), 200 / (minutes * 60));
  const two = [pick(random, ["b:1/3sec", "b:2/6sec"]), pick(random, ["c:1/2sec", "c:3/5sec"])];
  return {
    ...HEALTHY,
    processes: 1,
    entities: 1,
    limits: random() < 0.5 ? one : two,
    callsPerSecond,
    amountMax: 1,
    deeds: ["rollback", "rollback", "wait"],
    thinkMs: 1500,
  };
}

function nameOf(limit: string): string {
  return limit.slice(0, limit.indexOf(":"));
}
