/**
 * A write that moves the base time to now: when the limits change, when the base time is old or
 * lies in the future, or when the arithmetic would leave the safe integers. It folds the accrued
 * tokens of every limit in, and the consume that made it necessary goes along in the same write.
 *
 * The new base time never lies before the old one, unless that one is far ahead: of two clients
 * whose clocks differ, the slower one must not count again, at another rate, the time that the
 * faster one has folded in. Cached states are distinguished by their base time, so rebases to the
 * same one are numbered.
 */

import { invariant } from "../../../domain/check.ts";
import { appliesAnyway } from "../../config-match.ts";
import {
  type AmountsByName,
  amountsByName,
  type BucketConfig,
  fits,
  type LimitSource,
  takenOf,
} from "../../leg.ts";
import type { BucketRules } from "../table-traits.ts";
import type { ConsumePlan, Evaluation } from "./consume-plan.ts";
import { Rebase } from "./rebase-limits.ts";
import { builtFrom, type SeenBucket } from "./seen-bucket.ts";
import {
  countAcquires,
  type PlanContext,
  planTtl,
  requireCovered,
  requireEnabled,
  type WritePlan,
} from "./write-plan.ts";

/** Plans a rebase with a consume. `applies`: the bucket takes the limits of the config. */
export function planRebase(
  bucket: SeenBucket,
  config: BucketConfig,
  amountsMilli: readonly number[],
  context: PlanContext,
  applies: boolean,
): ConsumePlan {
  const amounts = amountsByName(config, amountsMilli);
  const rebase = rebaseOf(bucket, config, amounts, context, applies);
  const balancesMilli = rebase.balancesBefore(config);
  if (context.force !== true && !fits(config, amountsMilli, balancesMilli)) {
    const limitsOnly = limitsAlone(bucket, config, context, applies);
    return { kind: "refused", balancesMilli, limitsOnly };
  }
  const { plan } = rebase;
  countAcquires(plan, amountsMilli, context);
  rebase.moveEpoch();
  rebase.setValidUntil();
  if (applies) setOrigin(plan, bucket, config);
  const taken = amountsByName(config, takenOf(config, amountsMilli));
  const ttl = planTtl(plan, bucket, config, rebase.leftOver(taken), context);
  requireCovered(plan, bucket, rebase.balances, taken, ttl, context);
  plan.requireSeen(bucket, context.nowMs);
  if (context.force !== true) requireEnabled(plan, bucket);
  return { kind: "write", plan, guesses: [] };
}

/** Returns the balances that a consume with a rebase would find. */
export function evaluateRebase(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
  applies: boolean,
): Evaluation {
  const rebase = rebaseOf(bucket, config, new Map(), context, applies);
  return {
    balancesMilli: rebase.balancesBefore(config),
    limitsOnly: limitsAlone(bucket, config, context, applies),
  };
}

/** Plans the write that opens the periods of a bucket that are due, and consumes nothing. */
export function planOpening(bucket: SeenBucket, nowMs: number, rules: BucketRules): WritePlan {
  const source = (bucket.configSource ?? "override") as LimitSource;
  const config = { limits: [], source, version: bucket.configVersion };
  const context = { nowMs, rules, trustFull: () => true, force: true, acquires: 0 };
  const plan = planRebase(bucket, config, [], context, false);
  invariant(plan.kind === "write", "what is not checked is not refused");
  return plan.plan;
}

/** Returns the write that only applies the limits of the config, where a refusal applies them. */
function limitsAlone(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
  applies: boolean,
): WritePlan | undefined {
  if (!applies || !appliesAnyway(builtFrom(bucket), config)) return undefined;
  const nothing = config.limits.map(() => 0);
  const plan = planRebase(bucket, config, nothing, { ...context, acquires: 0 }, true);
  return plan.kind === "write" ? plan.plan : undefined;
}

function rebaseOf(
  bucket: SeenBucket,
  config: BucketConfig,
  amounts: AmountsByName,
  context: PlanContext,
  applies: boolean,
): Rebase {
  const rebase = new Rebase(bucket, context);
  if (applies) rebase.apply(config, amounts);
  else rebase.keep(amounts);
  return rebase;
}

/**
 * Limits that came with a call leave the version alone: the stored config still counts from there.
 * The version is never lowered, although the counter may be: a client with older limits cached
 * under a higher version would bring them back.
 */
function setOrigin(plan: WritePlan, bucket: SeenBucket, { source, version }: BucketConfig): void {
  if (source !== "override" && version > bucket.configVersion) plan.set("cv", version);
  plan.set("cs", source);
}
