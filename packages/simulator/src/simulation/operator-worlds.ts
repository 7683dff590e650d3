/** Worlds with changes by operators during calls, or with calls of several resources. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { pick } from "../draw.ts";
import { HEALTHY, heated, mildFaults, type Parameters } from "./parameters.ts";

/** Leaves nothing but what these worlds provoke, and a few lost answers in some of the runs. */
function calm({ minutes, faults }: Parameters): Partial<Parameters> {
  return {
    ...HEALTHY,
    isHealthy: false,
    callsPerSecond: Math.min(20, 400 / (minutes * 60)),
    faults: mildFaults(faults),
  };
}

function withLimits(
  { limits }: Parameters,
  random: Random,
  amounts: readonly number[],
  periods: readonly string[],
): string[] {
  return limits.map((limit) => {
    const name = limit.slice(0, limit.indexOf(":"));
    return `${name}:${pick(random, amounts)}/${pick(random, periods)}`;
  });
}

/** Entities and resources are switched off and on, and bypass their limits. */
export function switched(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [1, 2, 3]),
    family: pick(random, ["none", "star", "chain"]),
    limits: withLimits(drawn, random, [3, 10, 31], ["7sec", "min", "hour"]),
    deeds: ["commit", "rollback", "adjust", "more", "wait"],
    thinkMs: pick(random, [200, 3000]),
    operators: ["switch"],
    operationsPerMinute: pick(random, [10, 30]),
  };
}

/** Entities are moved to other parents. */
export function moved(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [3, 4, 6]),
    family: pick(random, ["none", "star", "chain"]),
    limits: withLimits(drawn, random, [10, 31, 100], ["7sec", "min"]),
    deeds: ["commit", "rollback", "adjust", "flush", "wait"],
    thinkMs: pick(random, [200, 3000]),
    operators: pick(random, [["move"], ["move", "switch"]] as const),
    operationsPerMinute: pick(random, [20, 60]),
  };
}

/** Buckets are reset and topped up; in half of the runs they are split meanwhile. */
export function filled(drawn: Parameters, random: Random): Partial<Parameters> {
  const splits = random() < 0.5;
  return {
    ...(splits ? heated(drawn, random) : {}),
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [1, 2]),
    limits: withLimits(drawn, random, splits ? [97, 997] : [7, 31], ["7sec", "hour", "day"]),
    writeUnitsPerSecond: splits ? pick(random, [2, 5]) : 1000,
    deeds: ["commit", "rollback", "adjust", "wait", "look"],
    operators: ["fill"],
    operationsPerMinute: pick(random, [20, 60]),
  };
}

/** Calls acquire several resources at once, for entities with ancestors. */
export function several(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [1, 2, 3]),
    family: pick(random, ["none", "star", "chain"]),
    limits: withLimits(drawn, random, [7, 31, 100], ["sec", "7sec", "min"]),
    amountMax: 3,
    adjustMax: 3,
    deeds: ["commit", "rollback", "adjust", "flush", "more", "throw", "abort", "wait"],
    resources: pick(random, [2, 3, 4]),
  };
}

/**
 * Limits over all resources, of entities with ancestors; in half of the runs parts of calls belong
 * to other entities. Limits change, switches are set, and some buckets are split.
 */
export function totals(drawn: Parameters, random: Random): Partial<Parameters> {
  const amounts = [7, 31, 100];
  const periods = ["sec", "7sec", "min"];
  const all = withLimits(drawn, random, amounts, periods);
  const later = () => withLimits(drawn, random, amounts, periods);
  return {
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [1, 2, 3]),
    family: pick(random, ["none", "star", "chain"]),
    limits: withLimits(drawn, random, amounts, periods),
    totals: all.slice(0, pick(random, [1, 2, 3])),
    laterLimits: random() < 0.3 ? [later(), later()] : [],
    amountMax: 3,
    adjustMax: 3,
    writeUnitsPerSecond: random() < 0.3 ? pick(random, [5, 20]) : 1000,
    deeds: ["commit", "rollback", "adjust", "flush", "more", "throw", "abort", "wait", "look"],
    resources: pick(random, [1, 2, 3]),
    others: random() < 0.5,
    operators: random() < 0.3 ? ["switch"] : [],
    operationsPerMinute: 10,
  };
}

/**
 * Limits that entities store for their children, which change; in some of the runs entities are
 * moved, and in others totals count.
 */
export function children(drawn: Parameters, random: Random): Partial<Parameters> {
  const amounts = [7, 31, 100];
  const later = () => withLimits(drawn, random, amounts, ["sec", "7sec", "min"]);
  const moves = random() < 0.4;
  const total = !moves && random() < 0.5 ? later() : [];
  return {
    ...calm(drawn),
    processes: pick(random, [1, 2, 3, 5]),
    entities: pick(random, [2, 3, 4]),
    family: pick(random, ["star", "chain"]),
    limits: later(),
    laterLimits: Array.from({ length: pick(random, [3, 6, 12]) }, later),
    totals: total,
    children: true,
    amountMax: 3,
    adjustMax: 3,
    // A call that consumes more after a move consumes it from the new ancestors.
    deeds: ["commit", "rollback", "adjust", "flush", moves ? "commit" : "more", "wait", "look"],
    operators: moves ? ["move"] : [],
    operationsPerMinute: 20,
  };
}

/** Combines all of it with what the seed draws: faults, crashes, splits, other limits. */
export function operated(drawn: Parameters, random: Random): Partial<Parameters> {
  return {
    deletions: false,
    silenceMs: 0,
    operators: ["switch", "fill"],
    operationsPerMinute: pick(random, [10, 30]),
    resources: pick(random, [1, 2, 3]),
    deeds: drawn.deeds.filter((deed) => deed !== "override"),
  };
}
