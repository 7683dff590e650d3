/** The server's time, as its answers show it. */

import type { Clock } from "../../../base/time.ts";

/** The `Date` header has whole seconds. */
const DATE_RESOLUTION_MS = 1000;

/** A busy server may send a date that is seconds old, but hardly this many times in a row. */
const ANSWERS = 8;

export class ServerDate {
  readonly #clock: Clock;
  #text: string | undefined;
  #dateMs: number | undefined;
  /** What the last answers have shown, in turn. */
  readonly #skewsMs: number[] = [];
  #answers = 0;
  #skewMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In the last answer, in whole seconds. */
  get dateMs(): number | undefined {
    return this.#dateMs;
  }

  /** How far the server's clock is ahead of ours, as far as all of the last answers prove. */
  get skewMs(): number | undefined {
    return this.#skewMs;
  }

  /** Returns the time at which a request is sent, for `see`. */
  now(): number {
    return this.#clock();
  }

  /**
   * Takes note of the `Date` header of an answer, and returns the time in it, if any.
   *
   * The server wrote it at some time between the request and now. Where both clocks may have shown
   * the same then, nothing is proven: an answer that took seconds says little about clocks.
   */
  see(header: string | undefined, sentAtMs: number): number | undefined {
    if (header === undefined) return undefined;
    // Most answers come within the same second as the one before.
    if (header !== this.#text) {
      const dateMs = Date.parse(header);
      if (Number.isNaN(dateMs)) return undefined;
      this.#text = header;
      this.#dateMs = dateMs;
    }
    const dateMs = this.#dateMs as number;
    const least = dateMs - this.#clock();
    const most = dateMs + DATE_RESOLUTION_MS - sentAtMs;
    this.#skewsMs[this.#answers % ANSWERS] = least <= 0 && most >= 0 ? 0 : (least + most) / 2;
    this.#answers += 1;
    this.#skewMs = this.#skewsMs.reduce((one, other) =>
      Math.abs(other) < Math.abs(one) ? other : one,
    );
    return dateMs;
  }
}
