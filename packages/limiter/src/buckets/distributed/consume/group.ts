/** Consumes that share their writes: the members of the group, and its result so far. */

import type { Deadline } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { tooLate } from "../../../domain/errors/unavailability.ts";
import type { BucketName } from "../../../records/keys.ts";
import type { BucketConfig, Leg, ShardPart } from "../../leg.ts";
import { GROUP_MAX } from "../plan/group-plan.ts";
import type {
  AnsweredMember,
  ConsumeAnswer,
  History,
  Member,
  Request,
  StepOutcome,
} from "./step.ts";

/** A consume that waits for its answer. */
export class WaitingConsume implements Member {
  readonly amountsMilli: readonly number[];
  readonly link: Member["link"];
  readonly linkIsFresh: boolean;
  readonly leg: Leg;
  readonly deadline: Deadline;
  /** A write that consumes for it is under way. */
  isSent = false;
  /** An alarm ends it at its deadline. */
  isWatched = false;
  /** Called once the consume has its answer. */
  onEnd: (() => void) | undefined;
  #isOpen = true;
  readonly #resolve: (answer: ConsumeAnswer) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    leg: Leg,
    deadline: Deadline,
    resolve: (answer: ConsumeAnswer) => void,
    reject: (error: unknown) => void,
  ) {
    this.leg = leg;
    this.amountsMilli = leg.amountsMilli;
    this.link = leg.link;
    this.linkIsFresh = leg.linkIsFresh;
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  answer(answer: ConsumeAnswer): void {
    this.#end();
    this.#resolve(answer);
  }

  fail(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    invariant(this.#isOpen, "a consume is answered once");
    this.#isOpen = false;
    this.onEnd?.();
  }

  /** Ends a consume whose time is over, whatever becomes of its group. */
  expire(): void {
    this.fail(tooLate(!this.isSent));
  }
}

/** A consume that was made for a call that had ended. */
export interface Orphan {
  readonly leg: Leg;
  readonly parts: readonly ShardPart[];
}

export class ConsumeGroup implements Request {
  readonly name: BucketName;
  readonly config: BucketConfig;
  /** A throttled write came before: the split policy counts the first attempt only. */
  isRetry = false;
  #members: readonly WaitingConsume[];
  #history: History;
  #deadline: Deadline;

  constructor(members: readonly WaitingConsume[], nowMs: number) {
    const [first] = members;
    invariant(first !== undefined, "a group has a member");
    this.name = first.leg;
    this.config = first.leg.config;
    this.#members = members;
    this.#history = newHistory(nowMs);
    this.#deadline = first.deadline;
    for (const { deadline } of members) this.#deadline = this.#deadline.latest(deadline);
  }

  get members(): readonly WaitingConsume[] {
    return this.#members;
  }

  /** A write that consumes for these members, nearly always all of them, is under way. */
  sends(some: readonly Member[]): void {
    for (const member of this.#members) {
      if (some === this.#members || some.includes(member)) member.isSent = true;
    }
  }

  /** The store has answered: no write is under way. */
  hears(): void {
    for (const member of this.#members) member.isSent = false;
  }

  get history(): History {
    return this.#history;
  }

  /** The latest of its members; each of them ends at its own. */
  get deadline(): Deadline {
    return this.#deadline;
  }

  /** Nothing was written, so the group starts over, together with consumes that came meanwhile. */
  startOver(more: readonly WaitingConsume[], nowMs: number): void {
    this.#members = [...this.#members, ...more];
    invariant(this.#members.length <= Math.max(GROUP_MAX, 1), "a group is bounded");
    for (const { deadline } of more) this.#deadline = this.#deadline.latest(deadline);
    this.#history = newHistory(nowMs);
    this.isRetry = true;
  }

  /** Drops members that have ended by themselves. */
  dropEnded(): void {
    if (this.#members.every(({ isOpen }) => isOpen)) return;
    this.#members = this.#members.filter(({ isOpen }) => isOpen);
  }

  /** Ends members with their answers. Returns what was consumed for members that had timed out. */
  answer(answers: readonly AnsweredMember[]): readonly Orphan[] {
    const orphans: Orphan[] = [];
    for (const { member, answer } of answers) {
      invariant(member instanceof WaitingConsume, "the members of a group wait for their answers");
      if (member.isOpen) member.answer(answer);
      else if (answer.kind === "consumed") orphans.push({ leg: member.leg, parts: answer.parts });
    }
    this.#members = this.#members.filter(({ isOpen }) => isOpen);
    const { sinceMs, tried } = this.#history;
    this.#history = { sinceMs, rounds: 0, rested: false, tried, last: this.#afterAnswer() };
    return orphans;
  }

  /** Returns what the last write consumed, once all members have ended: no decision follows it. */
  get abandoned(): readonly Orphan[] {
    invariant(this.#members.length === 0, "a group that is abandoned has no members");
    const { last } = this.#history;
    switch (last?.of) {
      case "written":
        return last.write.members.map((member) => orphanOf(member, last.bucket.shard));
      case "created":
        return last.members.map((member) => orphanOf(member, last.bucket.shard));
      case "spread":
        return [{ leg: legOf(last.member), parts: last.writes.map(({ part }) => part) }];
      default:
        return [];
    }
  }

  /** Returns what members without an answer are decided by: the state that the others have left. */
  #afterAnswer(): StepOutcome | undefined {
    const { last } = this.#history;
    if (last?.of === "written" || last?.of === "created") {
      const { bucket } = last;
      const askedMs = last.of === "written" ? last.write.atMs : bucket.refilledAtMs;
      return { of: "shown", shard: bucket.shard, bucket, askedMs };
    }
    return last?.of === "cooled" || last?.of === "throttled" ? last : undefined;
  }

  /** The shard has too little. */
  pass(shard: number): void {
    const tried = new Set(this.#history.tried).add(shard);
    this.#history = { ...this.#history, tried };
    this.happened({ of: "changed" });
  }

  rest(): void {
    this.#history = { ...this.#history, rested: true };
  }

  happened(last: StepOutcome): void {
    const { sinceMs, rounds } = this.#history;
    // Once all shards were read, each of them may be tried again.
    const tried = last.of === "all" ? new Set<number>() : this.#history.tried;
    this.#history = { sinceMs, rounds: rounds + 1, rested: false, tried, last };
  }

  /** Ends all members: those of the write that failed, and those for which nothing was written. */
  fail(error: unknown): void {
    for (const member of this.#members) {
      if (member.isOpen) member.fail(member.isSent ? error : nothingWritten(error));
    }
    this.#members = [];
  }
}

/** The history of a group that begins. */
export function newHistory(sinceMs: number): History {
  return { sinceMs, rounds: 0, rested: false, tried: NONE_TRIED, last: undefined };
}

const NONE_TRIED: ReadonlySet<number> = new Set();

function orphanOf(member: Member, shard: number): Orphan {
  return { leg: legOf(member), parts: [{ shard, amountsMilli: member.amountsMilli }] };
}

function legOf(member: Member): Leg {
  invariant(member instanceof WaitingConsume, "the members of a group wait for their answers");
  return member.leg;
}

function nothingWritten(error: unknown): unknown {
  if (!(error instanceof RateLimiterUnavailable) || error.nothingWritten) return error;
  return new RateLimiterUnavailable(error.message, {
    cause: error,
    ...(error.reason === undefined ? {} : { reason: error.reason }),
    nothingWritten: true,
  });
}
