/**
 * Work of this process on one thing, done together: while some is under way, further work gathers
 * and goes in one piece when that returns. Work of the same turn of the event loop goes together at
 * no wait.
 */

import { invariant } from "../../domain/check.ts";

interface Gathered<Work> {
  readonly work: Work;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Place<Work> {
  waiting: Gathered<Work>[];
  underWay: number;
  isScheduled: boolean;
}

export class Gathering<Work> {
  readonly #places = new Map<string, Place<Work>>();
  readonly #width: number;
  readonly #run: (works: readonly Work[]) => Promise<void>;

  /** `width`: how much may be under way at a place before further work gathers. */
  constructor(width: number, run: (works: readonly Work[]) => Promise<void>) {
    this.#width = width;
    this.#run = run;
  }

  /** Resolves, or rejects, with all the work that was done together with it. */
  add(id: string, work: Work): Promise<void> {
    const place = this.#places.get(id) ?? { waiting: [], underWay: 0, isScheduled: false };
    this.#places.set(id, place);
    return new Promise((resolve, reject) => {
      place.waiting.push({ work, resolve, reject });
      if (place.underWay < this.#width) this.#schedule(id, place);
    });
  }

  #schedule(id: string, place: Place<Work>): void {
    if (place.isScheduled) return;
    place.isScheduled = true;
    queueMicrotask(() => {
      place.isScheduled = false;
      void this.#start(id, place);
    });
  }

  async #start(id: string, place: Place<Work>): Promise<void> {
    const together = place.waiting;
    place.waiting = [];
    place.underWay += 1;
    try {
      await this.#run(together.map(({ work }) => work));
      for (const { resolve } of together) resolve();
    } catch (error) {
      for (const { reject } of together) reject(error);
    }
    place.underWay -= 1;
    invariant(place.underWay >= 0, "what has ended was under way");
    if (place.waiting.length > 0) this.#schedule(id, place);
    else if (place.underWay === 0) this.#places.delete(id);
  }
}
