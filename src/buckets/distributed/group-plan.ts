/** Plans the write that members of a group share. */

import { acquiresOf, fitting, sumOf } from "./combining.ts";
import { type ConsumePlan, planConsume } from "./consume-plan.ts";
import type { PlanContext } from "./limit-plan.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import type { Member, Request, Step } from "./step.ts";

export interface PlannedGroup {
  readonly plan: ConsumePlan;
  readonly going: readonly Member[];
}

/** Plans the write of all members, or else of those that fit. */
export function planFor(
  { config, members }: Request,
  bucket: SeenBucket,
  { nowMs, ttlMultiplier, trustFull }: Omit<PlanContext, "acquires">,
): PlannedGroup {
  const planOf = (some: readonly Member[]) => {
    const acquires = acquiresOf(some);
    return planConsume(bucket, config, sumOf(some), { nowMs, ttlMultiplier, trustFull, acquires });
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
  how: { atMs: number; teaches: typeof guesses; repeats: boolean },
): Step {
  return { do: "write", write: { shard: from.shard, members, plan, guesses, from, ...how } };
}
