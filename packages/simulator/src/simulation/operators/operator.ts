/**
 * An operator: changes something in a world now and then, one change after the other. A change that
 * fails is repeated until it is made, as an operator does; until then checkers count both states.
 */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { SweepIncompleteError } from "@zae-limiter/limiter/domain/errors/sweep-incomplete.ts";
import type { Caller } from "../planned-call.ts";
import type { World } from "../world.ts";

/** The pause before a change that has failed is repeated. */
const AGAIN_MS = 200;

export interface OperatorParts {
  readonly world: World;
  readonly random: Random;
  /** The process that makes the next change. */
  readonly caller: () => Caller;
  readonly entities: number;
  readonly resources: readonly string[];
  readonly limitNames: readonly string[];
}

/** Draws one change and makes it. */
export type Operation = (parts: OperatorParts) => Promise<void>;

/** Makes changes until `endMs`, about `perMinute` of them. */
export async function operate(
  parts: OperatorParts,
  operation: Operation,
  perMinute: number,
  endMs: number,
): Promise<void> {
  const { world, random } = parts;
  for (;;) {
    const pauseMs = (-Math.log(1 - random()) * 60_000) / perMinute;
    if (world.time.nowMs + pauseMs > endMs) return;
    await world.time.timer.sleep(pauseMs);
    if (world.violation !== undefined) return;
    await operation(parts);
  }
}

/** Repeats a change until it is made. */
export async function untilMade<T>(world: World, make: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      const isPartly = error instanceof SweepIncompleteError;
      if (!isPartly && !(error instanceof RateLimiterUnavailable)) throw error;
      world.log.add(`operator: ${error.name}, again`);
      await world.time.timer.sleep(AGAIN_MS);
    }
  }
}
