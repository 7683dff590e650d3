/** A worker in a Lambda function: it is invoked for a round, and returns what it did. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { checkLoad } from "./define-load.ts";
import { THIS_PROCESS } from "./local-fleet.ts";
import type { Plan, WorkerPlace } from "./plan.ts";
import type { SliceWire } from "./slice.ts";
import { Worker } from "./worker.ts";
import type { StoreAddress } from "./worker-process.ts";

/** The order for one invocation. Without a place, the worker only gets ready. */
export interface RoundOrder {
  /** The name of the scenario's file. */
  readonly scenario: string;
  /** The store to load. */
  readonly store: StoreAddress;
  /** The classes, the number of users and the duration of the whole run. */
  readonly plan: Plan;
  /** Which of the workers this one is. */
  readonly place?: WorkerPlace;
  /** How long this invocation works, in milliseconds. */
  readonly roundMs?: number;
}

/** The answer of an invocation. */
export type RoundAnswer =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly slices: readonly SliceWire[] }
  | { readonly type: "failed"; readonly message: string };

/**
 * Makes the handler of a Lambda function that works for `zae-limiter loadtest run --lambda`; `push`
 * does this.
 *
 * @example
 * ```ts
 * import { defineLoad } from 'zae-limiter/loadtest';
 * import { workerHandler } from 'zae-limiter/loadtest/worker';
 * const load = defineLoad({ users: { ApiUser: { task: (session) => session.sleep(1) } } });
 * const handler = workerHandler({ 'simple.mjs': load });
 * const answer = await handler({
 *   scenario: 'other.mjs',
 *   store: { url: 'memory:', namespace: 'default', timeoutMs: 2000 },
 *   plan: { classes: [], users: 1, spawnRate: 1, rate: undefined, durationMs: 1, intervalMs: 1 },
 * });
 * console.log(answer.type); // failed
 * ```
 */
export function workerHandler(
  scenarios: Readonly<Record<string, unknown>>,
): (order: RoundOrder) => Promise<RoundAnswer> {
  // Invocations of one function instance share its connections and its cached limits.
  const limiters = new Map<string, Promise<RateLimiter>>();
  return async (order) => {
    try {
      return await round(scenarios, limiters, order);
    } catch (error) {
      return { type: "failed", message: error instanceof Error ? error.message : String(error) };
    }
  };
}

async function round(
  scenarios: Readonly<Record<string, unknown>>,
  limiters: Map<string, Promise<RateLimiter>>,
  { scenario, store, plan, place, roundMs = 0 }: RoundOrder,
): Promise<RoundAnswer> {
  if (!Object.hasOwn(scenarios, scenario)) {
    const known = Object.keys(scenarios).join(", ");
    const message = `the workers have no scenario ${scenario}, only ${known}; use loadtest push`;
    return { type: "failed", message };
  }
  const load = checkLoad(scenarios[scenario]);
  const { url, ...options } = store;
  const key = JSON.stringify(store);
  const opened = limiters.get(key) ?? RateLimiter.open(url, options);
  limiters.set(key, opened);
  const limiter = await opened.catch((error: unknown) => {
    limiters.delete(key);
    throw error;
  });
  if (place === undefined) return { type: "ready" };
  const slices: SliceWire[] = [];
  const worker = new Worker({
    load,
    limiter,
    plan: { ...plan, durationMs: Math.min(plan.durationMs, place.doneMs + roundMs) },
    place,
    ...THIS_PROCESS,
    signal: new AbortController().signal,
    onSlice: (slice) => slices.push(slice.toWire()),
  });
  await worker.run();
  return { type: "done", slices };
}
