/** Plans the write that adjusts one shard after it was consumed from. */

import { invariant } from "../../../domain/check.ts";
import { amountsByName, type BucketConfig, consumes, takenOf } from "../../leg.ts";
import { type ConsumePlan, withGates } from "./consume-plan.ts";
import { planRebase } from "./rebase.ts";
import { balancesAt, mustRebase, type SeenBucket } from "./seen-bucket.ts";
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

/**
 * Plans a change after the fact, of the limits the item still has. A refund needs to know nothing
 * of the item; consuming more is a consume without the lower bound.
 */
export function planAdjust(
  bucket: SeenBucket,
  config: BucketConfig,
  deltasMilli: readonly number[],
  context: PlanContext,
): ConsumePlan {
  invariant(deltasMilli.length <= config.limits.length, "every delta belongs to a limit");
  const { nowMs, rules, trustFull, acquires, costMs } = context;
  const force = true;
  const forced = withGates({ nowMs, rules, trustFull, acquires, costMs, force }, config);
  const takes = consumes(takenOf(config, deltasMilli));
  if (takes && mustRebase(bucket, nowMs)) {
    return planRebase(bucket, config, deltasMilli, forced, false);
  }
  const balances = balancesAt(bucket, nowMs);
  const amounts = amountsByName(config, deltasMilli);
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  for (const [name, amount] of amounts) {
    const balance = balances.get(name);
    if (balance === undefined || amount === 0) continue;
    guesses.push(planLimit(plan, name, balance, amount, forced));
  }
  if (plan.isEmpty) return { kind: "nothing", balancesMilli: [] };
  countAcquires(plan, deltasMilli, forced);
  if (takes) {
    const ttl = planTtl(plan, bucket, config, leftOf(balances, amounts), context);
    requireCovered(plan, bucket, balances, amounts, ttl, forced);
    plan.requireSeen(bucket, nowMs);
    if (isMetered(context)) meterWrite(plan, bucket, nowMs, context.costMs);
  }
  return { kind: "write", plan, guesses };
}
