/** A call as it was drawn, and the process that makes it. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Deed } from "./parameters.ts";

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/** The amounts that a call consumes of one resource. */
export interface PlannedPart {
  readonly resource: string;
  /** The entity that consumes it, and its ancestors; those of the call when absent. */
  readonly entityId?: string;
  readonly ancestors?: readonly string[];
  readonly consume: Tokens;
}

export interface PlannedCall {
  readonly number: number;
  readonly entityId: string;
  /** The ancestors that it may cascade to. */
  readonly ancestors: readonly string[];
  readonly deed: Deed;
  readonly consume: Tokens;
  /** Slots that it holds until it ends. */
  readonly slots: Tokens;
  /** Other parts of the same acquire. */
  readonly also: readonly PlannedPart[];
  /** Names of limits over all resources; none: the call counts no totals. */
  readonly totals: readonly string[];
  /** For `adjust` and `flush`: below zero is a refund. */
  readonly deltas: Tokens;
  readonly limits: readonly string[] | undefined;
  readonly thinkMs: number;
}

/** A part with the entities that it consumes from, its own first. */
export interface WholePart extends PlannedPart {
  readonly entityId: string;
  readonly entities: readonly string[];
}

/** Lists the parts of a call, its own first. */
export function partsOf(call: PlannedCall, resource: string): readonly WholePart[] {
  const own = { resource, consume: call.consume };
  return [own, ...call.also].map((part: PlannedPart) => {
    const { entityId = call.entityId, ancestors = call.ancestors } = part;
    return {
      resource: part.resource,
      consume: part.consume,
      entityId,
      entities: [entityId, ...ancestors],
    };
  });
}

/** The process that makes a call. */
export interface Caller {
  readonly id: number;
  readonly limiter: RateLimiter;
  readonly timer: Timer;
  readonly timeoutMs: number;
}
