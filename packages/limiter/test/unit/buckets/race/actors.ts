/** The actors of a race, as data, and how each of them acts. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  LeaseExpiredError,
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import { type Sums, slot } from "./ledger.ts";
import type { World } from "./world.ts";

export const RESOURCE = "api";

/** `child` cascades to `parent`; `late` will, once it is adopted; `solo` does not. */
export const ENTITIES = ["solo", "child", "late", "parent"] as const;

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/** Use of the lease by an actor. */
export type Ending =
  | { readonly do: "commit" | "rollback" | "throw" | "abort" }
  | { readonly do: "adjust" | "flush"; readonly deltas: Tokens }
  | { readonly do: "more"; readonly consume: Tokens; readonly commit: boolean };

export type Actor =
  | {
      readonly do: "acquire";
      readonly client: number;
      readonly entity: string;
      readonly consume: Tokens;
      readonly limits?: readonly string[] | undefined;
      readonly ending: Ending;
    }
  | {
      readonly do: "configure";
      readonly client: number;
      /** `undefined`: for the resource. */
      readonly entity: string | undefined;
      readonly limits: readonly string[];
    }
  | { readonly do: "delete"; readonly client: number; readonly entity: string }
  | { readonly do: "adopt"; readonly client: number }
  | {
      readonly do: "split";
      readonly entity: string;
      readonly shard: number;
      /** Into how many. */
      readonly factor: number;
    }
  | { readonly do: "merge"; readonly entity: string }
  | { readonly do: "tick"; readonly ms: number };

/** The outcome of an acquire. */
export interface Report {
  readonly outcome: "granted" | "refused" | "failed";
  /** Amounts it should hold in the end; `undefined` entries were never consumed. */
  readonly kept: Sums;
  /** Amounts that a failed write may or may not have changed on top of that. */
  readonly uncertain: Sums;
  /** It went on after a part of it had failed. */
  readonly caught?: boolean;
}

/** Everything that may end an actor; anything else is a bug. */
export function isExpected(error: unknown): boolean {
  return (
    error instanceof RateLimiterUnavailable ||
    error instanceof RateLimitExceeded ||
    error instanceof ValidationError ||
    error instanceof LeaseExpiredError ||
    error === ABORTED ||
    error === THROWN
  );
}

const ABORTED = new Error("aborted");
const THROWN = new Error("thrown by the body");

export async function acquire(
  limiter: RateLimiter,
  actor: Extract<Actor, { do: "acquire" }>,
  world: World,
): Promise<Report> {
  const { entity, consume, limits, ending } = actor;
  const controller = new AbortController();
  const request = { entityId: entity, resource: RESOURCE, consume, limits };
  const signal = { ...request, signal: controller.signal };
  if (ending.do === "throw" || ending.do === "abort") {
    let held: Sums = new Map();
    const work = async (lease: Lease) => {
      held = heldBy(lease);
      await world.turn("works");
      if (ending.do === "throw") throw THROWN;
      await world.turn("still works");
    };
    const running = limiter.run(ending.do === "abort" ? signal : request, work);
    if (ending.do === "abort") {
      void world.turn("aborts").then(() => controller.abort(ABORTED));
    }
    return running.then(
      () => report("granted", held),
      (error: unknown) => failed(error),
    );
  }
  let lease: Lease;
  try {
    const decision = await limiter.tryAcquire(request);
    if (!decision.granted) return report("refused");
    lease = decision.lease;
  } catch (error) {
    return failed(error);
  }
  await world.turn("works");
  return settle(lease, ending);
}

/** Amounts that were consumed, from the entity and its ancestors. */
function heldBy(lease: Lease): Sums {
  return new Map(
    lease.statuses
      .filter(({ requested }) => requested > 0)
      .map(({ entityId, limitName, requested }) => [slot(entityId, limitName), requested * 1000]),
  );
}

async function settle(lease: Lease, ending: Ending): Promise<Report> {
  const held = heldBy(lease);
  const entities = [...new Set(lease.statuses.map(({ entityId }) => entityId))];
  try {
    switch (ending.do) {
      case "adjust":
      case "flush":
        return await adjust(lease, entities, ending, held);
      case "more":
        return await takeMore(lease, entities, ending, held);
      case "commit":
        await lease.commit();
        return report("granted", held);
      default:
        await lease.rollback();
        return report("granted");
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    return report("failed", held, held);
  }
}

async function adjust(
  lease: Lease,
  entities: readonly string[],
  ending: Extract<Ending, { deltas: Tokens }>,
  held: Sums,
): Promise<Report> {
  const known = (name: string) => lease.statuses.filter(({ limitName }) => limitName === name);
  const own = entities[0] as string;
  const deltas: Record<string, number> = {};
  for (const [name, delta] of Object.entries(ending.deltas)) {
    // Never below what the lease holds, and only for limits that the entity has.
    const least = -(held.get(slot(own, name)) ?? 0) / 1000;
    if (known(name).some(({ entityId }) => entityId === own)) deltas[name] = Math.max(least, delta);
  }
  const change: Sums = new Map();
  for (const [name, delta] of Object.entries(deltas)) {
    for (const { entityId } of known(name)) change.set(slot(entityId, name), delta * 1000);
  }
  lease.adjust(deltas);
  try {
    if (ending.do === "flush") await lease.flush();
    await lease.commit();
  } catch (error) {
    if (!isExpected(error)) throw error;
    return report("failed", held, change);
  }
  return report("granted", sum(held, change));
}

async function takeMore(
  lease: Lease,
  entities: readonly string[],
  ending: Extract<Ending, { do: "more" }>,
  held: Sums,
): Promise<Report> {
  let all = held;
  let caught = false;
  const unsure: Sums = new Map();
  try {
    await lease.consume(ending.consume);
    const [own] = entities as readonly [string];
    all = sum(held, amounts([own], ending.consume));
    // An ancestor may have come or gone since.
    const others = ENTITIES.filter((entityId) => entityId !== own);
    for (const [at, amount] of amounts(others, ending.consume)) unsure.set(at, amount);
  } catch (error) {
    if (!isExpected(error)) throw error;
    caught = true;
  }
  if (!ending.commit) {
    await lease.rollback();
    return { ...report("granted"), caught };
  }
  await lease.commit();
  return { ...report("granted", all, unsure), caught };
}

function failed(error: unknown): Report {
  if (!isExpected(error)) throw error;
  return report(error instanceof RateLimitExceeded ? "refused" : "failed");
}

function report(outcome: Report["outcome"], kept?: Sums, uncertain?: Sums): Report {
  return { outcome, kept: kept ?? new Map(), uncertain: uncertain ?? new Map() };
}

function amounts(entities: readonly string[], tokens: Tokens): Sums {
  return new Map(
    entities.flatMap((entityId) =>
      Object.entries(tokens).map(
        ([name, amount]) => [slot(entityId, name), amount * 1000] as const,
      ),
    ),
  );
}

function sum(left: Sums, right: Sums): Sums {
  const total = new Map(left);
  for (const [at, amount] of right) total.set(at, (total.get(at) ?? 0) + amount);
  return total;
}
