/**
 * The balance of a limit with periods: a quota, which starts over at the edges of a calendar, or a
 * session, which ends a time after its first use. Pure, for all stores.
 *
 * Such a limit has an allowance, a balance and the stored end of the period in force. Nothing
 * accrues inside a period, and nothing is capped: a top-up belongs to its period. The first call
 * after the end opens the next period in its own write; until then every reader computes what that
 * write will find.
 */

import { type Rate, shareOf } from "../core/bucket.ts";
import { type PeriodRule, sameRule } from "../core/period-rule.ts";
import { PERIODS, type Periods } from "../domain/periods.ts";

/** Milli-tokens and epoch milliseconds. */
export interface PeriodLevel {
  readonly tokensMilli: number;
  /** The end of the period in force; 0: there is none yet. */
  readonly endMs: number;
  /** Granted by the period: the allowance, what was carried into it, and top-ups. */
  readonly grantedMilli: number;
  /** Left at the reset, at most what may be carried: late refunds are capped by it. */
  readonly leftMilli: number;
}

/** The allowance of a limit, or of a shard of it. */
export interface Allowance {
  readonly rule: PeriodRule;
  readonly amountMilli: number;
  /** The most that is carried of what is left; 0 where only debts are. */
  readonly carryMaxMilli: number;
  /** Computes edges by the clocks of zones. */
  readonly periods: Periods;
}

/** Returns the allowance of a shard. `rate`: undivided, of a limit with periods. */
export function allowanceOf(
  rate: Rate,
  shard = 0,
  count = 1,
  periods: Periods = PERIODS,
): Allowance {
  const rule = rate.rule as PeriodRule;
  const carryMax = rule.kind === "quota" ? (rule.carryMax ?? 0) : 0;
  return {
    rule,
    amountMilli: shareOf(rate.capacityMilli, shard, count),
    carryMaxMilli: shareOf(carryMax * 1000, shard, count),
    periods,
  };
}

/** Whether a limit has periods. Nothing accrues in it. */
export function hasPeriods({ rule }: Rate): boolean {
  return rule !== undefined;
}

/** Whether the answer to a call says when it was seen: the limit has periods, or windows. */
export function isTimed({ rule, schedule }: Rate): boolean {
  return rule !== undefined || schedule !== undefined;
}

/** Returns the beginning of a period that ends then. */
export function startOf(rule: PeriodRule, endMs: number): number {
  if (rule.kind === "session") return endMs - rule.seconds * 1000;
  return PERIODS.at(rule, endMs - 1).startMs;
}

/** Returns the level of a limit that was never used. A session has no period yet. */
export function unusedLevel({ rule, amountMilli, periods }: Allowance, nowMs: number): PeriodLevel {
  const endMs = rule.kind === "quota" ? periods.at(rule, nowMs).endMs : 0;
  return { tokensMilli: amountMilli, endMs, grantedMilli: amountMilli, leftMilli: 0 };
}

/** Returns the balance at a time, without opening a period. */
export function balanceIn(level: PeriodLevel, allowance: Allowance, nowMs: number): number {
  if (nowMs < level.endMs) return level.tokensMilli;
  return allowance.amountMilli + carriedOf(leftAt(level, allowance, nowMs), allowance);
}

/** Returns the level in the period in force at a time, which is opened where the last is over. */
export function levelIn(level: PeriodLevel, allowance: Allowance, nowMs: number): PeriodLevel {
  if (nowMs < level.endMs) return level;
  const { rule, amountMilli, periods } = allowance;
  const before = level.endMs === 0 ? undefined : level.endMs;
  const { endMs } = periods.next(rule, nowMs, before);
  const leftMilli = before === undefined ? 0 : leftAt(level, allowance, nowMs);
  const tokensMilli = amountMilli + carriedOf(leftMilli, allowance);
  return { tokensMilli, endMs, grantedMilli: tokensMilli, leftMilli };
}

/**
 * Returns what was left at the last reset before a time, at most what may be carried. Periods in
 * which nothing was consumed pass their whole allowance on.
 */
