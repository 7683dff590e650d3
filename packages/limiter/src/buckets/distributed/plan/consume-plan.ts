/**
 * Plans the write that consumes from one shard for the members of a group, or finds that the
 * amounts do not fit.
 *
 * All members that fit share the write, first come, first served. One that does not fit waits for
 * the answer of those that do, and is decided by it; a later one of the same size never overtakes
 * it. A write that was planned later may be served before the one of a group, which then fails: at
 * the time of its plan the bucket was not full, and yet it will seem full the next time.
 */

import { invariant } from "../../../domain/check.ts";
import { type ConfigMatch, matchConfig } from "../../config-match.ts";
import {
  amountsByName,
  type BucketConfig,
  consumes,
  fits,
  NO_AMOUNTS,
  softNames,
  sumOf,
  takenOf,
} from "../../leg.ts";
import type { Member, Request, ShardWrite, Step } from "../consume/step.ts";
import { mustOpen } from "./period-plan.ts";
import { evaluateRebase, planRebase } from "./rebase.ts";
import {
  type BalanceAt,
  balanceOf,
  balancesAt,
  builtFrom,
  mustRebase,
  type SeenBucket,
} from "./seen-bucket.ts";
import {
  countAcquires,
  type Guess,
  isStampedDisabled,
  leftOf,
  type PlanContext,
  planLimit,
  planTtl,
  requireCovered,
  requireEnabled,
  WritePlan,
} from "./write-plan.ts";
import { isMetered, meterWrite } from "./writes-meter.ts";

export type ConsumePlan =
  | { readonly kind: "outdated" }
  | {
      readonly kind: "refused";
      readonly balancesMilli: readonly number[];
      /** The bucket takes the limits of the call all the same, by this write. */
      readonly limitsOnly?: WritePlan | undefined;
    }
  /** Nothing is consumed, so nothing is written. */
  | { readonly kind: "nothing"; readonly balancesMilli: readonly number[] }
  | {
      readonly kind: "write";
      readonly plan: WritePlan;
      readonly guesses: readonly Guess[];
    };

export function planConsume(
  bucket: SeenBucket,
  config: BucketConfig,
  amountsMilli: readonly number[],
  given: PlanContext,
): ConsumePlan {
  const context = withGates(given, config);
  const match = matchOf(bucket, config);
  if (match === "outdated") return { kind: "outdated" };
  const { nowMs } = context;
  const applies = match === "apply";
  const amounts = amountsByName(config, amountsMilli);
  // Under bypass balances stay as they are, and so does the time that they refer to.
  const isOld = context.bypass !== true && mustRebase(bucket, nowMs);
  if (applies || isOld || mustOpen(bucket, amounts, nowMs)) {
    return planRebase(bucket, config, amountsMilli, context, applies);
  }
  const balances = balancesAt(bucket, nowMs);
  const balancesMilli = balancesIn(balances, config);
  if (!fits(config, amountsMilli, balancesMilli)) return { kind: "refused", balancesMilli };
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  for (const [name, amount] of amounts) {
    invariant(amount >= 0, "only an adjustment refunds");
    if (amount === 0) continue;
    guesses.push(planLimit(plan, name, balances.get(name) as BalanceAt, amount, context));
  }
  const expired = bucket.ttl !== undefined && bucket.ttl * 1000 <= nowMs;
  if (plan.isEmpty && !expired) return { kind: "nothing", balancesMilli };
  countAcquires(plan, amountsMilli, context);
  const takenMilli = takenOf(config, amountsMilli);
  const taken = takenMilli === amountsMilli ? amounts : amountsByName(config, takenMilli);
  const ttl = planTtl(plan, bucket, config, leftOf(balances, taken), context);
  requireCovered(plan, bucket, balances, taken, ttl, context);
  plan.requireSeen(bucket, nowMs);
  requireEnabled(plan, bucket);
  if (isMetered(context)) meterWrite(plan, bucket, nowMs, context.costMs);
  return { kind: "write", plan, guesses };
}

/** Returns the context with what the limits of a call say about debt and balances. */
export function withGates(context: PlanContext, config: BucketConfig): PlanContext {
  const soft = softNames(config);
  if (soft === undefined && config.bypass !== true) return context;
  return { ...context, soft, bypass: config.bypass === true };
}

/** Balances that a consume would find in a shard. */
export interface Evaluation {
  readonly balancesMilli: readonly number[];
  /** New limits that wait to be brought to the shard. */
  readonly limitsOnly: WritePlan | undefined;
}

export function evaluate(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
): Evaluation | undefined {
  const match = matchOf(bucket, config);
  if (match === "outdated") return undefined;
  const applies = match === "apply";
  if (applies || mustRebase(bucket, context.nowMs) || mustOpen(bucket, NO_AMOUNTS, context.nowMs)) {
    return evaluateRebase(bucket, config, context, applies);
  }
  const balances = balancesAt(bucket, context.nowMs);
  return { balancesMilli: balancesIn(balances, config), limitsOnly: undefined };
}

/**
 * Compares bucket and config. Config decides what is switched off: a stamp asks to read it again.
 */
function matchOf(bucket: SeenBucket, config: BucketConfig): ConfigMatch {
  if (isStampedDisabled(bucket) && config.forced !== true) return "outdated";
  return matchConfig(builtFrom(bucket), config);
}

