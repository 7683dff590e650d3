/**
 * The only loop that talks to the store (`drive`), and what it does for groups of consumes: the
 * driver does what the decision says, and keeps what the store has shown.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import type { Deadline, Timer } from "../../../base/time.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { tooBusy } from "../../../domain/errors/unavailability.ts";
import { bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Leg } from "../../leg.ts";
import { GROUP_MAX } from "../plan/group-plan.ts";
import { isAnnounced } from "../plan/seen-bucket.ts";
import { SettledCounts } from "../shards/announced-shards.ts";
import type { Merger } from "../shards/merger.ts";
import type { Splitter } from "../shards/splitter.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { ShardRequests } from "../state/shard-requests.ts";
import type { BucketRules } from "../table-traits.ts";
import { Gathering, type WorkQueue } from "./gathering.ts";
import { ConsumeGroup, mayShare, type Orphan, WaitingConsume } from "./group.ts";
import { next } from "./next.ts";
import { paceAfter, throttledPauseMs } from "./pacing.ts";
import type { ConsumeAnswer, Situation, Step } from "./step.ts";

/** A process handles a throttled shard once in this time, however many calls meet it. */
const COOL_MS = 100;
const COOLED_MAX = 10_000;
/** With less time than this a throttled call ends instead of waiting. */
const WAIT_MS_MIN = 2;

const TOO_OFTEN = "The bucket changed too often to be consumed in time";

/** Steps that decide nothing for the members. */
const FOLLOWING: ReadonlySet<Step["do"]> = new Set(["relieve", "limits"]);

type ConsumeQueue = WorkQueue<WaitingConsume>;

/** A step that asks the store. */
type AskingStep = Exclude<Step, { do: "answer" | "pass" | "wait" }>;

/** What carries out the steps. */
export interface DriverWorkers {
  readonly requests: ShardRequests;
  readonly splitter: Splitter;
  readonly merger: Merger;
}

export interface DriverOptions {
  readonly timer: Timer;
  readonly rules: BucketRules;
  /** Refunds what was consumed for a call that had ended. */
  readonly onOrphan: (orphan: Orphan) => void;
}

export class Driver {
  readonly #context: RecordContext;
  readonly #states: BucketStates;
  readonly #requests: ShardRequests;
  readonly #splitter: Splitter;
  readonly #merger: Merger;
  readonly #options: DriverOptions;
  readonly #settled = new SettledCounts();
  readonly #cooledAtMs = boundedMap<number>(COOLED_MAX);
  readonly #gathering: Gathering<WaitingConsume>;

