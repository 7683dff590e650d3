/** Waiters by their tickets. The first one comes and goes without a look at those behind it. */

/** What a queue needs to know of a waiter. */
export interface Ticketed {
  /** Smaller tickets come first; no two are the same. */
  readonly ticket: number;
}

interface Place<W> {
  readonly waiter: W;
  ahead: Place<W> | undefined;
  behind: Place<W> | undefined;
}

export class WaiterQueue<W extends Ticketed> implements Iterable<W> {
  readonly #places = new Map<W, Place<W>>();
  #first: Place<W> | undefined;
  #last: Place<W> | undefined;

  get size(): number {
    return this.#places.size;
  }

  get first(): W | undefined {
    return this.#first?.waiter;
  }

  /** A newcomer is the last one; a waiter that comes back is nearly always the first one. */
  add(waiter: W): void {
    let ahead = this.#last;
    if (this.#first !== undefined && waiter.ticket < this.#first.waiter.ticket) ahead = undefined;
    while (ahead !== undefined && ahead.waiter.ticket > waiter.ticket) ahead = ahead.ahead;
    const behind = ahead === undefined ? this.#first : ahead.behind;
    const place = { waiter, ahead, behind };
    this.#places.set(waiter, place);
    if (ahead === undefined) this.#first = place;
    else ahead.behind = place;
    if (behind === undefined) this.#last = place;
    else behind.ahead = place;
  }

  delete(waiter: W): void {
    const place = this.#places.get(waiter);
    if (place === undefined) return;
    this.#places.delete(waiter);
    const { ahead, behind } = place;
    if (ahead === undefined) this.#first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
  }

  /** From the first to the last. The waiter that was handed out last may leave meanwhile. */
  *[Symbol.iterator](): Generator<W> {
    for (let place = this.#first; place !== undefined; ) {
      const { behind, waiter } = place;
      yield waiter;
      place = behind;
    }
  }
}
