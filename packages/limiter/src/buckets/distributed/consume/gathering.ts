/**
 * Work of this process on one thing, done together: while some is under way, further work gathers
 * and goes in one piece when that returns. Work of the same turn of the event loop goes together at
 * no wait. What is done together ends at the latest deadline, and calls need not wait for that.
 */

import type { Deadline, Timer } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { Alarm, type Watched } from "./alarm.ts";

/** What has an end. */
interface Due {
  readonly deadline: Deadline;
}

interface Gathered<Work> extends Watched {
  readonly work: Work;
  isOpen: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Place<Work> {
  waiting: Gathered<Work>[];
  underWay: number;
  isScheduled: boolean;
}

export interface GatheringOptions<Work> {
  /** How much may be under way at a place before further work gathers. */
  readonly width: number;
  readonly timer: Timer;
  readonly run: (works: readonly Work[]) => Promise<void>;
  /**
   * Returns the error of a call whose deadline is over while its work waits: then the work is not
   * done. Absent: the call ends well at its deadline, and the work goes on without it.
   */
  readonly overdue?: (() => Error) | undefined;
}

export class Gathering<Work extends Due> {
  readonly #places = new Map<string, Place<Work>>();
  readonly #options: GatheringOptions<Work>;
  readonly #alarm: Alarm;
  readonly #running = new Set<Promise<void>>();

  constructor(options: GatheringOptions<Work>) {
    this.#options = options;
    this.#alarm = new Alarm(options.timer);
  }

  /** Resolves, or rejects, with all the work that was done together with it, or at its deadline. */
  add(id: string, work: Work): Promise<void> {
    const place = this.#places.get(id) ?? { waiting: [], underWay: 0, isScheduled: false };
    this.#places.set(id, place);
    return new Promise((resolve, reject) => {
      const { deadline } = work;
      const expire = () => this.#expire(place, one);
      const one: Gathered<Work> = {
        work,
        deadline,
        isOpen: true,
        isWatched: false,
        resolve,
        reject,
        expire,
      };
      place.waiting.push(one);
      if (place.underWay < this.#options.width) this.#schedule(id, place);
      else this.#alarm.watch(one);
    });
  }

  /** Resolves when no work is under way, or waits to be. */
  async idle(): Promise<void> {
    while (this.#places.size > 0) await Promise.all([...this.#running, Promise.resolve()]);
  }

  #expire(place: Place<Work>, one: Gathered<Work>): void {
    const { overdue } = this.#options;
    one.isOpen = false;
    if (overdue === undefined) {
      one.resolve();
      return;
    }
    place.waiting = place.waiting.filter((other) => other !== one);
    one.reject(overdue());
  }

  #schedule(id: string, place: Place<Work>): void {
    if (place.isScheduled) return;
    place.isScheduled = true;
    queueMicrotask(() => {
      place.isScheduled = false;
      if (place.waiting.length === 0) return this.#removeIdle(id, place);
      const running = this.#start(id, place);
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    });
  }

  async #start(id: string, place: Place<Work>): Promise<void> {
    const together = place.waiting;
    place.waiting = [];
    place.underWay += 1;
    const { run, overdue } = this.#options;
    for (const one of together) {
      // The answer to what is sent tells more than that it is late.
      if (overdue !== undefined) one.isOpen = false;
      else if (together.length > 1) this.#alarm.watch(one);
    }
    try {
      await run(together.map(({ work }) => work));
      for (const one of together) one.resolve();
    } catch (error) {
      for (const one of together) one.reject(error);
    }
    for (const one of together) one.isOpen = false;
    place.underWay -= 1;
    invariant(place.underWay >= 0, "what has ended was under way");
    if (place.waiting.length > 0) this.#schedule(id, place);
    else this.#removeIdle(id, place);
  }

  #removeIdle(id: string, place: Place<Work>): void {
    if (place.underWay === 0) this.#places.delete(id);
  }
}
