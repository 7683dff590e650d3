/**
 * Limits with periods of one shard: the level in the period in force, and the part of a rebase that
 * opens it.
 *
 * A period is opened by the write that moves the base time, so a write that has seen the same base
 * time is in the same period. Inside a period nothing accrues: consumes and refunds add to the
 * balance and commute.
 */

import type { Rate } from "../../../core/bucket.ts";
import { type PeriodRule, type SessionRule, sameRule } from "../../../core/period-rule.ts";
import type { StoredBucket, StoredLimit } from "../../../records/bucket-item.ts";
import {
  levelAttributes,
  periodAttributesOf,
  ruleAttributes,
  type StoredPeriod,
} from "../../../records/period-attributes.ts";
import type { BucketConfig, SeenPeriod, SeenPeriods } from "../../leg.ts";
import {
  type Allowance,
  addedTo,
  allowanceOf,
  carriedInto,
  hasPeriods,
  isTimed,
  levelIn,
  type PeriodLevel,
  refunded,
  unusedLevel,
  withAllowance,
} from "../../periods.ts";
import { seenWindow } from "../../rates-in-time.ts";
import type { BucketRules } from "../table-traits.ts";
import type { WritePlan } from "./write-plan.ts";

/** The place of a shard: its number, and how many there are. */
export type Place = Pick<StoredBucket, "shard" | "shardCount">;

/** Returns the allowance of a shard. */
export function allowanceAt(place: Place, rate: Rate, rules?: BucketRules): Allowance {
  return allowanceOf(rate, place.shard, place.shardCount, rules?.periods);
}

/** Returns the level of a limit as it is stored; `undefined` where it has no periods. */
export function storedLevel(place: Place, stored: StoredLimit): PeriodLevel | undefined {
  const { period, tokensMilli, rate } = stored;
  if (period === undefined) return undefined;
  const { endMs, leftMilli, toppedUpMilli } = period;
  const allowance = allowanceAt(place, rate);
  const level = { tokensMilli, endMs, grantedMilli: 0, leftMilli };
  const grantedMilli = allowance.amountMilli + carriedInto(level, allowance) + toppedUpMilli;
  return { tokensMilli, endMs, grantedMilli, leftMilli };
}

/** Returns the limit as a call at that time would find it, in the period in force. */
export function storedAt(
  place: Place,
  stored: StoredLimit,
  nowMs: number,
  rules?: BucketRules,
): StoredLimit {
  const { period, rate } = stored;
  const level = storedLevel(place, stored);
  if (period === undefined || level === undefined || nowMs < period.endMs) return stored;
  const { tokensMilli, leftMilli, endMs } = levelIn(level, allowanceAt(place, rate, rules), nowMs);
  const isOpen = rate.rule?.kind === "quota";
  const next = { endMs: isOpen ? endMs : 0, leftMilli, toppedUpMilli: 0, isStored: false };
  return { ...stored, tokensMilli, period: next };
}

/** Whether the period of a limit is over. */
export function isOver({ period }: StoredLimit, nowMs: number): boolean {
  return period !== undefined && nowMs >= period.endMs;
}

/**
 * Divides a limit with periods among the shards of a split, the old one first, and opens the period
 * that is due. The new ones get an even part; what operators and earlier periods added stays.
 */
export function dividePeriod(
  plan: WritePlan,
  place: Place,
  name: string,
  stored: StoredLimit,
  factor: number,
  epochMs: number,
): readonly StoredLimit[] {
  const period = stored.period as StoredPeriod;
  const over = epochMs >= period.endMs;
  const isOpened = over && stored.rate.rule?.kind === "quota";
  const rest = Array.from({ length: factor - 1 });
  const moved = { totalConsumedMilli: 0, remainder: 0 };
  if (over && !isOpened) return [stored, ...rest.map(() => ({ ...stored, ...moved }))];
  const now = storedAt(place, stored, epochMs);
  const even = Math.floor(Math.max(0, now.tokensMilli) / factor);
  const takenMilli = even * (factor - 1);
  const fold = { name, stored, rate: stored.rate, countedMilli: 0, fromEndMs: undefined };
  foldPeriod(plan, place, { ...fold, takenMilli, isGate: true, epochMs });
  const kept = { ...(now.period as StoredPeriod), isStored: true };
  const fresh = { ...kept, leftMilli: 0, toppedUpMilli: 0 };
  return [
    { ...stored, tokensMilli: now.tokensMilli - takenMilli, period: kept },
    ...rest.map(() => ({ ...stored, ...moved, tokensMilli: even, period: fresh })),
  ];
}

