/** Plans the write that adjusts one shard after it was consumed from. */

import { hasSlots } from "../../../core/bucket.ts";
import { invariant } from "../../../domain/check.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import {
  type AmountsByName,
  amountsByName,
  type BucketConfig,
  consumes,
  type PeriodEnds,
  takenOf,
} from "../../leg.ts";
import { type ConsumePlan, withGates } from "./consume-plan.ts";
import { mustOpen, planPeriodRefund } from "./period-plan.ts";
import { planRebase } from "./rebase.ts";
import { type BalanceAt, balancesAt, mustRebase, type SeenBucket } from "./seen-bucket.ts";
import {
  countAcquires,
  type Guess,
  leftOf,
  type PlanContext,
  planLimit,
  planTtl,
  requireCovered,
  WritePlan,
} from "./write-plan.ts";
import { isMetered, meterWrite } from "./writes-meter.ts";

function endsByName(
  { limits }: BucketConfig,
  endsMs: PeriodEnds | undefined,
): ReadonlyMap<string, number> | undefined {
  if (endsMs === undefined) return undefined;
  const ends = new Map<string, number>();
  limits.forEach(({ name }, at) => {
    const endMs = endsMs[at];
    if (endMs !== undefined) ends.set(name, endMs);
  });
  return ends;
}

/**
 * Plans a change after the fact, of the limits the item still has. A refund needs to know nothing
 * of the item; consuming more is a consume without the lower bound.
 */
export function planAdjust(
  bucket: SeenBucket,
  config: BucketConfig,
  deltasMilli: readonly number[],
  context: PlanContext,
  endsMs?: PeriodEnds,
): ConsumePlan {
  invariant(deltasMilli.length <= config.limits.length, "every delta belongs to a limit");
  const { nowMs, rules, trustFull, acquires, costMs } = context;
  const force = true;
  const fromEndsMs = endsByName(config, endsMs);
  const given = { nowMs, rules, trustFull, acquires, costMs, force, fromEndsMs };
  const forced = withGates(given, config);
  const takes = consumes(takenOf(config, deltasMilli));
  const amounts = amountsOf(bucket, config, deltasMilli);
  if (takes && (mustRebase(bucket, nowMs) || mustOpen(bucket, amounts, nowMs))) {
    return planRebase(bucket, config, deltasMilli, forced, false);
  }
  const plan = new WritePlan();
  const balances = balancesAt(bucket, nowMs);
  const guesses = planAmounts(plan, bucket, balances, amounts, forced);
  if (plan.isEmpty) return { kind: "nothing", balancesMilli: [] };
  countAcquires(plan, deltasMilli, forced);
  if (takes) {
    const ttl = planTtl(plan, bucket, config, leftOf(balances, amounts), context);
    requireCovered(plan, bucket, balances, amounts, ttl, forced);
    plan.requireSeen(bucket, nowMs);
    if (isMetered(context)) meterWrite(plan, bucket, nowMs, context.costMs);
  } else if (mayExpireAgain(bucket, plan)) {
    const ttl = planTtl(plan, bucket, config, leftOf(balances, amounts), context);
    requireCovered(plan, bucket, balances, amounts, ttl, forced);
    if (ttl !== undefined) plan.requireSeen(bucket, nowMs);
  } else if (hasPeriodIn(bucket, amounts)) {
    // Another client may have opened the next period: then other rules hold for a refund.
    plan.requireSeen(bucket, nowMs);
  }
  return { kind: "write", plan, guesses };
}

/** Returns the amounts by name; none of a limit that has slots by now, or had them before. */
function amountsOf(
  { limits }: SeenBucket,
  config: BucketConfig,
  deltasMilli: readonly number[],
): AmountsByName {
  const isSame = ({ name, rate }: BucketConfig["limits"][number]) => {
    const stored = limits.get(name);
    return stored === undefined || hasSlots(stored.rate) === hasSlots(rate);
  };
  if (config.limits.every(isSame)) return amountsByName(config, deltasMilli);
  const kept = config.limits.map((limit, at) => (isSame(limit) ? (deltasMilli[at] ?? 0) : 0));
  return amountsByName(config, kept);
}

/** Whether slots go back to a bucket that stays because some are held. */
function mayExpireAgain({ ttl, shardCount }: SeenBucket, { slots }: WritePlan): boolean {
  return slots !== undefined && ttl === undefined && shardCount === 1;
}

/** Whether an amount goes back to a limit with periods, and not only off the total. */
function isPeriodRefund({ period }: StoredLimit, amount: number, { bypass }: PlanContext): boolean {
  return period !== undefined && amount < 0 && bypass !== true;
}

/** Plans the change of each limit that the item still has. */
function planAmounts(
  plan: WritePlan,
  bucket: SeenBucket,
  balances: ReadonlyMap<string, BalanceAt>,
  amounts: AmountsByName,
  context: PlanContext,
): readonly Guess[] {
  const guesses: Guess[] = [];
  for (const [name, amount] of amounts) {
    const balance = balances.get(name);
    const stored = bucket.limits.get(name);
    if (balance === undefined || stored === undefined || amount === 0) continue;
    if (isPeriodRefund(stored, amount, context)) {
      const fromEndMs = context.fromEndsMs?.get(name);
      planPeriodRefund(plan, bucket, { name, stored }, -amount, fromEndMs);
    } else {
      guesses.push(planLimit(plan, name, balance, amount, context));
    }
  }
  return guesses;
}

/** Whether a limit with periods is among those that change. */
function hasPeriodIn({ limits }: SeenBucket, amounts: AmountsByName): boolean {
  for (const [name, amount] of amounts) {
    if (amount !== 0 && limits.get(name)?.period !== undefined) return true;
  }
  return false;
}
