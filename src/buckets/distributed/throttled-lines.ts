/**
 * Calls that met a busy shard wait in line, one line per bucket, and only a few of them try again
 * at a time. Whoever hammers a throttled partition keeps it too busy even to be split, and all
 * calls of all processes together would be most of its load.
 *
 * How many try at once is found out as networks do it: one more for every answer, half as many when
 * the store throttles again, and when it is down to one, with longer pauses.
 */

import type { Random } from "../../domain/chance.ts";
import type { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";

/** The store throttles what was asked for. */
export interface Busy {
  readonly kind: "busy";
  readonly cause: RateLimiterUnavailable;
}

const PAUSE_MS_MIN = 2;
const PAUSE_MS_MAX = 250;

interface Line {
  /** First come, first served. */
  readonly waiting: (() => void)[];
  trying: number;
  triesMax: number;
  pauseMs: number;
}

export class ThrottledLines {
  readonly #lines = new Map<string, Line>();
  readonly #timer: Timer;
  readonly #random: Random;

  constructor(timer: Timer, random: Random) {
    this.#timer = timer;
    this.#random = random;
  }

  /** Tries again, in turn, until it is not busy any more; throws the cause when the time is over. */
  async through<T extends { readonly kind: string }>(
    id: string,
    { cause }: Busy,
    deadline: number,
    attempt: () => Promise<T | Busy>,
  ): Promise<Exclude<T, Busy>> {
    const line = this.#lines.get(id) ?? {
      waiting: [],
      trying: 0,
      triesMax: 1,
      pauseMs: PAUSE_MS_MIN,
    };
    this.#lines.set(id, line);
    let mine = await this.#turn(line, "last", deadline);
    try {
      for (;;) {
        if (!mine) throw cause;
        await this.#pause(line, cause, deadline);
        const result = await attempt();
        if (!isBusy(result)) {
          line.triesMax += 1;
          line.pauseMs = PAUSE_MS_MIN;
          return result as Exclude<T, Busy>;
        }
        if (line.triesMax === 1) line.pauseMs = Math.min(PAUSE_MS_MAX, line.pauseMs * 2);
        line.triesMax = Math.max(1, Math.floor(line.triesMax / 2));
        if (line.trying <= line.triesMax) continue;
        line.trying -= 1;
        mine = await this.#turn(line, "first", deadline);
      }
    } finally {
      if (mine) this.#leave(id, line);
    }
  }

  /** Waits for a turn, and counts as trying then; `false` when the time was over before. */
  async #turn(line: Line, place: "first" | "last", deadline: number): Promise<boolean> {
    if (line.trying < line.triesMax) {
      line.trying += 1;
      return true;
    }
    const over = new AbortController();
    let mine = false;
    const called = () => {
      mine = true;
      over.abort();
    };
    if (place === "first") line.waiting.unshift(called);
    else line.waiting.push(called);
    await this.#timer.sleep(Math.max(0, deadline - this.#timer.nowMs()), over.signal);
    if (!mine) line.waiting.splice(line.waiting.indexOf(called), 1);
    return mine;
  }

  async #pause({ pauseMs }: Line, cause: RateLimiterUnavailable, deadline: number): Promise<void> {
    const leftMs = deadline - this.#timer.nowMs();
    if (leftMs <= PAUSE_MS_MIN) throw cause;
    await this.#timer.sleep(Math.min((0.5 + this.#random()) * pauseMs, leftMs / 2));
  }

  #leave(id: string, line: Line): void {
    line.trying -= 1;
    while (line.trying < line.triesMax) {
      const next = line.waiting.shift();
      if (next === undefined) break;
      line.trying += 1;
      next();
    }
    if (line.trying === 0 && line.waiting.length === 0) this.#lines.delete(id);
  }
}

function isBusy(result: { readonly kind: string }): result is Busy {
  return result.kind === "busy";
}
