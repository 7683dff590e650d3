/**
 * Decides what a group of consumes does next, from what this process knows of the bucket and from
 * what has come of the group so far. Pure: the driver does what it says.
 *
 * One shard, picked by its cached state, nearly always decides. Only a state that the store has
 * shown refuses. When the shard has too little, others are tried; when none has enough, all are
 * read, and either they give a part each or the consume is refused.
 */

import { invariant } from "../../../domain/check.ts";
import { pauseMs } from "../../gathering.ts";
import { effectiveLink, linkIn } from "../../leg.ts";
import { partOf } from "../../slots/slot-amounts.ts";
import {
  askedAt,
  balancesAfterEach,
  fitting,
  isFullNow,
  type PlannedGroup,
  planFor,
  repeatsOvertaken,
  writeStep,
} from "../plan/consume-plan.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import { isSaturated } from "../plan/writes-meter.ts";
import { nextOfAll } from "../shards/all-shards.ts";
import { pickShard } from "../shards/shard-choice.ts";
import { balancesOf, fullBalances } from "../state/shard-balances.ts";
import type {
  AnsweredMember,
  History,
  Member,
  Request,
  Situation,
  Step,
  StepOutcome,
} from "./step.ts";

export function next(request: Request, history: History, situation: Situation): readonly Step[] {
  invariant(request.members.length > 0, "a group without members has nothing to decide");
  const { last } = history;
  if (last === undefined) return begin(request, history, situation);
  const ms = history.rested ? 0 : pauseMs(history.rounds, situation.random);
  if (ms > 0) return [{ do: "wait", ms }];
  switch (last.of) {
    case "shown":
      return nextOfShown(request, last, situation);
    case "written":
      return afterWrite(request, last, situation);
    case "created":
      return [{ do: "answer", answers: created(request, last, situation) }];
    case "all":
      return nextOfAll(request, history, last, situation);
    case "spread":
      return [{ do: "answer", answers: [spreadAnswer(request, last, situation)] }];
    case "limits":
      return refusedBy(request, last.shard, last.balancesMilli, situation);
    case "throttled":
      return situation.isProbed(last.shard)
        ? afterThrottling(request, last.cause, situation)
        : [{ do: "probe", shard: last.shard, cause: last.cause }];
    case "probed":
      return afterThrottling(request, last.cause, situation);
    default:
      return begin(request, history, situation);
  }
}

/** Decides from what is known of the bucket. */
function begin(request: Request, history: History, situation: Situation): readonly Step[] {
  const { name, config, members } = request;
  const { states, nowMs, random } = situation;
  const first = states.of(name, 0);
  const refused = request.isCleared === true ? [] : refusedLocally(request, situation, first);
  if (refused.length > 0) return [{ do: "answer", answers: refused }];
  const count = states.countOf(name, first) ?? 1;
  const { amountsMilli } = members[0] as Member;
  const wanted = { name, config, amountsMilli, count, tried: history.tried };
  const shard = count === 1 ? 0 : pickShard(wanted, states, nowMs, random);
  if (shard === undefined) return [{ do: "read-all", count }];
  const state = shard === 0 ? first : states.of(name, shard);
  if (state === undefined || (state.bucket === undefined && shard > 0)) {
    return [{ do: "read", shard }];
  }
  if (state.bucket === undefined) return nextOfNothing(request, false, situation);
  if (situation.needsRepair(state.bucket)) return [{ do: "repair", bucket: state.bucket }];
  const trustFull = states.trustsFull(name, shard);
  const { plan, going } = planFor(request, state.bucket, situation, trustFull);
  if (plan.kind !== "write") return [{ do: "read", shard }];
  const teaches = plan.guesses.filter(({ lookedFull }) => lookedFull);
  return [writeStep(state.bucket, plan, going, { atMs: nowMs, teaches, repeats: false })];
}

/** Returns the answers to members that cached states refuse. */
function refusedLocally(
  { name, config, members }: Request,
  { states, nowMs }: Situation,
  first = states.of(name, 0),
): AnsweredMember[] {
  const known = states.refused(name, config, members, nowMs, first);
  if (known === undefined) return [];
  const { refused, sumsMilli: balancesMilli } = known;
  return refused.map((member) => ({
    member,
    answer: { kind: "refused", balancesMilli, local: true },
  }));
}

/** Decides from a shard that the store has shown in the course of this group. */
function nextOfShown(
  request: Request,
  shown: Extract<StepOutcome, { of: "shown" }>,
  situation: Situation,
): readonly Step[] {
  const { shard, bucket, overtaken } = shown;
  if (bucket === undefined) {
    return shard > 0 ? [{ do: "create-shard", shard }] : nextOfNothing(request, true, situation);
  }
  if (situation.needsRepair(bucket)) return [{ do: "repair", bucket }];
  const { nowMs, rules } = situation;
  const atMs = askedAt(shown.askedMs, bucket, nowMs);
  const then = planFor(request, bucket, { nowMs: atMs, rules }, always);
  if (then.plan.kind === "refused" && !isFullNow(request, bucket, situation)) {
    const { balancesMilli, limitsOnly } = then.plan;
    if (limitsOnly !== undefined) {
      return [{ do: "limits", plans: [{ shard, plan: limitsOnly }], balancesMilli }];
    }
    return refusedBy(request, shard, balancesMilli, situation, bucket);
  }
  if (then.plan.kind === "write" && repeatsOvertaken(overtaken, bucket, then.plan)) {
    return [writeStep(bucket, then.plan, then.going, { atMs, teaches: [], repeats: true })];
  }
  const now = atMs === nowMs ? then : planFor(request, bucket, situation, always);
  return nextOfPlan(request, bucket, now, situation);
}

