/** The scenarios of the scale report. */

import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import type { Scenario } from "./scenario.ts";
import { zipf } from "./zipf.ts";

/** Describes one tenant that uses all of a large limit. */
function tenant(name: string, processes: number): Scenario {
  const perSecond = 20_000;
  return {
    name,
    title: `one tenant at 20,000 acquires per second from ${processes} processes`,
    parameters: { processes, callsPerSecond: perSecond, limit: `rps:${perSecond}/sec` },
    seconds: 20,
    processes,
    callsPerSecond: perSecond,
    limits: [`rps:${perSecond}/sec`],
    next: () => ["tenant"],
    rateOf: () => ({ capacity: perSecond, perSecond }),
    watched: "tenant",
  };
}

/** Describes a bucket that needs a few shards and then no more. */
function hot(name: string, processes: number): Scenario {
  const [perSecond, limit] = [4000, 100_000];
  return {
    name,
    title: `one bucket at 4,000 acquires per second from ${processes} processes`,
    parameters: { processes, callsPerSecond: perSecond, limit: `rps:${limit}/sec` },
    seconds: 20,
    processes,
    callsPerSecond: perSecond,
    limits: [`rps:${limit}/sec`],
    next: () => ["hot"],
    rateOf: () => ({ capacity: limit, perSecond: limit }),
    watched: "hot",
  };
}

/**
 * Describes many entities, of which few are busy. All buckets are new, and all those of a namespace
 * are in one partition of an index, which takes 1,000 new ones per second: more calls would measure
 * that.
 */
function many(): Scenario {
  const [entities, processes, callsPerSecond, limit, exponent] = [1_000_000, 1000, 2000, 50, 1];
  const drawn = new Map<object, () => number>();
  const next = (random: () => number) => {
    const draw = drawn.get(random) ?? zipf(entities, exponent, seededRandom(1, "zipf"));
    drawn.set(random, draw);
    return [`e${draw()}`];
  };
  return {
    name: "zipf",
    title: "1,000,000 entities with a Zipf distribution over 1,000 processes",
    parameters: { entities, exponent, processes, callsPerSecond, limit: `rps:${limit}/sec` },
    seconds: 30,
    processes,
    callsPerSecond,
    limits: [`rps:${limit}/sec`],
    next,
    rateOf: () => ({ capacity: limit, perSecond: limit }),
    watched: "e0",
  };
}

/** Describes entities that all cascade to one parent. */
function family(): Scenario {
  const [children, processes, callsPerSecond] = [5000, 100, 4000];
  const [own, shared] = [10, 5000];
  const rates = {
    child: { capacity: own, perSecond: own },
    parent: { capacity: shared, perSecond: shared },
  };
  return {
    name: "family",
    title: "a parent with 5,000 cascading children",
    parameters: {
      children,
      processes,
      callsPerSecond,
      limit: `rps:${own}/sec`,
      parentLimit: `rps:${shared}/sec`,
    },
    seconds: 20,
    processes,
    callsPerSecond,
    limits: [`rps:${own}/sec`],
    entityLimits: { parent: [`rps:${shared}/sec`] },
    entities: [
      { id: "parent" },
      ...Array.from({ length: children }, (_, at) => ({
        id: `child-${at}`,
        parentId: "parent",
        cascade: true,
      })),
    ],
    next: (random) => [`child-${Math.floor(random() * children)}`, "parent"],
    rateOf: (entityId) => (entityId === "parent" ? rates.parent : rates.child),
    watched: "parent",
  };
}

/** Describes calls of which nearly all are refused. */
function flood(name: string, processes: number, local: boolean): Scenario {
  const [callsPerSecond, limit] = [10_000, 100];
  return {
    name,
    title: `10,000 acquires per second for a limit of 100, ${
      local ? "refused from memory for a moment" : "each of them asks (speculativeWrites: false)"
    }`,
    parameters: { processes, callsPerSecond, limit: `rps:${limit}/sec` },
    seconds: 15,
    processes,
    callsPerSecond,
    limits: [`rps:${limit}/sec`],
    next: () => ["flooded"],
    rateOf: () => ({ capacity: limit, perSecond: limit }),
    speculativeWrites: local,
    watched: "flooded",
  };
}

/** A number in a name is the number of processes; the load is equal for each name. */
type ScenarioName =
  | "tenant"
  | "tenant-20"
  | "hot"
  | "hot-4"
  | "zipf"
  | "family"
  | "flood"
  | "flood-4"
  | "flood-asking";

/**
 * The scenarios of the scale report, by name.
 */
export const SCENARIOS: {
  readonly [name in ScenarioName]: Scenario;
} = Object.freeze({
  tenant: tenant("tenant", 200),
  "tenant-20": tenant("tenant-20", 20),
  hot: hot("hot", 40),
  "hot-4": hot("hot-4", 4),
  zipf: many(),
  family: family(),
  flood: flood("flood", 100, true),
  "flood-4": flood("flood-4", 4, true),
  "flood-asking": flood("flood-asking", 100, false),
});
