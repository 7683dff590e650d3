/** The parts of a limit, as code and as JSON state them. */

import type { PeriodRule } from "../core/period-rule.ts";
import type { RateSchedule } from "../core/rate-schedule.ts";
import type { QuotaJson } from "./limit-json.ts";
import type { WindowJson } from "./schedule.ts";

/**
 * How the tokens of a limit come back: `rate` evenly, `quota` at once by the calendar, `session` at
 * once a time after its first use, `concurrency` when a lease ends.
 *
 * @example
 * ```ts
 * import { Limit, type LimitKind } from 'zae-limiter';
 * const kind: LimitKind = Limit.parse('req:10000/month Europe/Berlin').kind;
 * console.log(kind); // quota
 * ```
 */
export type LimitKind = "rate" | "quota" | "session" | "concurrency";

/** The numbers of a limit, in whole tokens and seconds. */
export interface LimitSpec {
  /** The name that `consume` uses, such as `rpm`. */
  readonly name: string;
  /** The most the bucket can hold. */
  readonly capacity: number;
  /** Tokens that come back in one period; 0 with a rule, and of slots. */
  readonly refillAmount: number;
  /** The length of a period in seconds; 1 with a rule, and of slots. */
  readonly refillPeriodSeconds: number;
  /** Refuses nothing: it is consumed into debt. `false` when absent. */
  readonly soft?: boolean;
  /** When a quota or a session resets; absent for a rate. */
  readonly rule?: PeriodRule | undefined;
  /** Said of slots, `concurrency`; the rule says that of all others. */
  readonly kind?: LimitKind | undefined;
  /** Percentages of a quota or a session at which an alert is written; none when absent. */
  readonly alerts?: readonly number[] | undefined;
  /** Windows in which a rate has other numbers; `withSchedule` makes them of words. */
  readonly schedule?: RateSchedule | undefined;
}

/** The numbers of quotas, sessions and slots, as the Python library stores them. */
export const NO_REFILL = { refillAmount: 0, refillPeriodSeconds: 1 } as const;

/** The form of a limit in JSON. */
export type LimitJson = {
  readonly name: string;
  /** The most the bucket can hold. */
  readonly capacity: number;
  /** Tokens that come back in one period. */
  readonly refill_amount: number;
  /** The length of a period in seconds. */
  readonly refill_period_seconds: number;
  /** Present when the limit is soft. */
  readonly soft?: true;
  /** Present for slots, which come back when a lease ends. */
  readonly concurrent?: true;
  /** Percentages at which an alert is written; absent where there are none. */
  readonly alerts?: readonly number[];
  /** Windows in which a rate has other numbers; absent where there are none. */
  readonly schedule?: readonly WindowJson[];
} & QuotaJson;