/** Decides by a plan from a state that the store has shown. */
function nextOfPlan(
  request: Request,
  bucket: SeenBucket,
  { plan, going }: PlannedGroup,
  situation: Situation,
): readonly Step[] {
  switch (plan.kind) {
    case "write":
      return [
        writeStep(bucket, plan, going, { atMs: situation.nowMs, teaches: [], repeats: false }),
      ];
    case "nothing":
      return [{ do: "answer", answers: unwritten(request, bucket, situation) }];
    case "outdated":
      return [{ do: "answer", answers: outdated(request) }];
    default:
      return refusedBy(request, bucket.shard, plan.balancesMilli, situation, bucket);
  }
}

/** Refuses by a bucket with one shard; of several shards another one may have enough. */
function refusedBy(
  { name, members }: Request,
  shard: number,
  balancesMilli: readonly number[],
  { states }: Situation,
  bucket = states.of(name, shard)?.bucket,
): readonly Step[] {
  if (bucket !== undefined && bucket.shardCount > 1) return [{ do: "pass", shard }];
  const answer = { kind: "refused", balancesMilli, local: false } as const;
  return [{ do: "answer", answers: members.map((member) => ({ member, answer })) }];
}

/** Decides where this process knows of no bucket; `fresh`: the store has just said so. */
function nextOfNothing(request: Request, fresh: boolean, { nowMs }: Situation): readonly Step[] {
  const { config, members } = request;
  const balancesMilli = fullBalances(config, nowMs);
  const going = fitting(members, balancesMilli, config);
  if (going.length > 0) return [{ do: "create", members: going, atMs: nowMs }];
  if (!fresh) return [{ do: "read", shard: 0 }];
  const answer = { kind: "refused", balancesMilli, local: false } as const;
  return [{ do: "answer", answers: members.map((member) => ({ member, answer })) }];
}

/** Answers the members of a write; those that did not fit are decided by the state it has shown. */
function afterWrite(
  request: Request,
  { write, bucket, entry }: Extract<StepOutcome, { of: "written" }>,
  situation: Situation,
): readonly Step[] {
  const { members, atMs } = write;
  const answers = consumed(request, { members, bucket, atMs, entry }, situation);
  const answer: Step = { do: "answer", answers };
  return isSaturated(bucket, situation.nowMs) ? [{ do: "split", bucket }, answer] : [answer];
}

/** Waits, since nothing was written, unless a state that was shown since refuses. */
function afterThrottling(
  request: Request,
  cause: Extract<StepOutcome, { of: "probed" }>["cause"],
  situation: Situation,
): readonly Step[] {
  const refused = refusedLocally(request, situation);
  if (refused.length > 0) return [{ do: "answer", answers: refused }];
  return [{ do: "wait", ms: situation.throttledPauseMs(), cause }];
}

function created(
  request: Request,
  { members, bucket }: Extract<StepOutcome, { of: "created" }>,
  situation: Situation,
): AnsweredMember[] {
  return consumed(request, { members, bucket, atMs: bucket.refilledAtMs }, situation);
}

/** Answers members that consume nothing. */
function unwritten(request: Request, bucket: SeenBucket, situation: Situation): AnsweredMember[] {
  const { members } = request;
  return consumed(request, { members, bucket, atMs: situation.nowMs }, situation);
}

/** Answers the members of a write that was planned for a time. */
function consumed(
  { name, config }: Request,
  written: {
    readonly members: readonly Member[];
    readonly bucket: SeenBucket;
    readonly atMs: number;
    readonly entry?: string | undefined;
  },
  { states, nowMs }: Situation,
): AnsweredMember[] {
  const { members, bucket, entry } = written;
  const { shard, shardCount } = bucket;
  const link = effectiveLink(linkIn(bucket), config.cascade);
  const last = shardCount === 1 ? undefined : states.lastBalances(name, config, [shard]);
  const left = last?.balancesMilli ?? balancesOf(bucket, config, nowMs);
  const after = balancesAfterEach(members, left, config);
  const shownAtMs = last?.shownAtMs;
  const periods = states.periodsOf(name, config, written);
  return members.map((member, at) => {
    const parts = [partOf(config, shard, member.amountsMilli, entry)];
    const balancesMilli = after[at] as readonly number[];
    return { member, answer: { kind: "consumed", parts, link, balancesMilli, periods, shownAtMs } };
  });
}

function spreadAnswer(
  { name, config }: Request,
  { member, writes, periods }: Extract<StepOutcome, { of: "spread" }>,
  { states }: Situation,
): AnsweredMember {
  const [first] = writes;
  invariant(first !== undefined, "a spread consume has parts");
  const parts = writes.map(({ part }) => part);
  const written = parts.map(({ shard }) => shard);
  const { balancesMilli, shownAtMs } = states.lastBalances(name, config, written);
  const { link } = first;
  return { member, answer: { kind: "consumed", parts, link, balancesMilli, periods, shownAtMs } };
}

function outdated({ members }: Request): AnsweredMember[] {
  return members.map((member) => ({ member, answer: { kind: "outdated" } }));
}

function always(): boolean {
  return true;
}
