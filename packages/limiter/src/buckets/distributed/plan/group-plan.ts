/**
 * Plans the write that members of a group share: all that fit, first come, first served. A consume
 * that does not fit waits for the answer of those that do, and is decided by it; a later one of the
 * same size never overtakes it.
 *
 * A write that was planned later may be served before the one of a group, which then fails: at the
 * time of its plan the bucket was not full, and yet it will look full the next time.
 */

import { consumes, fits, sumOf, takenOf } from "../../gating.ts";
import type { BucketConfig } from "../../leg.ts";
import type { Member, Request, ShardWrite, Step } from "../consume/step.ts";
import { type ConsumePlan, planConsume } from "./consume-plan.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import type { PlanContext } from "./write-plan.ts";

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

/** How many of them count as an acquire: those that consume anything. */
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

/** Whether both tell balances relative to the same base time. */
function isSameBase(one: SeenBucket, other: SeenBucket): boolean {
  return (
    one.refilledAtMs === other.refilledAtMs &&
    one.rebases === other.rebases &&
    one.shardCount === other.shardCount
  );
}