function leftAt({ tokensMilli, endMs }: PeriodLevel, allowance: Allowance, nowMs: number): number {
  const { rule, amountMilli, carryMaxMilli, periods } = allowance;
  if (rule.kind === "session" || rule.carry === "none") return 0;
  const lastMilli = Math.min(tokensMilli, carryMaxMilli);
  const firstMilli = carriedOf(lastMilli, allowance);
  const missing = Math.ceil((carryMaxMilli - firstMilli) / amountMilli) + 1;
  const passed = endMs === 0 ? 1 : periods.passed(rule, endMs, nowMs, Math.max(1, missing));
  if (passed === 1) return lastMilli;
  return Math.min(carryMaxMilli, firstMilli + (passed - 1) * amountMilli);
}

/** Returns the part of what was left that the next period gets; negative: a debt. */
function carriedOf(leftMilli: number, { rule }: Allowance): number {
  const carry = rule.kind === "quota" ? rule.carry : "none";
  if (carry === "none") return 0;
  if (carry === "debt") return Math.min(0, leftMilli);
  return carry === "rest" ? Math.max(0, leftMilli) : leftMilli;
}

/** Returns the milli-tokens that were carried into the period in force; negative: a debt. */
export function carriedInto({ leftMilli }: PeriodLevel, allowance: Allowance): number {
  return carriedOf(leftMilli, allowance);
}

/** Returns the top-ups of the period in force: its grant beyond its amount and the carry. */
export function addedTo(level: PeriodLevel, allowance: Allowance): number {
  return level.grantedMilli - allowance.amountMilli - carriedInto(level, allowance);
}

/**
 * Refunds to the period that is stored. `fromEndMs`: the end of the period that it was consumed in.
 * In a later period the refund counts as what it would have added to what was carried, so without a
 * carry it is dropped.
 */
export function refunded(
  level: PeriodLevel,
  allowance: Allowance,
  amountMilli: number,
  fromEndMs: number | undefined,
): PeriodLevel {
  const { tokensMilli, endMs, grantedMilli, leftMilli } = level;
  if (fromEndMs === undefined || fromEndMs === endMs) {
    return { tokensMilli: tokensMilli + amountMilli, endMs, grantedMilli, leftMilli };
  }
  const more = Math.min(allowance.carryMaxMilli, leftMilli + amountMilli);
  const added = carriedOf(more, allowance) - carriedOf(leftMilli, allowance);
  if (added <= 0) return level;
  return {
    tokensMilli: tokensMilli + added,
    endMs,
    grantedMilli: grantedMilli + added,
    leftMilli: more,
  };
}

/** Adds an amount that no call has consumed before; `Infinity` fills the limit up. */
export function toppedUp(
  level: PeriodLevel,
  { amountMilli }: Allowance,
  addedMilli: number,
): PeriodLevel {
  const { tokensMilli, endMs, leftMilli, grantedMilli } = level;
  if (Number.isFinite(addedMilli)) {
    const tokens = tokensMilli + addedMilli;
    return { tokensMilli: tokens, endMs, grantedMilli: grantedMilli + addedMilli, leftMilli };
  }
  const tokens = Math.max(tokensMilli, amountMilli);
  return { tokensMilli: tokens, endMs, grantedMilli: tokens, leftMilli };
}

/**
 * Gives a level another allowance: a changed amount is felt at once, and a changed rule ends the
 * period at its own next edge, if that comes before the stored end.
 */
export function withAllowance(
  level: PeriodLevel,
  before: Allowance,
  after: Allowance,
  nowMs: number,
): PeriodLevel {
  const { tokensMilli, endMs, grantedMilli, leftMilli } = level;
  const more = after.amountMilli - before.amountMilli;
  const { rule, periods } = after;
  const isMoved = rule.kind === "quota" && endMs !== 0 && !sameRule(rule, before.rule);
  const moved = isMoved ? periods.movedEnd(rule, nowMs, endMs) : endMs;
  return {
    tokensMilli: tokensMilli + more,
    endMs: moved,
    grantedMilli: grantedMilli + more,
    leftMilli: Math.min(leftMilli, after.carryMaxMilli),
  };
}
