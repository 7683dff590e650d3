/** Consumes that share their writes: the members of a group, and its outcomes so far. */

import type { Deadline } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { tooLate, unwritten } from "../../../domain/errors/unavailability.ts";
import type { BucketName } from "../../../records/keys.ts";
import { Waiting } from "../../gathering.ts";
import type { BucketConfig, Leg, SeenPeriods, ShardPart } from "../../leg.ts";
import { partOf } from "../../slots/slot-amounts.ts";
import { GROUP_MAX } from "../plan/consume-plan.ts";
import { periodsIn } from "../plan/period-plan.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import type {
  AnsweredMember,
  ConsumeAnswer,
  History,
  Member,
  Request,
  StepOutcome,
} from "./step.ts";

/** Keeps a consume that waits for its answer. */
export class WaitingConsume extends Waiting<ConsumeAnswer> implements Member {
  readonly amountsMilli: readonly number[];
  readonly link: Member["link"];
  readonly linkIsFresh: boolean;
  readonly leg: Leg;
  /** Whether cached states did not refuse it in the turn in which it was asked. */
  isCleared = false;

  constructor(
    leg: Leg,
    deadline: Deadline,
    resolve: (answer: ConsumeAnswer) => void,
    reject: (error: unknown) => void,
  ) {
    super(deadline, resolve, reject);
    this.leg = leg;
    this.amountsMilli = leg.amountsMilli;
    this.link = leg.link;
    this.linkIsFresh = leg.linkIsFresh;
  }

  /** Ends at its own deadline, although others of its group may go on. */
  expire(): void {
    this.fail(tooLate(!this.isSent));
  }
}

/** Returns whether two consumes of one bucket may share a write: they have the same limits. */
export function mayShare({ leg }: WaitingConsume, { leg: { config } }: WaitingConsume): boolean {
  const one = leg.config;
  if (one === config) return true;
  return (
    one.limits === config.limits &&
    one.version === config.version &&
    one.source === config.source &&
    one.forced === config.forced &&
    one.cascade === config.cascade &&
    one.bypass === config.bypass
  );
}

/** Consume that was made for a call that had ended; it is refunded. */
export interface Orphan {
  readonly leg: Leg;
  readonly parts: readonly ShardPart[];
  readonly periods?: SeenPeriods | undefined;
}

/** Keeps consumes that share their writes, and their history. */
export class ConsumeGroup implements Request {
  readonly name: BucketName;
  readonly config: BucketConfig;
  /** Whether a throttled write came before: the split policy counts the first attempt only. */
  isRetry = false;
  /**
   * Whether cached states have not refused any member in this turn: they need not be read again.
   */
  isCleared: boolean;
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
    this.isCleared = true;
    for (const { deadline, isCleared, hasWaited } of members) {
      this.#deadline = this.#deadline.latest(deadline);
      if (!isCleared || hasWaited) this.isCleared = false;
    }
  }

  get members(): readonly WaitingConsume[] {
    return this.#members;
  }

  /** Marks the members, nearly always all, that a write under way consumes for. */
  markSent(some: readonly Member[]): void {
    for (const member of this.#members) {
      if (some === this.#members || some.includes(member)) member.isSent = true;
    }
  }

  /** Clears the marks: the store has answered, so no write is under way. */
  clearSent(): void {
    for (const member of this.#members) member.isSent = false;
  }

  get history(): History {
    return this.#history;
  }

  /** Latest deadline of its members; each of them ends at its own. */
  get deadline(): Deadline {
    return this.#deadline;
  }

  /** Starts over, since nothing was written, together with consumes that have come since. */
  startOver(more: readonly WaitingConsume[], nowMs: number): void {
    this.#members = [...this.#members, ...more];
    invariant(this.#members.length <= Math.max(GROUP_MAX, 1), "a group is bounded");
    for (const { deadline } of more) this.#deadline = this.#deadline.latest(deadline);
    this.#history = newHistory(nowMs);
    this.isRetry = true;
    this.isCleared = false;
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
      else if (answer.kind === "consumed") {
        const { parts, periods } = answer;
        orphans.push({ leg: member.leg, parts, periods });
      }
    }
    this.#members = this.#members.filter(({ isOpen }) => isOpen);
    this.isCleared = false;
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
        return last.write.members.map((member) => orphanOf(member, last.bucket, last.entry));
      case "created":
        return last.members.map((member) => orphanOf(member, last.bucket));
      case "spread":
        return [{ leg: legOf(last.member), parts: last.writes.map(({ part }) => part) }];
      default:
        return [];
    }
  }

  /** Returns the outcome that decides members without an answer: the state the others left. */
  #afterAnswer(): StepOutcome | undefined {
    const { last } = this.#history;
    if (last?.of === "written" || last?.of === "created") {
      const { bucket } = last;
      const askedMs = last.of === "written" ? last.write.atMs : bucket.refilledAtMs;
      return { of: "shown", shard: bucket.shard, bucket, askedMs };
    }
    return last?.of === "probed" || last?.of === "throttled" ? last : undefined;
  }

  /** Records that a shard has too little. */
  skip(shard: number): void {
    const tried = new Set(this.#history.tried).add(shard);
    this.#history = { ...this.#history, tried };
    this.record({ of: "changed" });
  }

  /** Records that a pause has followed the last outcome. */
  recordRest(): void {
    this.#history = { ...this.#history, rested: true };
  }

  /** Records the outcome of a step. */
  record(last: StepOutcome): void {
    this.isCleared = false;
    const { sinceMs, rounds } = this.#history;
    // Once all shards were read, each of them may be tried again.
    const tried = last.of === "all" ? new Set<number>() : this.#history.tried;
    this.#history = { sinceMs, rounds: rounds + 1, rested: false, tried, last };
  }

  /** Ends all members: those of the write that failed, and those for which nothing was written. */
  fail(error: unknown): void {
    for (const member of this.#members) {
      if (member.isOpen) member.fail(member.isSent ? error : unwritten(error));
    }
    this.#members = [];
  }
}

/** Returns the history of a group that begins. */
export function newHistory(sinceMs: number): History {
  return { sinceMs, rounds: 0, rested: false, tried: NONE_TRIED, last: undefined };
}

const NONE_TRIED: ReadonlySet<number> = new Set();

function orphanOf(member: Member, bucket: SeenBucket, entry?: string): Orphan {
  const leg = legOf(member);
  const { shard, refilledAtMs } = bucket;
  const periods = periodsIn([bucket], leg.config, refilledAtMs);
  return { leg, parts: [partOf(leg.config, shard, member.amountsMilli, entry)], periods };
}

function legOf(member: Member): Leg {
  invariant(member instanceof WaitingConsume, "the members of a group wait for their answers");
  return member.leg;
}
