/**
 * Gathers work of this process by place, such as the consumes of one bucket, so that it is done
 * together.
 *
 * While less is under way at a place than its pace allows, work goes at once, together with work of
 * the same turn of the event loop: nothing waits when nothing is under way. Otherwise it waits for
 * a run to return, and then all that waits goes in one run. A run ends at the latest deadline of
 * its work; each call ends at its own.
 *
 * The pace: a write that other clients have overtaken goes again at once a few times, since its
 * answer shows the item, and then after a pause with jitter. Where the store throttles, this
 * process halves its writes under way, and when it is down to one, doubles its pauses: all calls of
 * all processes together would keep a throttled shard too busy even to be split.
 */

import type { Random } from "../base/random.ts";
import type { Deadline, Timer } from "../base/time.ts";
import { invariant } from "../domain/check.ts";

/** Its `then` runs a function at the end of this turn, at less cost than `queueMicrotask`. */
const SOON = Promise.resolve();

/** The most calls that have ended and are kept until the alarm rings. */
const PRUNE_MIN = 1024;

/** Keeps one call that waits for its answer, alone or with others. */
export abstract class Waiting<Answer> {
  readonly deadline: Deadline;
  /** Whether a request that does its work is under way. */
  isSent = false;
  /** Whether an alarm ends it at its deadline. */
  isWatched = false;
  /** Whether it had to wait for other work, beyond the turn in which it was asked. */
  hasWaited = false;
  /** Called once the call has its answer. */
  onEnd: (() => void) | undefined;
  #isOpen = true;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    deadline: Deadline,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether its work is still to be done when its turn comes. */
  get isDue(): boolean {
    return this.#isOpen;
  }

  answer(answer: Answer): void {
    this.#end();
    this.#resolve(answer);
  }

  fail(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  /** Acts when its time is over, whatever becomes of its work. */
  abstract expire(): void;

  #end(): void {
    invariant(this.#isOpen, "a call is answered once");
    this.#isOpen = false;
    this.onEnd?.();
  }
}

type AnyWaiting = Waiting<never>;

/** Says which work is done together, and does it. */
export interface GatheringRules<W extends AnyWaiting> {
  /** The most work of one run. */
  readonly max: number;
  /** The pace of a place that nothing is known of; two runs under way when absent. */
  readonly pace?: Pace;
  /** Whether work may be done together with what is first; the same place is not enough. */
  joins(one: W, first: W): boolean;
  /** Answers everything that is due. Never throws. */
  run(together: readonly W[], queue: WorkQueue<W>): Promise<void>;
}

/** Keeps the work of one place. */
export class WorkQueue<W extends AnyWaiting> {
  readonly id: string;
  readonly waiting: W[] = [];
  pace: Pace;
  underWay = 0;
  /** How much work the last run had. */
  lastSize = 0;
  isScheduled = false;
  readonly #alarm: Alarm;
  readonly #rules: GatheringRules<W>;

  constructor(id: string, alarm: Alarm, rules: GatheringRules<W>) {
    this.id = id;
    this.#alarm = alarm;
    this.#rules = rules;
    this.pace = rules.pace ?? FULL_PACE;
  }

  get goesNow(): boolean {
    return goesNow(this.pace, this.underWay, this.waiting.length, this.lastSize);
  }

  /** Lets the alarm end calls at their own deadlines. */
  watch(calls: readonly W[]): void {
    for (const call of calls) this.#alarm.watch(call);
  }

  /** Removes calls, in their order, that may go together with the first or the given one. */
  remove(bound = this.#rules.max, given?: W): W[] {
    const removed: W[] = [];
    const left: W[] = [];
    let first = given;
    for (const one of this.waiting) {
      if (!one.isDue) continue;
      first ??= one;
      const joins = removed.length < bound && this.#rules.joins(one, first);
      (joins ? removed : left).push(one);
    }
    this.waiting.splice(0, this.waiting.length, ...left);
    return removed;
  }
}

/** Keeps the queues of all places, and starts their runs. */
export class Gathering<W extends AnyWaiting> {
  readonly #queues = new Map<string, WorkQueue<W>>();
  readonly #alarm: Alarm;
  readonly #rules: GatheringRules<W>;
  #onIdle: (() => void)[] = [];

  constructor(timer: Timer, rules: GatheringRules<W>) {
    this.#alarm = new Alarm(timer);
    this.#rules = rules;
  }

  /** Adds work to a place. While it waits, the signal removes it. */
  add(id: string, one: W, signal?: AbortSignal): void {
    const queue = this.#queueOf(id);
    queue.waiting.push(one);
    if (queue.goesNow) this.#schedule(queue);
    else this.#await(queue, one, signal);
  }

  /** Resolves when no work is under way, or waits to be. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) {
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    }
  }

  /** Starts at the end of this turn of the event loop, when all its work is here. */
  #schedule(queue: WorkQueue<W>): void {
    if (queue.isScheduled) return;
    queue.isScheduled = true;
    void SOON.then(() => {
      queue.isScheduled = false;
      this.#start(queue);
    });
  }