/** Whether a write of these amounts opens a period: of a quota any write, of a session a use. */
export function mustOpen(
  bucket: Pick<StoredBucket, "limits">,
  amounts: ReadonlyMap<string, number>,
  nowMs: number,
): boolean {
  for (const [name, stored] of bucket.limits) {
    if (!isOver(stored, nowMs)) continue;
    if (stored.rate.rule?.kind === "quota" || (amounts.get(name) ?? 0) > 0) return true;
  }
  return false;
}

/**
 * Whether a session has ended since the base time. The write that moves it to the end or beyond
 * leaves the statement, so it comes before one that opens the next session without that.
 */
export function hasEnded({ limits, refilledAtMs }: StoredBucket, nowMs: number): boolean {
  for (const stored of limits.values()) {
    const isSession = stored.rate.rule?.kind === "session";
    if (isSession && isOver(stored, nowMs) && !isOver(stored, refilledAtMs)) return true;
  }
  return false;
}

/** Returns the period of a limit of a shard; `undefined` where it has none, or none has begun. */
export function periodOfShard(
  place: Place,
  stored: StoredLimit | undefined,
  nowMs: number,
  rules?: BucketRules,
): SeenPeriod | undefined {
  if (stored?.period === undefined) return undefined;
  const now = storedAt(place, stored, nowMs, rules);
  const level = storedLevel(place, now);
  if (level === undefined || level.endMs === 0) return undefined;
  return { endMs: level.endMs, grantedMilli: level.grantedMilli, atMs: nowMs };
}

/**
 * Returns the periods of the limits of a config in the shards of a bucket, summed. Where they
 * are in several, by the clocks and zones of several clients, the first shard says the end.
 * `unseen`: shards that this process takes to be full.
 */
export function periodsIn(
  shards: Iterable<StoredBucket>,
  { limits }: Pick<BucketConfig, "limits">,
  nowMs: number,
  rules?: BucketRules,
  unseen: readonly Place[] = [],
): SeenPeriods | undefined {
  if (!limits.some(({ rate }) => isTimed(rate))) return undefined;
  const all = [...shards];
  return limits.map(({ name, rate }) => {
    if (rate.schedule !== undefined) return seenWindow(rate, nowMs);
    if (!hasPeriods(rate)) return undefined;
    const seen = all.map((bucket) => sharePeriod(bucket, bucket.limits.get(name), nowMs, rules));
    const endMs = seen.find((share) => share.endMs !== undefined)?.endMs;
    const others = unseen.map((place) => allowanceAt(place, rate).amountMilli);
    const granted = [...seen.map((share) => share.grantedMilli), ...others];
    if (endMs !== undefined)
      return { endMs, grantedMilli: granted.reduce((one, other) => one + other, 0), atMs: nowMs };
    return all.length === 0 ? unusedPeriod(rate, nowMs) : undefined;
  });
}

/** Returns what a shard grants in its period; of a session that it is not in, its whole share. */
function sharePeriod(
  place: Place,
  stored: StoredLimit | undefined,
  nowMs: number,
  rules: BucketRules | undefined,
): Pick<PeriodLevel, "grantedMilli"> & Partial<Pick<PeriodLevel, "endMs">> {
  if (stored?.period === undefined) return { grantedMilli: 0 };
  const period = periodOfShard(place, stored, nowMs, rules);
  return period ?? { grantedMilli: allowanceAt(place, stored.rate).amountMilli };
}

/** Returns the period of a limit in a bucket that does not exist yet. */
function unusedPeriod(rate: Rate, atMs: number): SeenPeriod | undefined {
  const { endMs, grantedMilli } = unusedLevel(allowanceOf(rate), atMs);
  return endMs === 0 ? undefined : { endMs, grantedMilli, atMs };
}

