/**
 * Plans a change after the fact, of the limits the item still has. A refund needs to know nothing
 * of the item; consuming more is a consume without the lower bound.
 */

import { invariant } from "../../domain/check.ts";
import { takenOf } from "../gating.ts";
import type { BucketConfig } from "../leg.ts";
import { balancesAt } from "./balance-at.ts";
import { type ConsumePlan, withGates } from "./consume-plan.ts";
import {
  amountsByName,
  consumes,
  countAcquires,
  type Guess,
  leftOf,
  type PlanContext,
  planLimit,
  planTtl,
  requireCovered,
} from "./limit-plan.ts";
import { mustRebase, planRebase } from "./rebase.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import { WritePlan } from "./write-plan.ts";
import { meterWrite } from "./writes-meter.ts";

export function planAdjust(
  bucket: SeenBucket,
  config: BucketConfig,
  deltasMilli: readonly number[],
  context: PlanContext,
): ConsumePlan {
  invariant(deltasMilli.length <= config.limits.length, "every delta belongs to a limit");
  const { nowMs } = context;
  const forced = withGates({ ...context, force: true }, config);
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
    meterWrite(plan, bucket, nowMs, context.costMs);
  }
  return { kind: "write", plan, guesses };
}
