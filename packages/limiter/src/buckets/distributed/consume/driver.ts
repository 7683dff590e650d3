/**
 * The only loop that talks to the store (`drive`), and the driver, which runs it for groups of
 * consumes: it does what `next` decides, and records what the store has shown.
 */

import type { Deadline, Timer } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { tooBusy } from "../../../domain/errors/unavailability.ts";
import { bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { Gathering, paceAfter, throttledPauseMs, type WorkQueue } from "../../gathering.ts";
import { amountsByName, type Leg, sumOf, takenOf } from "../../leg.ts";
import { GROUP_MAX } from "../plan/consume-plan.ts";
import {
  balanceAt,
  decoded,
  isAnnounced,
  looksFull,
  type SeenBucket,
} from "../plan/seen-bucket.ts";
import type { Guess } from "../plan/write-plan.ts";
import type { Merger } from "../shards/merger.ts";
import type { Splitter } from "../shards/splitter.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { ShardRequests, Written } from "../state/shard-requests.ts";
import type { BucketRules } from "../table-traits.ts";
import { ConsumeGroup, mayShare, type Orphan, WaitingConsume } from "./group.ts";
import type { LinkChecks } from "./link-checks.ts";
import { next } from "./next.ts";
import type { SlowSteps } from "./slow-steps.ts";
import type { ConsumeAnswer, Request, ShardWrite, Situation, Step } from "./step.ts";

/** With less time than this a throttled call ends instead of waiting, in milliseconds. */
const WAIT_MS_MIN = 2;

const TOO_OFTEN = "The bucket changed too often to be consumed in time";

/** Steps that decide nothing for the members. */
const FOLLOWING: ReadonlySet<Step["do"]> = new Set(["split", "limits"]);

type ConsumeQueue = WorkQueue<WaitingConsume>;

/** A step that asks the store. */
type AskingStep = Exclude<Step, { do: "answer" | "pass" | "wait" }>;

/** Parts that the driver works with. */
export interface DriverParts {
  readonly states: BucketStates;
  readonly links: LinkChecks;
  readonly requests: Pick<ShardRequests, "update">;
  readonly slow: SlowSteps;
  readonly splitter: Splitter;
  readonly merger: Merger;
}

export interface DriverOptions {
  readonly timer: Timer;
  readonly rules: BucketRules;
  /** Refunds what was consumed for a call that had ended. */
  readonly onOrphan: (orphan: Orphan) => void;
}

/** Runs the steps that `next` decides for groups of consumes. */
export class Driver {
  readonly #context: RecordContext;
  readonly #states: BucketStates;
  readonly #links: LinkChecks;
  readonly #requests: DriverParts["requests"];
  readonly #slow: SlowSteps;
  readonly #splitter: Splitter;
  readonly #merger: Merger;
  readonly #options: DriverOptions;
  readonly #gathering: Gathering<WaitingConsume>;

  constructor(context: RecordContext, parts: DriverParts, options: DriverOptions) {
    this.#context = context;
    this.#states = parts.states;
    this.#links = parts.links;
    this.#requests = parts.requests;
    this.#slow = parts.slow;
    this.#splitter = parts.splitter;
    this.#merger = parts.merger;
    this.#options = options;
    this.#gathering = new Gathering(options.timer, {
      max: GROUP_MAX,
      joins: mayShare,
      run: (members, queue) => this.#run(new ConsumeGroup(members, context.clock()), queue),
    });
  }

  /**
   * Consumes from one bucket, or refuses by the newest state of it. `isCleared`: in this turn of
   * the event loop, cached states have not refused it.
   */
  consume(
    leg: Leg,
    deadline: Deadline,
    signal?: AbortSignal,
    isCleared = false,
  ): Promise<ConsumeAnswer> {
    return new Promise((resolve, reject) => {
      const waiting = new WaitingConsume(leg, deadline, resolve, reject);
      waiting.isCleared = isCleared;
      this.#gathering.add(bucketId(leg), waiting, signal);
    });
  }

  /** Answers all members of a group. Never throws: a failure goes to the members. */
  async #run(group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    const { loads } = this.#splitter;
    if (loads !== undefined) {
      for (const { leg } of group.members) loads.note(leg, leg.config, leg.amountsMilli);
    }
    const decide = () => {
      group.dropEnded();
      if (group.members.length === 0) {
        for (const orphan of group.abandoned) this.#options.onOrphan(orphan);
        return undefined;
      }
      const steps = next(group, group.history, this.#situation(group, queue));
      if (steps.length === 0) group.record({ of: "changed" });
      return steps;
    };
    try {
      await drive(decide, (step) => this.#perform(step, group, queue));
    } catch (error) {
      group.fail(error);
    }
  }

  #situation({ name }: ConsumeGroup, queue: ConsumeQueue): Situation {
    const { clock, random } = this.#context;
    const nowMs = clock();
    return {
      states: this.#states,
      nowMs,
      random,
      rules: this.#options.rules,
      throttledPauseMs: () => throttledPauseMs(queue.pace, random),
      needsRepair: (bucket) => isAnnounced(bucket) && this.#slow.needsRepair(name, bucket),
      isProbed: (shard) => this.#slow.isProbed(name, shard, nowMs),
    };
  }

  #perform(step: Step, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> | undefined {
    switch (step.do) {
      case "answer":
        for (const orphan of group.answer(step.answers)) this.#options.onOrphan(orphan);
        return undefined;
      case "pass":
        group.skip(step.shard);
        return undefined;
      case "wait":
        return this.#wait(step, group, queue);
      default:
        // Steps that follow a consume are done however late it is.
        if (group.deadline.isOver && !FOLLOWING.has(step.do)) throw tooBusy(TOO_OFTEN);
        return this.#ask(step, group, queue);
    }
  }

  /** Does a step that asks the store, and records when it says that a key range is throttled. */
  #ask(step: AskingStep, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    const done =
      step.do === "write" ? this.#write(step.write, group, queue) : this.#slow.perform(step, group);
    return done.catch((error: unknown) => {
      if (!isThrottled(step, error)) throw error;
      const shard = shardOf(step);
      group.clearSent();
      this.#states.throttled(group.name, shard);
      this.#count("throttled", group, queue);
      group.record({ of: "throttled", shard, cause: error });
    });
  }

  async #write(write: ShardWrite, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    const { name, deadline } = group;
    const { shard, atMs } = write;
    const key = this.#states.keyOf(name, shard);
    if (this.#states.shards.isLinkLate(key.PK, this.#options.timer.nowMs())) {
      await this.#links.check(key, deadline.timeoutMs);
      return group.record({ of: "changed" });
    }
    group.markSent(write.members);
    const { ok, bucket, entry, askedMs = atMs } = await this.write(group, write, deadline);
    group.clearSent();
    if (!ok || bucket === undefined) {
      return group.record({ of: "shown", shard, bucket, askedMs, overtaken: write });
    }
    this.#states.correct(bucket);
    this.#splitter.loads?.recordMeter(bucket);
    if (bucket.shardCount > 1) this.#merger.saw(bucket);
    this.#count("consumed", group, queue);
    group.record({ of: "written", write, bucket, entry });
  }

  /** Consumes by one conditional update. Throws when nothing is known of the outcome. */
  async write(request: Request, write: ShardWrite, deadline: Deadline): Promise<Written> {
    const { shard, plan, guesses, from, members } = write;
    const key = this.#states.keyOf(request.name, shard);
    const { shards } = this.#states;
    const unpredict = shards.predict(key.PK, from, guesses);
    const observe = shards.observe(key.PK);
    try {
      const { ok, item, entry, askedMs } = await this.#requests.update(key, plan, deadline);
      const { bucket } = observe(decoded(item), write.atMs);
      if (bucket !== undefined) this.#learn(key.PK, ok, bucket, write);
      return { ok: ok && bucket !== undefined, bucket, entry, askedMs };
    } catch (error) {
      if (error instanceof RateLimiterUnavailable && error.nothingWritten) {
        const { config } = request;
        unpredict(amountsByName(config, takenOf(config, sumOf(members))));
      }
      throw error;
    }
  }

  /**
   * Remembers which of the limits that seemed full were full, at the time that the write was
   * planned for: one that another client has consumed from may be full again when the answer comes.
   */
  #learn(id: string, ok: boolean, bucket: SeenBucket, { teaches, atMs }: ShardWrite): void {
    if (teaches.length === 0) return;
    this.#states.shards.learn(id, ok ? teaches : sightings(bucket, teaches, atMs));
  }

  /** Counts the outcome of a write: for the pace of this process, and for the split policy. */
  #count(
    outcome: "consumed" | "throttled",
    { name, isRetry }: ConsumeGroup,
    queue: ConsumeQueue,
  ): void {
    queue.pace = paceAfter(queue.pace, outcome);
    if (!isRetry) this.#splitter.loads?.count(name, this.#states.countOf(name) ?? 1, outcome);
  }

  async #wait(
    { ms, cause }: Extract<Step, { do: "wait" }>,
    group: ConsumeGroup,
    queue: ConsumeQueue,
  ): Promise<void> {
    const { leftMs } = group.deadline;
    if (leftMs <= (cause === undefined ? 0 : WAIT_MS_MIN)) throw cause ?? tooBusy(TOO_OFTEN);
    await this.#options.timer.sleep(Math.min(ms, cause === undefined ? leftMs : leftMs / 2));
    if (cause === undefined) return group.recordRest();
    const more = queue.remove(GROUP_MAX - group.members.length, group.members[0]);
    group.startOver(more, this.#context.clock());
    if (more.length > 0) queue.watch(group.members);
  }
}

