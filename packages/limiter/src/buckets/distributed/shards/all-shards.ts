/**
 * Decides from all shards of a bucket at once, after several of them had too little: one has enough
 * after all, or they give a part each, all parts in one transaction, or the members are refused.
 */

import type { Random } from "../../../base/random.ts";
import { invariant } from "../../../domain/check.ts";
import {
  effectiveLink,
  endsOf,
  exceeds,
  fits,
  gatesOf,
  linkIn,
  type ShardPart,
} from "../../leg.ts";
import type {
  History,
  Member,
  Request,
  Situation,
  SpreadWrite,
  Step,
  StepOutcome,
} from "../consume/step.ts";
import {
  askedAt,
  type Evaluation,
  evaluate,
  fitting,
  planConsume,
  planFor,
  writeStep,
} from "../plan/consume-plan.ts";
import { periodsIn } from "../plan/period-plan.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import { TRANSACTED_MS } from "../plan/writes-meter.ts";
import { atMostFull, fullBalances } from "../state/shard-balances.ts";
import { bornShards, missingShard, type ShardSet } from "./shards.ts";

const AGAIN: readonly Step[] = [];

/** Part that a shard would give. */
export interface Offer {
  readonly shard: number;
  /** Aligned with the limits of the call; below zero in debt. */
  readonly balancesMilli: readonly number[];
}

interface OpenOffer extends Offer, Evaluation {}

export function nextOfAll(
  request: Request,
  { sinceMs }: History,
  { shards, count }: Extract<StepOutcome, { of: "all" }>,
  situation: Situation,
): readonly Step[] {
  if (isStale(shards, count)) return AGAIN;
  const missing = missingShard(shards);
  if (missing !== undefined) return [{ do: "create-shard", shard: missing }];
  const born = bornShards(shards);
  const then = offersAt(request, born, sinceMs, situation);
  const now = offersAt(request, born, situation.nowMs, situation);
  if (then === undefined || now === undefined) {
    const answer = { kind: "outdated" } as const;
    return [{ do: "answer", answers: request.members.map((member) => ({ member, answer })) }];
  }
  const { nowMs } = situation;
  const sums = leastOf(request, then, now);
  const head = headOf(request, sums, then, now, nowMs);
  if (head === undefined) return refused(request, sums, now, nowMs);
  const { config } = request;
  const able = now.filter(({ balancesMilli }) => fits(config, head.amountsMilli, balancesMilli));
  const enough = oneOf(able, situation.random);
  if (enough === undefined) return spread(request, head, born, now, situation);
  return writeTo(request, born.get(enough.shard) as SeenBucket, situation);
}

/** Whether shards were created or merged while they were read. */
function isStale(shards: ShardSet<SeenBucket>, count: number): boolean {
  if (shards.get(0) === undefined) return true;
  for (const { shardCount } of shards.values()) if (shardCount > count) return true;
  return false;
}

/** Returns the part of each shard at a time; `undefined` when the limits are outdated. */
function offersAt(
  { config }: Request,
  shards: ShardSet<SeenBucket>,
  atMs: number,
  { nowMs, rules }: Situation,
): readonly OpenOffer[] | undefined {
  const offers: OpenOffer[] = [];
  for (const [shard, bucket] of shards) {
    const time = askedAt(atMs, bucket, nowMs);
    const context = { nowMs: time, rules, trustFull: () => true };
    const found = evaluate(bucket, config, context);
    if (found === undefined) return undefined;
    offers.push({ shard, ...found });
  }
  return offers;
}

/** Returns the sums when the group began; a window that has opened since may have cut them. */
function leastOf(
  { config }: Request,
  then: readonly OpenOffer[],
  now: readonly OpenOffer[],
): readonly number[] {
  const limits = config.limits.length;
  const present = offered(now, limits);
  return offered(then, limits).map((sum, at) => Math.min(sum, present[at] as number));
}

/**
 * Returns the first member for which all shards together had enough when the group began. Tokens
 * that accrue meanwhile belong to later calls: otherwise all callers of a scarce bucket would
 * compete for every token. Where all shards are full by now, nothing is scarce.
 */
function headOf(
  { config, members }: Request,
  sumsMilli: readonly number[],
  then: readonly OpenOffer[],
  now: readonly OpenOffer[],
  nowMs: number,
): Member | undefined {
  const [head] = fitting(members, sumsMilli, config);
  if (head !== undefined) return head;
  // A debt of one shard does not refuse what another one has.
  const served = members.find(({ amountsMilli }) =>
    then.some(
      ({ balancesMilli }, at) =>
        fits(config, amountsMilli, balancesMilli) &&
        fits(config, amountsMilli, (now[at] as Offer).balancesMilli),
    ),
  );
  if (served !== undefined) return served;
  const full = fullBalances(config, nowMs);
  return exceeds(full, offered(now, config.limits.length))
    ? undefined
    : fitting(members, full, config)[0];
}

