/**
 * Everything that makes one run, as data. The seed draws them: each run gets some of the faults and
 * some of the things that calls can do, because what happens rarely together hides behind what
 * happens always.
 */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { WindowOptions } from "@zae-limiter/limiter/domain/limit.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import type { Faults } from "@zae-limiter/testing/table/faults.ts";
import { between, pick } from "../draw.ts";
import type { OperatorName } from "./operators/operators.ts";
import type { WorldName } from "./worlds.ts";

/** Acts of a call with its lease, or instead of one. */
const DEEDS = [
  "commit",
  "rollback",
  "adjust",
  "flush",
  "more",
  "throw",
  "abort",
  "wait",
  "override",
  "look",
] as const;
/** `release` gives slots back early; only worlds with slots have it. */
export type Deed = (typeof DEEDS)[number] | "release";

/** The hierarchy: none, all cascade to the first, or each cascades to the one before it. */
export type Family = "none" | "star" | "chain";

/** Periods of the same length, with edges that differ by the data of zones that processes have. */
export interface QuotaPeriods {
  readonly lengthMs: number;
  /** How much later the edges are than those of UTC, process by process, and from the start. */
  readonly shiftsMs: readonly number[];
  /** The part of a balance that the next period takes over; nothing when absent. */
  readonly carry?: { readonly carry: "debt" | "rest" | "both"; readonly carry_max?: number };
}

export interface Parameters {
  readonly seed: number;
  /** The world that has drawn the rest; see `worlds.ts`. */
  readonly world: WorldName;
  readonly minutes: number;
  readonly processes: number;
  readonly entities: number;
  readonly family: Family;
  readonly limits: readonly string[];
  /** Replace `limits` one after the other. */
  readonly laterLimits: readonly (readonly string[])[];
  readonly callsPerSecond: number;
  readonly amountMax: number;
  /** The most tokens that an adjustment consumes on top of an acquire. */
  readonly adjustMax: number;
  readonly deeds: readonly Deed[];
  /** The longest time for which a call keeps its lease. */
  readonly thinkMs: number;
  /** Silence between bursts of calls. */
  readonly silenceMs: number;
  /** Silence is not part of `minutes`: calls go on after it, burst after burst. */
  readonly silenceIsExtra: boolean;
  readonly faults: Faults;
  readonly crashesPerMinute: number;
  /** Maximum error of clocks. */
  readonly skewMs: number;
  /** Write units per second of one key; small, so that a few calls are throttled. */
  readonly writeUnitsPerSecond: number;
  readonly latencyMs: number;
  /** Whether some calls delete their entity. */
  readonly deletions: boolean;
  /** All processes ask at the last millisecond before a token is whole. */
  readonly edges: boolean;
  /** A client of the Python library doubles the number of shards now and then. */
  readonly foreignDoublings: boolean;
  /** A client changes the number of shards of buckets all the time. */
  readonly reshards: boolean;
  /** Entities are used first, and created below a parent later. */
  readonly latecomers: boolean;
  /** Changes that operators make while calls are under way. */
  readonly operators: readonly OperatorName[];
  /** How often each of them does. */
  readonly operationsPerMinute: number;
  /** How many resources there are; calls that use several acquire them at once. */
  readonly resources: number;
  /** Limits over all resources, of every entity; none: calls count no totals. */
  readonly totals: readonly string[];
  /** Some of `laterLimits` are stored for the children of an entity. */
  readonly children: boolean;
  /** Parts of calls may belong to other entities. */
  readonly others: boolean;
  /** Limits of slots, of which each call takes some; none: calls hold nothing. */
  readonly slots: readonly string[];
  /** How often a process is cut off from the table for a while. */
  readonly cutsPerMinute: number;
  /** The periods of quotas; calls come around their edges. */
  readonly quotas: QuotaPeriods | undefined;
  /** Windows in which limits have other numbers, by the name of the limit. */
  readonly windows: Readonly<Record<string, readonly WindowOptions[]>>;
  /** Wrong refusals are violations; otherwise they are only counted. */
  readonly judgesRefusals: boolean;
  /** Nothing fails and nothing is throttled, so no call may end as unavailable. */
  readonly isHealthy: boolean;
}

/** The most calls per minute, so that a thousand seeds take minutes and not hours. */
const CALLS_MAX = 1500;
/** Each of these makes many attempts. */
const HEATED_CALLS_MAX = 600;

/** Values of parameters that only some of the worlds change. */
const NOTHING_SPECIAL = {
  world: "any",
  adjustMax: 0,
  thinkMs: 200,
  silenceIsExtra: false,
  edges: false,
  foreignDoublings: false,
  reshards: false,
  latecomers: false,
  operators: [],
  operationsPerMinute: 0,
  resources: 1,
  totals: [],
  children: false,
  others: false,
  slots: [],
  cutsPerMinute: 0,
  quotas: undefined,
  windows: {},
  judgesRefusals: true,
  isHealthy: false,
} as const satisfies Partial<Parameters>;