function shardOf(step: AskingStep): number {
  if (step.do === "write") return step.write.shard;
  return "shard" in step ? step.shard : 0;
}

/**
 * Returns whether a step has failed because something was too busy, and nothing was written. A
 * shard is created from its origin, which may be the busy one.
 */
function isThrottled(step: AskingStep, error: unknown): error is RateLimiterUnavailable {
  if (!(error instanceof RateLimiterUnavailable)) return false;
  if (error.keyRange) return true;
  return step.do === "create-shard" && error.reason === "throttled" && error.nothingWritten;
}

/** Returns which of the limits that seemed full are full. */
function sightings(bucket: SeenBucket, guesses: readonly Guess[], atMs: number) {
  return guesses.flatMap(({ limitName }) => {
    const stored = bucket.limits.get(limitName);
    if (stored === undefined) return [];
    return [{ limitName, full: looksFull(balanceAt(bucket, stored, atMs)) }];
  });
}

/** Returns the steps to do next; `undefined` when there is nothing more to do. */
type Decide<Step> = () => readonly Step[] | undefined;

/** Does one step; returns `undefined` when that took no time. */
type Perform<Step> = (step: Step) => Promise<void> | undefined;

/** Decides the next step and runs it, until done. */
export async function drive<Step>(decide: Decide<Step>, perform: Perform<Step>): Promise<void> {
  for (let steps = decide(); steps !== undefined; steps = decide()) {
    for (const step of steps) {
      const done = perform(step);
      if (done !== undefined) await done;
    }
  }
}