  /** Ends a call that waits behind others at its deadline, or when its caller gives up. */
  #await(queue: WorkQueue<W>, one: W, signal: AbortSignal | undefined): void {
    one.hasWaited = true;
    queue.watch([one]);
    if (signal === undefined) return;
    const leave = () => {
      const at = queue.waiting.indexOf(one);
      if (at < 0) return;
      queue.waiting.splice(at, 1);
      one.fail(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    one.onEnd = () => signal.removeEventListener("abort", leave);
  }

  #queueOf(id: string): WorkQueue<W> {
    const known = this.#queues.get(id);
    if (known !== undefined) return known;
    const queue = new WorkQueue(id, this.#alarm, this.#rules);
    this.#queues.set(id, queue);
    return queue;
  }

  #start(queue: WorkQueue<W>): void {
    while (queue.goesNow) {
      const together = queue.remove();
      if (together.length === 0) break;
      queue.underWay += 1;
      queue.lastSize = together.length;
      if (together.length > 1) queue.watch(together);
      void this.#run(queue, together);
    }
    // Others have other limits, or a call that has left leaves too few of them for a run.
    for (const one of queue.waiting) one.hasWaited = true;
    queue.watch(queue.waiting);
    this.#removeIdle(queue);
  }

  async #run(queue: WorkQueue<W>, together: readonly W[]): Promise<void> {
    await this.#rules.run(together, queue);
    queue.underWay -= 1;
    invariant(queue.underWay >= 0, "a run that has ended was under way");
    if (queue.waiting.length > 0) this.#schedule(queue);
    this.#removeIdle(queue);
  }

  #removeIdle(queue: WorkQueue<W>): void {
    const { id, waiting, underWay } = queue;
    if (waiting.length > 0 || underWay > 0 || this.#queues.get(id) !== queue) return;
    this.#queues.delete(id);
    if (this.#queues.size > 0 || this.#onIdle.length === 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/** Ends calls at their deadlines while they wait for others, by one timer for all of them. */
export class Alarm {
  readonly #timer: Timer;
  #watched: AnyWaiting[] = [];
  #pruneAt = PRUNE_MIN;
  /** When it rings next; it does not ring while it watches nothing. */
  #ringsAtMs = Number.POSITIVE_INFINITY;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Watches a call that shares its work: its deadline may be earlier than that of others. */
  watch(call: AnyWaiting): void {
    if (call.isWatched) return;
    call.isWatched = true;
    this.#watched.push(call);
    if (this.#watched.length >= this.#pruneAt) this.#prune();
    this.#ringAt(call.deadline.atMs);
  }

  /**
   * Sets the timer, unless it rings before. It is never stopped: setting it for each run would cost
   * more than a ring that finds nothing to end.
   */
  #ringAt(atMs: number): void {
    if (atMs >= this.#ringsAtMs) return;
    this.#ringsAtMs = atMs;
    const leftMs = Math.max(0, atMs - this.#timer.nowMs());
    void this.#timer.sleep(leftMs, undefined, true).then(() => {
      if (this.#ringsAtMs === atMs) this.#ring();
    });
  }

  #ring(): void {
    this.#ringsAtMs = Number.POSITIVE_INFINITY;
    const watched = this.#watched;
    this.#watched = [];
    for (const call of watched) {
      if (call.isOpen && call.deadline.isOver) call.expire();
      else this.#watched.push(call);
    }
    this.#prune();
    const earliest = this.#watched.reduce(
      (least, { deadline }) => Math.min(least, deadline.atMs),
      Infinity,
    );
    this.#ringAt(earliest);
  }

  #prune(): void {
    this.#watched = this.#watched.filter(({ isOpen }) => isOpen);
    this.#pruneAt = Math.max(PRUNE_MIN, 2 * this.#watched.length);
  }
}

/** The most writes of a bucket under way before further consumes gather. */
const WIDTH_MAX = 2;

const QUICK_ROUNDS = 4;
const PAUSE_MS_MAX = 32;
const THROTTLED_PAUSE_MS_MIN = 2;
const THROTTLED_PAUSE_MS_MAX = 250;

/** Returns the pause after this many rounds without a result. */
export function pauseMs(rounds: number, random: Random): number {
  if (rounds <= QUICK_ROUNDS) return 0;
  return random() * Math.min(PAUSE_MS_MAX, 2 ** (rounds - QUICK_ROUNDS));
}

/** How fast this process writes to a bucket. */
export interface Pace {
  /** How many writes may be under way. */
  readonly width: number;
  /** How long a throttled group waits, on average. */
  readonly pauseMs: number;
}

/** One run under way. */
export const SINGLE_PACE: Pace = { width: 1, pauseMs: THROTTLED_PAUSE_MS_MIN };

export const FULL_PACE: Pace = { width: WIDTH_MAX, pauseMs: THROTTLED_PAUSE_MS_MIN };

export function paceAfter(pace: Pace, outcome: "consumed" | "throttled"): Pace {
  const { width, pauseMs: before } = pace;
  invariant(width >= 1 && width <= WIDTH_MAX, "at least one write may be under way");
  if (outcome === "consumed") {
    if (width >= WIDTH_MAX && before === THROTTLED_PAUSE_MS_MIN) return pace;
    return { width: Math.min(WIDTH_MAX, width + 1), pauseMs: THROTTLED_PAUSE_MS_MIN };
  }
  const longer = Math.min(THROTTLED_PAUSE_MS_MAX, before * 2);
  return {
    width: Math.max(1, Math.floor(width / 2)),
    pauseMs: width === 1 ? longer : before,
  };
}

/**
 * Whether the consumes that wait go now. Where groups have formed, a second write waits for more
 * than half as many consumes as the last one had: two writes that follow each other evenly serve
 * as fast as two at once, with fewer calls.
 */
export function goesNow(
  { width }: Pace,
  underWay: number,
  waiting: number,
  lastSize: number,
): boolean {
  if (underWay === 0) return waiting > 0;
  return underWay < width && waiting > lastSize / 2;
}

/** Returns the pause of one throttled group: between half and one and a half of the average. */
export function throttledPauseMs({ pauseMs: average }: Pace, random: Random): number {
  return (0.5 + random()) * average;
}
