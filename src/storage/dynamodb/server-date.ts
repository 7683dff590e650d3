/** The server's time, as its answers show it. */

import type { Clock } from "../../domain/clock.ts";

/** The `Date` header has whole seconds: on average it is half a second behind. */
const DATE_RESOLUTION_MS = 1000;

export class ServerDate {
  readonly #clock: Clock;
  #text: string | undefined;
  #dateMs: number | undefined;
  #skewMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In the last answer, in whole seconds. */
  get dateMs(): number | undefined {
    return this.#dateMs;
  }

  /** How far the server's clock is ahead of ours. */
  get skewMs(): number | undefined {
    return this.#skewMs;
  }

  /** Takes note of the header of an answer; what it says, if it says anything. */
  see(header: string | undefined): number | undefined {
    if (header === undefined) return undefined;
    // Most answers come within the same second as the one before.
    if (header !== this.#text) {
      const dateMs = Date.parse(header);
      if (Number.isNaN(dateMs)) return undefined;
      this.#text = header;
      this.#dateMs = dateMs;
    }
    this.#skewMs = (this.#dateMs as number) + DATE_RESOLUTION_MS / 2 - this.#clock();
    return this.#dateMs;
  }
}