function refused(
  { config, members }: Request,
  sumsMilli: readonly number[],
  now: readonly OpenOffer[],
  nowMs: number,
): readonly Step[] {
  const balancesMilli = atMostFull(sumsMilli, config, nowMs);
  const plans = now.flatMap(({ shard, limitsOnly: plan }) =>
    plan === undefined ? [] : [{ shard, plan }],
  );
  const answer = { kind: "refused", balancesMilli, local: false } as const;
  const end: Step = { do: "answer", answers: members.map((member) => ({ member, answer })) };
  return plans.length === 0 ? [end] : [{ do: "limits", plans, balancesMilli }, end];
}

function oneOf(offers: readonly OpenOffer[], random: Random): OpenOffer | undefined {
  return offers[Math.floor(random() * offers.length)];
}

function writeTo(request: Request, bucket: SeenBucket, situation: Situation): readonly Step[] {
  const { plan, going } = planFor(request, bucket, situation, () => true);
  if (plan.kind !== "write") return AGAIN;
  const how = { atMs: situation.nowMs, teaches: [], repeats: false };
  return [writeStep(bucket, plan, going, how)];
}

/** Consumes for one member alone, from as few shards as possible. */
function spread(
  { config }: Request,
  member: Member,
  shards: ShardSet<SeenBucket>,
  offers: readonly OpenOffer[],
  { nowMs, rules }: Situation,
): readonly Step[] {
  const writeOf = (part: ShardPart, at: number): SpreadWrite[] => {
    const bucket = shards.get(part.shard) as SeenBucket;
    const trustFull = () => true;
    // All parts together are one acquire.
    const once = { acquires: at === 0 ? 1 : 0, costMs: TRANSACTED_MS };
    const context = { nowMs, rules, trustFull, ...once };
    const plan = planConsume(bucket, config, part.amountsMilli, context);
    const link = effectiveLink(linkIn(bucket), config.cascade);
    if (plan.kind !== "write") return [];
    // Another client, whose clock or zone differs, may have opened the next period of one shard.
    const endsMs = endsOf(periodsIn([bucket], config, nowMs, rules));
    return [{ part: { ...part, endsMs }, plan: plan.plan, link }];
  };
  const parts = spreadOver(member.amountsMilli, offers, gatesOf(config, member.amountsMilli));
  const writes = parts.flatMap(writeOf);
  if (writes.length < parts.length) return AGAIN;
  const periods = periodsIn(shards.values(), config, nowMs, rules);
  return [{ do: "spread", member, writes, periods }];
}

/** Returns the sums over all shards, those in debt included. */
export function offered(offers: readonly Offer[], limits: number): readonly number[] {
  return Array.from({ length: limits }, (_, at) =>
    offers.reduce((sum, { balancesMilli }) => sum + (balancesMilli[at] as number), 0),
  );
}

/**
 * Returns the parts, from as few shards as possible; there must be enough in all of them together
 * of what can be refused (`gatesMilli`). The rest, which may go into debt, comes from the first
 * shard.
 */
export function spreadOver(
  amountsMilli: readonly number[],
  offers: readonly Offer[],
  gatesMilli: readonly number[] = amountsMilli,
): readonly ShardPart[] {
  const order = [...offers].sort(
    (left, right) => worth(right, gatesMilli) - worth(left, gatesMilli),
  );
  const missing = gatesMilli.map((amount) => Math.max(0, amount));
  const parts: ShardPart[] = [];
  for (const { shard, balancesMilli } of order) {
    const part = missing.map((amount, at) =>
      Math.min(amount, Math.max(0, balancesMilli[at] as number)),
    );
    if (part.every((amount) => amount === 0)) continue;
    part.forEach((amount, at) => {
      missing[at] = (missing[at] as number) - amount;
      invariant((missing[at] as number) >= 0, "no part is more than what is missing");
    });
    parts.push({ shard, amountsMilli: part });
  }
  const [first, ...others] = parts;
  if (first === undefined || gatesMilli === amountsMilli) return parts;
  const rest = first.amountsMilli.map(
    (amount, at) => amount + (amountsMilli[at] as number) - (gatesMilli[at] as number),
  );
  return [{ shard: first.shard, amountsMilli: rest }, ...others];
}

/** Returns the part of the scarcest amount that a shard could give. */
function worth({ balancesMilli }: Offer, amountsMilli: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY;
  amountsMilli.forEach((amount, at) => {
    if (amount > 0) least = Math.min(least, (balancesMilli[at] as number) / amount);
  });
  return least;
}