/** The change of one limit with periods in a rebase. */
export interface PeriodFold {
  readonly name: string;
  readonly stored: StoredLimit;
  /** The rate from now on. */
  readonly rate: Rate;
  /** Milli-tokens to add to the total, and those that the balance loses. */
  readonly countedMilli: number;
  /** Below zero it is a refund of what was consumed in the period that ended at `fromEndMs`. */
  readonly takenMilli: number;
  readonly fromEndMs: number | undefined;
  /** Whether there must be enough. */
  readonly isGate: boolean;
  /** The new base time of the item. */
  readonly epochMs: number;
}

/** Plans one limit of a rebase, and returns its level before the consume. */
export function foldPeriod(
  plan: WritePlan,
  place: Place,
  fold: PeriodFold,
  rules?: BucketRules,
): PeriodLevel {
  const { name, stored, rate, countedMilli, isGate, epochMs } = fold;
  const takenMilli = Math.max(0, fold.takenMilli);
  const before = allowanceAt(place, stored.rate, rules);
  const level = levelWithRefund(place, fold, before);
  const rule = rate.rule as PeriodRule;
  const isQuota = rule.kind === "quota";
  const over = epochMs >= level.endMs;
  const opens = over && (isQuota || takenMilli > 0);
  const opened = opens ? levelIn(level, before, epochMs) : level;
  const isSame = rate.capacityMilli === stored.rate.capacityMilli && sameRule(rule, before.rule);
  const after = allowanceAt(place, rate, rules);
  const now = isSame ? opened : withAllowance(opened, before, after, epochMs);
  plan.add(`b_${name}_tc`, countedMilli);
  if (opens) {
    requireEnd(plan, name, stored);
    requireLeft(plan, name, stored, before);
    plan.set(`b_${name}_tk`, now.tokensMilli - takenMilli);
    setPeriod(plan, name, rule, storedFrom(now, after), place.shardCount);
  } else {
    changeInPeriod(plan, { name, stored, takenMilli, isGate }, now);
    setToppedUp(plan, name, stored, storedFrom(now, after));
  }
  if (!isSame) setRule(plan, name, stored.rate.rule, rule);
  if (!isSame && !opens && rule.kind === "session") setSessionEnd(plan, name, rule, now.endMs);
  return over && !opens ? levelIn(level, before, epochMs) : now;
}

/** Sets when a session began, from its end: with another length it would end later. */
function setSessionEnd(plan: WritePlan, name: string, rule: SessionRule, endMs: number): void {
  if (endMs !== 0) setSessionStart(plan, name, endMs - rule.seconds * 1000);
}

/** Sets when a session began: one that began its length ago is over. */
export function setSessionStart(plan: WritePlan, name: string, startMs: number): void {
  const { windowStart, windowApplied } = periodAttributesOf(name);
  plan.set(windowStart, startMs);
  plan.set(windowApplied, startMs);
}

/** Changes a balance in its period, and stores the end where it has moved. */
function changeInPeriod(
  plan: WritePlan,
  {
    name,
    stored,
    takenMilli,
    isGate,
  }: Pick<PeriodFold, "name" | "stored" | "takenMilli" | "isGate">,
  now: PeriodLevel,
): void {
  const tokens = `b_${name}_tk`;
  const change = now.tokensMilli - stored.tokensMilli;
  plan.add(tokens, change - takenMilli);
  setLeft(plan, name, stored, now);
  if (takenMilli > 0 && isGate) plan.atLeast(tokens, takenMilli - change);
  const { period, rate } = stored;
  if (rate.rule?.kind !== "quota") return;
  if (now.endMs !== period?.endMs || !period.isStored) {
    plan.set(periodAttributesOf(name).end, now.endMs);
  }
}

/** Returns the stored level with the refund of the write. */
function levelWithRefund(
  place: Place,
  { stored, takenMilli, fromEndMs }: Pick<PeriodFold, "stored" | "takenMilli" | "fromEndMs">,
  before: Allowance,
): PeriodLevel {
  const level = storedLevel(place, stored) as PeriodLevel;
  return takenMilli < 0 ? refunded(level, before, -takenMilli, fromEndMs) : level;
}