function balancesIn(
  balances: ReadonlyMap<string, BalanceAt>,
  { limits }: BucketConfig,
): readonly number[] {
  return limits.map(({ name }) => {
    const balance = balances.get(name);
    invariant(balance !== undefined, "a bucket that matches a config has all its limits");
    return balanceOf(balance);
  });
}

type Part = Pick<Member, "amountsMilli">;

/**
 * The most consumes that share a write: if its answer is lost, the outcome of all of them is
 * unknown, and all of them stay consumed.
 */
export const GROUP_MAX = 256;

/** Returns the parts that fit behind the ones before them. */
export function fitting<T extends Part>(
  parts: readonly T[],
  balancesMilli: readonly number[],
  config: BucketConfig,
): T[] {
  const left = [...balancesMilli];
  const fit: T[] = [];
  for (const part of parts) {
    if (!fits(config, part.amountsMilli, left)) continue;
    fit.push(part);
    const takenMilli = takenOf(config, part.amountsMilli);
    for (let at = 0; at < left.length; at += 1) {
      left[at] = (left[at] as number) - (takenMilli[at] ?? 0);
    }
  }
  return fit;
}

/** Counts the parts that are acquires: those that consume anything. */
export function acquiresOf(parts: readonly Part[]): number {
  let acquires = 0;
  for (const { amountsMilli } of parts) if (consumes(amountsMilli)) acquires += 1;
  return acquires;
}

/** Returns what each part leaves, given what the last one leaves: they were served in order. */
export function balancesAfterEach(
  parts: readonly Part[],
  balancesMilli: readonly number[],
  config: BucketConfig,
): readonly (readonly number[])[] {
  if (parts.length === 1) return [balancesMilli];
  const after = new Array<readonly number[]>(parts.length);
  let left = balancesMilli;
  for (let at = parts.length - 1; at >= 0; at -= 1) {
    after[at] = left;
    const takenMilli = takenOf(config, (parts[at] as Part).amountsMilli);
    left = left.map((balance, limit) => balance + (takenMilli[limit] ?? 0));
  }
  return after;
}

export interface PlannedGroup {
  readonly plan: ConsumePlan;
  readonly going: readonly Member[];
}

/** Plans the write of all members, or else of those that fit. */
export function planFor(
  { config, members }: Request,
  bucket: SeenBucket,
  { nowMs, rules }: Pick<PlanContext, "nowMs" | "rules">,
  trustFull: PlanContext["trustFull"],
): PlannedGroup {
  const planOf = (some: readonly Member[]) => {
    const acquires = acquiresOf(some);
    return planConsume(bucket, config, sumOf(some), { nowMs, rules, trustFull, acquires });
  };
  const plan = planOf(members);
  if (plan.kind !== "refused" || members.length === 1) return { plan, going: members };
  const going = fitting(members, plan.balancesMilli, config);
  return going.length === 0 ? { plan, going } : { plan: planOf(going), going };
}

export function writeStep(
  from: SeenBucket,
  { plan, guesses }: Extract<ConsumePlan, { kind: "write" }>,
  members: readonly Member[],
  { atMs, teaches, repeats }: Pick<ShardWrite, "atMs" | "teaches" | "repeats">,
): Step {
  const { shard } = from;
  return {
    do: "write",
    write: { shard, members, plan, guesses, teaches, from, atMs, repeats },
  };
}

/**
 * Returns the time that decides: when the item was requested. Counting the time that the answer
 * took would keep all clients of a scarce bucket asking until one of them gives up. About the time
 * before its base time, which a split or other limits have moved, a bucket says nothing.
 */
export function askedAt(askedMs: number, { refilledAtMs }: SeenBucket, nowMs: number): number {
  return Math.min(nowMs, Math.max(askedMs, refilledAtMs));
}

/** Whether a bucket that had too little is full by now: a late call does not compete for tokens. */
export function isFullNow(
  { config, members }: Request,
  bucket: SeenBucket,
  { nowMs, rules }: Pick<PlanContext, "nowMs" | "rules">,
): boolean {
  const [first] = members;
  if (first === undefined) return false;
  const trustFull = () => true;
  const context = { nowMs, rules, trustFull };
  const plan = planConsume(bucket, config, first.amountsMilli, context);
  return plan.kind === "write" && plan.guesses.every(({ full }) => full);
}

/**
 * Whether to send the write once more for the same time. At that time the bucket is below full, and
 * a write that comes in between was planned later still.
 */
export function repeatsOvertaken(
  overtaken: ShardWrite | undefined,
  bucket: SeenBucket,
  { guesses }: Extract<ConsumePlan, { kind: "write" }>,
): boolean {
  if (overtaken === undefined || overtaken.repeats) return false;
  if (!isSameBase(overtaken.from, bucket)) return false;
  return guesses.length > 0 && guesses.every(({ full }) => !full);
}

/** Returns whether the balances of both refer to the same base time. */
function isSameBase(one: SeenBucket, other: SeenBucket): boolean {
  return (
    one.refilledAtMs === other.refilledAtMs &&
    one.rebases === other.rebases &&
    one.shardCount === other.shardCount
  );
}
