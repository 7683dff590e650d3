/** Plans the write that consumes from one shard, or finds that the amounts do not fit. */

import { invariant } from "../../../domain/check.ts";
import { type ConfigMatch, matchConfig } from "../../config-match.ts";
import { amountsByName, fits, softNames, takenOf } from "../../gating.ts";
import type { BucketConfig } from "../../leg.ts";
import { type BalanceAt, balanceOf, balancesAt, mustRebase } from "./balance-at.ts";
import { planRebase, weighRebase } from "./rebase.ts";
import { builtFrom, type SeenBucket } from "./seen-bucket.ts";
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
  if (applies || mustRebase(bucket, nowMs)) {
    return planRebase(bucket, config, amountsMilli, context, applies);
  }
  const balances = balancesAt(bucket, nowMs);
  const balancesMilli = balancesIn(balances, config);
  if (!fits(config, amountsMilli, balancesMilli)) return { kind: "refused", balancesMilli };
  const amounts = amountsByName(config, amountsMilli);
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

/** The context with what the limits of a call say about debt and balances. */
export function withGates(context: PlanContext, config: BucketConfig): PlanContext {
  const soft = softNames(config);
  if (soft === undefined && config.bypass !== true) return context;
  return { ...context, soft, bypass: config.bypass === true };
}

/** What a consume would find in a shard; `undefined` when the limits of the call are outdated. */
export interface Weight {
  readonly balancesMilli: readonly number[];
  /** New limits that wait to be brought to the shard. */
  readonly limitsOnly: WritePlan | undefined;
}

export function weigh(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
): Weight | undefined {
  const match = matchOf(bucket, config);
  if (match === "outdated") return undefined;
  const applies = match === "apply";
  if (applies || mustRebase(bucket, context.nowMs)) {
    return weighRebase(bucket, config, context, applies);
  }
  const balances = balancesAt(bucket, context.nowMs);
  return { balancesMilli: balancesIn(balances, config), limitsOnly: undefined };
}

/** Config decides whether a resource is switched off: a stamp asks for it to be read again. */
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