/** Refunds to one limit with periods; the whole item must be as it was seen. */
export function planPeriodRefund(
  plan: WritePlan,
  place: Place,
  { name, stored }: { readonly name: string; readonly stored: StoredLimit },
  amountMilli: number,
  fromEndMs: number | undefined,
): void {
  const before = allowanceAt(place, stored.rate);
  const level = levelWithRefund(place, { stored, takenMilli: -amountMilli, fromEndMs }, before);
  plan.add(`b_${name}_tc`, -amountMilli);
  plan.add(`b_${name}_tk`, level.tokensMilli - stored.tokensMilli);
  setLeft(plan, name, stored, level);
}

/** Sets what was left at the reset, where a late refund has changed it. */
function setLeft(
  plan: WritePlan,
  name: string,
  { period }: StoredLimit,
  { leftMilli }: PeriodLevel,
): void {
  const { left } = periodAttributesOf(name);
  replaceNumber(plan, left, period?.leftMilli ?? 0, leftMilli);
}

/** Sets the top-ups of a period, which differ under a rule with another carry. */
function setToppedUp(
  plan: WritePlan,
  name: string,
  { period }: StoredLimit,
  { toppedUpMilli }: StoredPeriod,
): void {
  const { toppedUp } = periodAttributesOf(name);
  replaceNumber(plan, toppedUp, period?.toppedUpMilli ?? 0, toppedUpMilli);
}

/** Sets a number that is another than was seen, which no other client may have changed. */
function replaceNumber(plan: WritePlan, name: string, before: number, after: number): void {
  if (after === before) return;
  plan.set(name, after);
  plan.requireNumber(name, before);
}

/** Requires that no other client has opened the next period. */
function requireEnd(plan: WritePlan, name: string, { period, rate }: StoredLimit): void {
  if (period === undefined || rate.rule === undefined) return;
  const { end, windowApplied } = periodAttributesOf(name);
  if (rate.rule.kind === "quota") {
    if (period.isStored) plan.require({ is: "=", name: end, value: period.endMs });
    return;
  }
  const value = period.endMs - rate.rule.seconds * 1000;
  plan.require(
    period.endMs === 0
      ? { is: "absent", name: windowApplied }
      : { is: "=", name: windowApplied, value },
  );
}

/** Requires the balance of a period that is over as it was seen, where a part of it is carried. */
function requireLeft(
  plan: WritePlan,
  name: string,
  { tokensMilli, period }: StoredLimit,
  { rule }: Allowance,
): void {
  if (rule.kind === "session" || rule.carry === "none") return;
  const { left } = periodAttributesOf(name);
  plan.require({ is: "=", name: `b_${name}_tk`, value: tokensMilli });
  plan.requireNumber(left, period?.leftMilli ?? 0);
}

/** Returns a level as it is stored. */
export function storedFrom(level: PeriodLevel, allowance: Allowance): StoredPeriod {
  const { endMs, leftMilli } = level;
  return { endMs, leftMilli, toppedUpMilli: addedTo(level, allowance), isStored: true };
}

/** Sets the attributes of a period, and removes those that it does not have. */
export function setPeriod(
  plan: WritePlan,
  name: string,
  rule: PeriodRule,
  period: StoredPeriod,
  shardCount: number,
): void {
  const written = levelAttributes(name, rule, period, shardCount);
  for (const [attribute, value] of Object.entries(written)) plan.set(attribute, value);
  const { left, toppedUp, end } = periodAttributesOf(name);
  plan.remove(left, toppedUp);
  if (rule.kind === "session") plan.remove(end, `b_${name}_wtc`);
}

/** Sets the attributes of a rule, and removes those of the rule before it. */
function setRule(
  plan: WritePlan,
  name: string,
  before: PeriodRule | undefined,
  rule: PeriodRule,
): void {
  const written = ruleAttributes(name, rule);
  for (const [attribute, value] of Object.entries(written)) plan.set(attribute, value);
  if (before === undefined) return;
  const { carry, zone } = periodAttributesOf(name);
  plan.remove(carry, zone);
}

/** Returns the names of all attributes that only limits with periods have. */
export function periodAttributeNames(name: string): readonly string[] {
  return [...Object.values(periodAttributesOf(name)), `b_${name}_wtc`, `b_${name}_rn`];
}