  constructor(
    context: RecordContext,
    states: BucketStates,
    { requests, splitter, merger }: DriverWorkers,
    options: DriverOptions,
  ) {
    this.#context = context;
    this.#states = states;
    this.#requests = requests;
    this.#splitter = splitter;
    this.#merger = merger;
    this.#options = options;
    this.#gathering = new Gathering(options.timer, {
      max: GROUP_MAX,
      joins: mayShare,
      run: (members, queue) => this.#run(new ConsumeGroup(members, context.clock()), queue),
    });
  }

  /** Consumes from one bucket, or refuses by the newest state of it. */
  consume(leg: Leg, deadline: Deadline, signal?: AbortSignal): Promise<ConsumeAnswer> {
    return new Promise((resolve, reject) => {
      const waiting = new WaitingConsume(leg, deadline, resolve, reject);
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
      isUnsettled: (bucket) => isAnnounced(bucket) && this.#settled.isDue(name, bucket),
      isCooled: (shard) => {
        const atMs = this.#cooledAtMs.get(`${bucketId(name)}#${shard}`);
        const agoMs = nowMs - (atMs ?? Number.NEGATIVE_INFINITY);
        return agoMs >= 0 && agoMs < COOL_MS;
      },
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

  /** Does a step that asks the store; what it says of a key range that is throttled is kept. */
  #ask(step: AskingStep, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    return this.#carryOut(step, group, queue).catch((error: unknown) => {
      if (!(error instanceof RateLimiterUnavailable) || !error.keyRange) throw error;
      this.#throttled(shardOf(step), error, group, queue);
    });
  }

  #carryOut(step: AskingStep, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    switch (step.do) {
      case "write":
        return this.#write(step, group, queue);
      case "create":
        return this.#create(step, group);
      case "read":
        return this.#read(step, group);
      case "read-all":
        return this.#readAll(step, group);
      case "spread":
        return this.#spread(step, group);
      case "limits":
        return this.#bringLimits(step, group);
      case "bring-about":
        return this.#bringAbout(step.shard, group, queue);
      case "settle":
        return this.#settle(step, group);
      case "relieve":
        return this.#relieve(step, group);
      case "cool":
        return this.#cool(step, group);
    }
  }

  async #write(
    { write }: Extract<Step, { do: "write" }>,
    group: ConsumeGroup,
    queue: ConsumeQueue,
  ): Promise<void> {
    const { name, deadline } = group;
    const { shard, atMs } = write;
    if (this.#requests.isLinkDue(name, shard)) {
      await this.#requests.checkLink(name, shard, deadline);
      return group.record({ of: "changed" });
    }
    group.markSent(write.members);
    const { ok, bucket } = await this.#requests.write(group, write, deadline);
    group.clearSent();
    if (!ok || bucket === undefined) {
      return group.record({ of: "shown", shard, bucket, askedMs: atMs, overtaken: write });
    }
    this.#states.correct(bucket);
    this.#splitter.loads?.sawMeter(bucket);
    if (bucket.shardCount > 1) this.#merger.saw(bucket);
    this.#count("consumed", group, queue);
    group.record({ of: "written", write, bucket });
  }

  async #read({ shard }: Extract<Step, { do: "read" }>, group: ConsumeGroup): Promise<void> {
    const { bucket } = await this.#requests.read(group.name, shard, group.deadline);
    group.record({ of: "shown", shard, bucket, askedMs: this.#context.clock() });
  }

  async #readAll({ count }: Extract<Step, { do: "read-all" }>, group: ConsumeGroup): Promise<void> {
    const shards = await this.#requests.readAll(group.name, count, group.deadline);
    group.record({ of: "all", count, shards });
  }

  async #create(
    { members, atMs }: Extract<Step, { do: "create" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    group.markSent(members);
    const { ok, bucket } = await this.#requests.create(group, members, atMs, group.deadline);
    group.clearSent();
    if (ok && bucket !== undefined) return group.record({ of: "created", members, bucket });
    group.record({ of: "shown", shard: 0, bucket, askedMs: this.#context.clock() });
  }

  async #spread(
    { member, writes }: Extract<Step, { do: "spread" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    group.markSent([member]);
    const ok = await this.#requests.spread(group, member, writes, group.deadline);
    group.clearSent();
    group.record(ok ? { of: "spread", member, writes } : { of: "changed" });
  }

  async #bringLimits(
    { brings, balancesMilli }: Extract<Step, { do: "limits" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    const { name, deadline } = group;
    const states = await Promise.all(
      brings.map(({ shard, plan }) => this.#requests.bringLimits(name, shard, plan, deadline)),
    );
    const [first] = brings;
    const changed = states.find((state) => state !== undefined);
    if (brings.length > 1 || first === undefined) return;
    const { shard } = first;
    if (changed === undefined) return group.record({ of: "limits", shard, balancesMilli });
    const { bucket } = changed;
    group.record({ of: "shown", shard, bucket, askedMs: this.#context.clock() });
  }

  /** Creates a missing shard; its origin may be too busy for that. */
  async #bringAbout(shard: number, group: ConsumeGroup, queue: ConsumeQueue): Promise<void> {
    try {
      await this.#splitter.bringAbout(group.name, shard, group.deadline);
      group.record({ of: "changed" });
    } catch (error) {
      if (!isThrottling(error)) throw error;
      this.#throttled(shard, error, group, queue);
    }
  }

  async #settle({ bucket }: Extract<Step, { do: "settle" }>, group: ConsumeGroup): Promise<void> {
    const { name, deadline } = group;
    this.#settled.settled(name, bucket);
    await this.#splitter.settle(name, deadline);
    group.record({ of: "changed" });
  }

  /** Splits a shard where that is allowed. The members were served, and do not depend on it. */
  async #relieve({ bucket }: Extract<Step, { do: "relieve" }>, group: ConsumeGroup): Promise<void> {
    try {
      await this.#splitter.relieve(bucket, "saturated", group.deadline);
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
    }
  }

  /** Reads the throttled shard: another client may have split it already. Splits it otherwise. */
  async #cool({ shard, cause }: Extract<Step, { do: "cool" }>, group: ConsumeGroup): Promise<void> {
    const { name, config, deadline } = group;
    this.#cooledAtMs.set(`${bucketId(name)}#${shard}`, this.#context.clock());
    group.record({ of: "cooled", cause });
    const before = this.#states.countOf(name);
    try {
      const { bucket } = await this.#requests.read(name, shard, deadline);
      if (bucket !== undefined) this.#splitter.loads?.sawMeter(bucket);
      const learnt = (this.#states.countOf(name) ?? 1) > (before ?? 1);
      // More shards of a bucket without tokens would grant nothing more.
      if (bucket === undefined || learnt || this.#states.isScarce(name, config)) return;
      await this.#splitter.relieve(bucket, "throttled", deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // The shard cannot even be read. A second shard, if there is one, shows how many there are.
      if (error.keyRange && before === undefined) await this.#readQuietly(group, 1);
    }
  }

  async #readQuietly({ name, deadline }: ConsumeGroup, shard: number): Promise<void> {
    try {
      await this.#requests.read(name, shard, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
  }

  #throttled(
    shard: number,
    cause: RateLimiterUnavailable,
    group: ConsumeGroup,
    queue: ConsumeQueue,
  ): void {
    group.clearSent();
    this.#states.throttled(group.name, shard);
    this.#count("throttled", group, queue);
    group.record({ of: "throttled", shard, cause });
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

function shardOf(step: Step): number {
  if (step.do === "write") return step.write.shard;
  return "shard" in step ? step.shard : 0;
}

/** Nothing was written because something was too busy. */
function isThrottling(error: unknown): error is RateLimiterUnavailable {
  return (
    error instanceof RateLimiterUnavailable && error.reason === "throttled" && error.nothingWritten
  );
}

/** `undefined`: there is nothing more to do. */
type Decide<Step> = () => readonly Step[] | undefined;

/** Does one step; `undefined` when that took no time. */
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
