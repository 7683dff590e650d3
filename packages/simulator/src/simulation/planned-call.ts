/** A call as it was drawn, and the process that makes it. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Deed } from "./parameters.ts";

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/** The amounts that a call consumes of one resource. */
export interface PlannedPart {
  readonly resource: string;
  readonly consume: Tokens;
}

export interface PlannedCall {
  readonly number: number;
  readonly entityId: string;
  /** The ancestors that it may cascade to. */
  readonly ancestors: readonly string[];
  readonly deed: Deed;
  readonly consume: Tokens;
  /** Other resources of the same acquire. */
  readonly also: readonly PlannedPart[];
  /** For `adjust` and `flush`: below zero is a refund. */
  readonly deltas: Tokens;
  readonly limits: readonly string[] | undefined;
  readonly thinkMs: number;
}

/** The process that makes a call. */
export interface Caller {
  readonly id: number;
  readonly limiter: RateLimiter;
  readonly timer: Timer;
  readonly timeoutMs: number;
}
