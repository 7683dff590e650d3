/** Worlds with slots, which processes hold while they crash and are cut off from the table. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { pick } from "../draw.ts";
import { type Deed, mildFaults, type Parameters } from "./parameters.ts";

const DEEDS: readonly Deed[] = [
  "commit",
  "rollback",
  "throw",
  "abort",
  "adjust",
  "more",
  "release",
  "release",
  "wait",
];

/** Draws few slots, held for long, with answers that are lost, crashes and partitions. */
export function slots(drawn: Parameters, random: Random): Partial<Parameters> {
  const { limits, faults, minutes } = drawn;
  const share = () => pick(random, [0.01, 0.05, 0.12]);
  const [lostResponses, lostRequests, lateRequests] = [share(), share(), share()];
  const isLossy = random() < 0.7;
  return {
    processes: pick(random, [2, 3, 4, 6]),
    entities: pick(random, [1, 1, 2, 3]),
    family: pick(random, ["none", "none", "star", "chain"]),
    // Tokens are scarce in some of the runs, so that calls are refused for either.
    limits: limits.slice(0, 2).map((limit) => {
      const text = pick(random, ["1000/sec", "31/7sec", "7/min"]);
      return `${limit.slice(0, limit.indexOf(":"))}:${text}`;
    }),
    slots: [`s:${pick(random, [1, 2, 3, 5, 8])} concurrent`],
    laterLimits: [],
    amountMax: pick(random, [1, 2]),
    adjustMax: 3,
    callsPerSecond: Math.min(pick(random, [5, 15, 30]), 600 / (minutes * 60)),
    deeds: DEEDS,
    thinkMs: pick(random, [100, 1000, 4000, 25_000]),
    silenceMs: 0,
    crashesPerMinute: pick(random, [0, 0, 5, 20]),
    cutsPerMinute: pick(random, [0, 0, 5, 20]),
    skewMs: pick(random, [0, 0, 100, 900]),
    writeUnitsPerSecond: 1000,
    deletions: false,
    reshards: random() < 0.3,
    faults: {
      ...mildFaults(faults),
      ...(isLossy ? { lostResponses, lostRequests, lateRequests } : {}),
    },
    ...(random() < 0.3 ? comingBack(minutes, random) : {}),
  };
}

/**
 * Draws processes that are cut off until their slots are given to other calls, and that come back
 * while calls of them still go on: such a call then ends while younger calls hold slots.
 */
function comingBack(minutes: number, random: Random): Partial<Parameters> {
  return {
    minutes: Math.max(minutes, 1),
    processes: pick(random, [2, 3]),
    entities: 1,
    family: "none",
    limits: ["a:1000/sec"],
    slots: [`s:${pick(random, [3, 5, 8])} concurrent`],
    callsPerSecond: pick(random, [2, 5]),
    thinkMs: 25_000,
    crashesPerMinute: 0,
    cutsPerMinute: 10,
  };
}
