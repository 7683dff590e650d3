/** The numbers of limits in time, with the boundaries that were computed last. */

import { boundedMap } from "../base/bounded-map.ts";
import { type Rate, shardRate } from "../core/bucket.ts";
import { type RateInTime, type RateSchedule, rateInWindow } from "../core/rate-schedule.ts";
import { changeAfter, openAt, type Windows } from "../core/window-edges.ts";
import { cronOf } from "./periods.ts";
import { localClock } from "./zone.ts";

/** Schedules whose boundaries are remembered. Tenants share schedules, so there are few. */
const SCHEDULES_MAX = 1000;
/** Stretches that are remembered of each: now, and those that a long idle bucket has passed. */
const STRETCHES_MAX = 128;

/** A time in which the same window is open; -1: none. */
interface Stretch {
  readonly fromMs: number;
  readonly endMs: number;
  readonly window: number;
}

interface Known {
  readonly windows: Windows;
  latest: Stretch;
  readonly others: Map<number, Stretch>;
}

const NO_STRETCH: Stretch = { fromMs: 0, endMs: 0, window: -1 };

/** Computes which numbers a limit has by the clocks of zones. */
class Schedules {
  readonly #known = boundedMap<Known>(SCHEDULES_MAX);
  /** The rates of the windows of a limit: each is one object. */
  readonly #rates = new WeakMap<Rate, readonly Rate[]>();

  /** Returns the numbers that a limit has at an instant, without its windows. */
  rateAt(rate: Rate, ms: number): Rate {
    const { schedule } = rate;
    if (schedule === undefined) return rate;
    return this.ratesOf(rate)[this.#stretch(schedule, ms).window + 1] as Rate;
  }

  /** Returns the first boundary after an instant; `Infinity` without windows. */
  endAt({ schedule }: Rate, ms: number): number {
    return schedule === undefined ? Number.POSITIVE_INFINITY : this.#stretch(schedule, ms).endMs;
  }

  /** Returns all numbers that a limit may have: those without a window first. */
  ratesOf(rate: Rate): readonly Rate[] {
    const known = this.#rates.get(rate);
    if (known !== undefined) return known;
    const { capacityMilli, refillMilli, periodMs } = rate;
    const base = Object.freeze({ capacityMilli, refillMilli, periodMs });
    const windows = rate.schedule?.windows ?? [];
    const rates = [base, ...windows.map((window) => Object.freeze(rateInWindow(base, window)))];
    this.#rates.set(rate, rates);
    return rates;
  }

  /** Returns the numbers of a limit, or of a shard of it, in time. */
  inTime(rate: Rate, shard = 0, count = 1): RateInTime {
    return {
      rateAt: (ms) => shardRate(this.rateAt(rate, ms), shard, count),
      endAt: (ms) => this.endAt(rate, ms),
      all: () => this.ratesOf(rate).map((each) => shardRate(each, shard, count)),
    };
  }

  #stretch(schedule: RateSchedule, ms: number): Stretch {
    const known = this.#windowsOf(schedule);
    const { latest, others } = known;
    if (ms >= latest.fromMs && ms < latest.endMs) return latest;
    const before = others.get(ms);
    if (before !== undefined) {
      known.latest = before;
      return before;
    }
    const made = {
      fromMs: ms,
      endMs: changeAfter(known.windows, ms),
      window: openAt(known.windows, ms),
    };
    // Walks go from boundary to boundary, so each of them begins with one that is asked again.
    if (others.size >= STRETCHES_MAX) others.clear();
    others.set(ms, made);
    known.latest = made;
    return made;
  }

  #windowsOf({ timeZone, windows }: RateSchedule): Known {
    const key = `${timeZone}\n${windows.map(({ cron }) => cron).join(";")}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = {
      windows: {
        crons: windows.map(({ cron }) => cronOf(cron)),
        offsetAt: localClock(timeZone),
      },
      latest: NO_STRETCH,
      others: new Map<number, Stretch>(),
    };
    this.#known.set(key, made);
    return made;
  }
}

/** Schedules by the zones of this Node. */
export const SCHEDULES = new Schedules();
