/**
 * Consumes of this process, gathered by bucket.
 *
 * While fewer writes of a bucket are under way than its pace allows, a consume goes at once,
 * together with those that came in the same turn of the event loop: nothing waits when nothing is
 * under way. Otherwise it waits for a write to return, and then all that wait go in one write.
 */

import type { Deadline, Timer } from "../../../base/time.ts";
import { bucketId } from "../../../records/keys.ts";
import type { Leg } from "../../leg.ts";
import { GROUP_MAX } from "../plan/group-plan.ts";
import { Alarm } from "./alarm.ts";
import type { Driver } from "./driver.ts";
import { ConsumeGroup, WaitingConsume } from "./group.ts";
import { FULL_PACE, goesNow, type Pace } from "./pacing.ts";
import type { ConsumeAnswer } from "./step.ts";

/** Its `then` runs a function at the end of this turn, at less cost than `queueMicrotask`. */
const SOON = Promise.resolve();

/** The consumes of one bucket. */
export class ConsumeQueue {
  readonly id: string;
  readonly waiting: WaitingConsume[] = [];
  readonly alarm: Alarm;
  pace: Pace = FULL_PACE;
  underWay = 0;
  /** How many consumes the last write had. */
  lastSize = 0;
  isScheduled = false;

  constructor(id: string, alarm: Alarm) {
    this.id = id;
    this.alarm = alarm;
  }

  get goesNow(): boolean {
    return goesNow(this.pace, this.underWay, this.waiting.length, this.lastSize);
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.underWay === 0;
  }

  /** Removes the first waiters that have the same limits as the first, up to a bound. */
  take(bound: number, config = this.waiting[0]?.leg.config): WaitingConsume[] {
    if (config === undefined) return [];
    const taken: WaitingConsume[] = [];
    const left: WaitingConsume[] = [];
    for (const waiter of this.waiting) {
      if (!waiter.isOpen) continue;
      const joins = taken.length < bound && isSameConfig(waiter.leg.config, config);
      (joins ? taken : left).push(waiter);
    }
    this.waiting.splice(0, this.waiting.length, ...left);
    return taken;
  }
}

export class Consumer {
  readonly #queues = new Map<string, ConsumeQueue>();
  readonly #driver: Driver;
  readonly #alarm: Alarm;

  constructor(driver: Driver, timer: Timer) {
    this.#driver = driver;
    this.#alarm = new Alarm(timer);
  }

  /** Consumes from one bucket, or refuses by the newest state of it. */
  consume(leg: Leg, deadline: Deadline, signal?: AbortSignal): Promise<ConsumeAnswer> {
    const id = bucketId(leg);
    const queue = this.#queueOf(id);
    return new Promise((resolve, reject) => {
      const waiter = new WaitingConsume(leg, deadline, resolve, reject);
      queue.waiting.push(waiter);
      if (queue.goesNow) this.#schedule(queue);
      else this.#await(queue, waiter, signal);
    });
  }

  /** Consumes of the same turn are all here before this runs. */
  #schedule(queue: ConsumeQueue): void {
    if (queue.isScheduled) return;
    queue.isScheduled = true;
    void SOON.then(() => {
      queue.isScheduled = false;
      this.#start(queue);
    });
  }

  /** A consume that waits behind others ends at its deadline, or when its caller gives up. */
  #await(queue: ConsumeQueue, waiter: WaitingConsume, signal: AbortSignal | undefined): void {
    queue.alarm.watch(waiter);
    if (signal === undefined) return;
    const leave = () => {
      const at = queue.waiting.indexOf(waiter);
      if (at < 0) return;
      queue.waiting.splice(at, 1);
      waiter.fail(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiter.onEnd = () => signal.removeEventListener("abort", leave);
  }

  #queueOf(id: string): ConsumeQueue {
    const known = this.#queues.get(id);
    if (known !== undefined) return known;
    const queue = new ConsumeQueue(id, this.#alarm);
    this.#queues.set(id, queue);
    return queue;
  }

  #start(queue: ConsumeQueue): void {
    while (queue.goesNow) {
      const members = queue.take(GROUP_MAX);
      if (members.length === 0) break;
      queue.underWay += 1;
      queue.lastSize = members.length;
      if (members.length > 1) for (const member of members) queue.alarm.watch(member);
      void this.#run(queue, new ConsumeGroup(members, this.#driver.nowMs));
    }
    // A consume that left meanwhile may leave too few of them for a write.
    for (const waiter of queue.waiting) queue.alarm.watch(waiter);
  }

  async #run(queue: ConsumeQueue, group: ConsumeGroup): Promise<void> {
    await this.#driver.run(group, queue);
    queue.underWay -= 1;
    if (queue.waiting.length > 0) this.#schedule(queue);
    if (queue.isIdle) this.#queues.delete(queue.id);
  }
}

function isSameConfig(one: Leg["config"], other: Leg["config"]): boolean {
  if (one === other) return true;
  return (
    one.limits === other.limits &&
    one.version === other.version &&
    one.source === other.source &&
    one.forced === other.forced &&
    one.cascade === other.cascade &&
    one.bypass === other.bypass
  );
}
