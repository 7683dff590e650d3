/**
 * How long a group waits before it tries again, and how many writes of a bucket this process has
 * under way.
 *
 * A write that other clients have overtaken goes again at once a few times, since its answer shows
 * the item, and then after a pause with jitter. Where the store throttles, this process halves its
 * writes under way, and when it is down to one, doubles its pauses: all calls of all processes
 * together would keep a throttled shard too busy even to be split.
 */

import type { Random } from "../../../base/random.ts";
import { invariant } from "../../../domain/check.ts";

/** The most writes of a bucket under way before further consumes gather. */
export const WIDTH_MAX = 2;

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
