/**
 * The waiters of one queue, in lanes by the limits they consume.
 *
 * Within a lane each waiter needs what those ahead of it need, so only the first one can be next.
 * The first of another lane may go before waiters that came earlier, if it leaves them what they
 * need: it is not held up by a limit that it does not consume.
 */

import type { AmountsByName } from "../acquire-request.ts";

/** A waiter, as far as its place is concerned. */
export interface Laned extends Ticketed {
  readonly request: { readonly amounts: AmountsByName };
}

export class WaiterLanes<W extends Laned> {
  readonly #lanes = new Map<string, WaiterQueue<W>>();
  /** Tokens that all waiters need, by limit. */
  readonly needed = new Map<string, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one that came first. */
  get first(): W | undefined {
    let first: W | undefined;
    for (const { first: other } of this.#lanes.values()) {
      if (other !== undefined && (first === undefined || other.ticket < first.ticket)) {
        first = other;
      }
    }
    return first;
  }

  /** The first of each lane, in the order they came. */
  get heads(): W[] {
    const heads: W[] = [];
    for (const { first } of this.#lanes.values()) if (first !== undefined) heads.push(first);
    return heads.length === 1 ? heads : heads.sort(byTicket);
  }

  /** All of them, in the order they came. */
  get all(): W[] {
    return [...this.#lanes.values()].flatMap((lane) => [...lane]).sort(byTicket);
  }

  /** How many lanes there are. */
  get lanes(): number {
    return this.#lanes.size;
  }

  /** Returns the first of the lane that a waiter belongs to, even if the waiter has left it. */
  nextOf(waiter: W): W | undefined {
    return this.#lanes.get(laneOf(waiter))?.first;
  }

  isHead(waiter: W): boolean {
    return this.nextOf(waiter) === waiter;
  }

  add(waiter: W): void {
    const name = laneOf(waiter);
    const lane = this.#lanes.get(name) ?? new WaiterQueue<W>();
    this.#lanes.set(name, lane);
    lane.add(waiter);
    this.#size += 1;
    addAmounts(this.needed, waiter.request.amounts, 1);
  }

  delete(waiter: W): void {
    const name = laneOf(waiter);
    const lane = this.#lanes.get(name);
    if (lane === undefined) return;
    lane.delete(waiter);
    if (lane.size === 0) this.#lanes.delete(name);
    this.#size -= 1;
    addAmounts(this.needed, waiter.request.amounts, -1);
  }

  /** Adds to `sums` what those need that came before, of the limits that the waiter consumes. */
  addAhead(sums: Map<string, number>, waiter: W): void {
    const { amounts } = waiter.request;
    for (const lane of this.#lanes.values()) {
      const { first } = lane;
      if (first === undefined || !shares(first.request.amounts, amounts)) continue;
      for (const other of lane) {
        if (other.ticket >= waiter.ticket) break;
        addAmounts(sums, other.request.amounts, 1);
      }
    }
  }
}

export function addAmounts(sums: Map<string, number>, amounts: AmountsByName, sign: 1 | -1): void {
  for (const [name, amount] of amounts) sums.set(name, (sums.get(name) ?? 0) + sign * amount);
}

/** Returns the names of the limits that a waiter consumes, joined: the key of its lane. */
function laneOf({ request }: Laned): string {
  const { amounts } = request;
  if (amounts.size === 1) for (const [name, amount] of amounts) return amount > 0 ? name : "";
  const names: string[] = [];
  for (const [name, amount] of amounts) if (amount > 0) names.push(name);
  return names.sort().join(" ");
}

/** Whether both consume one of the limits. */
function shares(one: AmountsByName, other: AmountsByName): boolean {
  for (const [name, amount] of one) if (amount > 0 && (other.get(name) ?? 0) > 0) return true;
  return false;
}

export function byTicket(one: Ticketed, other: Ticketed): number {
  return one.ticket - other.ticket;
}

/** A waiter with its place in the order of arrival. */
interface Ticketed {
  /** Smaller tickets come first; no two are the same. */
  readonly ticket: number;
}

interface Place<W> {
  readonly waiter: W;
  ahead: Place<W> | undefined;
  behind: Place<W> | undefined;
}

/** Keeps waiters ordered by ticket. The first one is added and removed without a search. */
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

  /** Searches from the end: a newcomer is last. A waiter that returns is nearly always first. */
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