/** Draws the parameters of the world "any", on which all others are built. */
export function drawParameters(seed: number, minutes: number | undefined): Parameters {
  const random = seededRandom(seed, "parameters");
  const some = (share: number) => random() < share;
  const duration = minutes ?? pick(random, [0.25, 0.5, 1, 2]);
  const names = pick(random, [["a"], ["a", "b"], ["a", "b", "c"]]);
  const configured = some(0.4);
  const parameters: Parameters = {
    ...NOTHING_SPECIAL,
    seed,
    minutes: duration,
    processes: pick(random, [1, 2, 3, 5, 8]),
    entities: pick(random, [1, 1, 2, 3, 5]),
    family: pick<Family>(random, ["none", "none", "star", "chain"]),
    limits: names.map((name) => drawLimit(random, name)),
    laterLimits: configured
      ? Array.from({ length: between(random, 1, 8) }, () => drawLater(random, names))
      : [],
    callsPerSecond: Math.min(pick(random, [2, 10, 30, 100]), CALLS_MAX / (duration * 60)),
    amountMax: pick(random, [1, 3, 10]),
    deeds: ["commit", ...DEEDS.filter((deed) => deed !== "commit" && some(0.4))],
    silenceMs: some(0.3) ? pick(random, [500, 5000, 60_000, 7_200_000, 100_000_000]) : 0,
    faults: drawFaults(random),
    crashesPerMinute: some(0.3) ? pick(random, [1, 5, 20]) : 0,
    skewMs: some(0.3) ? pick(random, [5, 100, 900]) : 0,
    writeUnitsPerSecond: some(0.4) ? pick(random, [3, 8, 20, 100]) : 1000,
    latencyMs: pick(random, [1, 4, 4, 20]),
    deletions: some(0.1),
  };
  const drawn = { ...parameters, adjustMax: parameters.amountMax };
  return some(0.35) ? heated(drawn, random) : drawn;
}

/** Makes one or two large buckets on keys that take little: there will be shards. */
export function heated(parameters: Parameters, random: Random): Parameters {
  const { limits, laterLimits, deeds } = parameters;
  const large = (limit: string) => {
    const name = limit.slice(0, limit.indexOf(":"));
    const period = pick(random, ["sec", "7sec", "min", "hour"]);
    return `${name}:${pick(random, [64, 100, 997, 10_000])}/${period}`;
  };
  const returns = deeds.filter((deed) => ["rollback", "throw", "abort"].includes(deed));
  return {
    ...parameters,
    entities: pick(random, [1, 2]),
    limits: limits.map(large),
    laterLimits: laterLimits.map((later) => later.map(large)),
    // Where everything is given back, it shows where it went.
    deeds: returns.length > 0 && random() < 0.3 ? returns : deeds,
    callsPerSecond: Math.min(60, HEATED_CALLS_MAX / (parameters.minutes * 60)),
    silenceMs: Math.min(parameters.silenceMs, 5000),
    writeUnitsPerSecond: pick(random, [2, 5, 10]),
  };
}

/** Draws a limit, mostly small and odd, so that remainders matter; sometimes very large. */
export function drawLimit(random: Random, name: string): string {
  const period = pick(random, ["sec", "sec", "7sec", "13sec", "min", "hour", "day"]);
  const amount = pick(random, [1, 2, 3, 7, 10, 31, 100, 997, 10_000, 999_999_999]);
  const burst = random() < 0.3 ? `:${amount * pick(random, [1, 2, 5])}` : "";
  return `${name}:${amount}/${period}${burst}`;
}

/** Draws changed limits; often only one changes, which must not affect the others. */
function drawLater(random: Random, names: readonly string[]): readonly string[] {
  const kept = names.filter((name) => name === "a" || random() < 0.8);
  return kept.map((name) => drawLimit(random, name));
}

function drawFaults(random: Random): Faults {
  const share = () => pick(random, [0.002, 0.02, 0.1]);
  const faults: { -readonly [name in keyof Faults]: Faults[name] } = {};
  if (random() < 0.3) faults.lostResponses = share();
  if (random() < 0.3) faults.lostRequests = share();
  if (random() < 0.3) faults.serverErrors = share();
  if (random() < 0.3) faults.refusedConnections = share();
  if (random() < 0.3) faults.throttledTable = share();
  if (random() < 0.3) faults.lagMs = pick(random, [20, 500, 3000]);
  if (random() < 0.3) faults.transactionMs = pick(random, [10, 60]);
  if (random() < 0.3) faults.duplicateRecords = share();
  return faults;
}

/** Nothing goes wrong by itself. */
export const HEALTHY = {
  family: "none",
  laterLimits: [],
  silenceMs: 0,
  crashesPerMinute: 0,
  skewMs: 0,
  writeUnitsPerSecond: 1000,
  deletions: false,
  isHealthy: true,
  faults: {},
} as const satisfies Partial<Parameters>;

/** Returns the drawn faults that only delay a call or lose its answer. */
export function mildFaults({ lostResponses, transactionMs }: Faults): Faults {
  return {
    ...(lostResponses === undefined ? {} : { lostResponses }),
    ...(transactionMs === undefined ? {} : { transactionMs }),
  };
}
