/** A scenario as data, and what came of it. */

import type { Usage } from "@zae-limiter/testing/table/usage.ts";
import type { FlowRate } from "./ideal-flow.ts";

/** The callers of a scenario, their rates and their requests. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** For the report. */
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly seconds: number;
  readonly processes: number;
  readonly callsPerSecond: number;
  /** Limits of all entities, in the mini-language. */
  readonly limits: readonly string[];
  /** Instead of `limits`, for one entity. */
  readonly entityLimits?: Readonly<Record<string, readonly string[]>>;
  /** Entities with records of their own; others need none. */
  readonly entities?: readonly { id: string; parentId?: string; cascade?: boolean }[];
  /** Whose calls come next: the entity, and those it cascades to. */
  readonly next: (random: () => number) => readonly string[];
  readonly rateOf: (entityId: string) => FlowRate;
  /** `false`: nothing is refused from memory. */
  readonly speculativeWrites?: boolean;
  /** The bucket whose shards are counted. */
  readonly watched?: string;
}

/** One second of a run. */
export interface SecondReport {
  readonly second: number;
  readonly admitted: number;
  /** Calls that ended in this second without an answer of the store. */
  readonly unavailable: number;
  readonly calls: number;
  readonly throttled: number;
  /** Number of shards of the bucket that is watched. */
  readonly shards: number;
}

/** Result of a scenario. */
export interface ScenarioReport {
  readonly name: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  readonly parameters: Readonly<Record<string, string | number>>;
  /** Calls of users. */
  readonly offered: number;
  readonly admitted: number;
  readonly refused: number;
  /** Number of the refused calls that the state of the store does not explain. */
  readonly wrongRefusals: number;
  readonly unavailable: number;
  /** Calls that one bucket with complete knowledge would have granted. */
  readonly theoreticalMax: number;
  readonly admittedShare: number;
  readonly callsPerAcquire: number;
  readonly writeUnitsPerAcquire: number;
  readonly readUnitsPerAcquire: number;
  readonly throttledCalls: number;
  readonly throttledShare: number;
  /** After the first ten seconds. */
  readonly settled: { readonly admittedPerSecond: number; readonly throttledShare: number };
  readonly latencyMs: { readonly p50: number; readonly p99: number };
  readonly dollarsPerMillion: number;
  readonly shards: number;
  readonly timeline: readonly SecondReport[];
  readonly usage: Usage;
  /** A rule that was broken. */
  readonly violation: string | undefined;
  readonly events: number;
}
