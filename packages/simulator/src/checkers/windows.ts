/**
 * Windows of the day and of the week in which a limit has other numbers, read from what is stored:
 * `1h9-11s500;h14w6,7c10a2p60` are half of the numbers from nine to twelve, and others from two to
 * three at weekends. Whole hours of UTC, which is what simulated runs have. The windows of the
 * library have no part in it.
 */

/** Milli-tokens and milliseconds, undivided. */
export interface Numbers {
  readonly capacity: number;
  readonly refill: number;
  readonly period: number;
}

interface Window {
  readonly hours: readonly number[];
  readonly weekdays: readonly number[];
  readonly numbersOf: (base: Numbers) => Numbers;
}

/** The windows of a limit. */
export interface Windows {
  readonly text: string;
  /** Lists the numbers that a limit may have. */
  allOf(base: Numbers): readonly Numbers[];
  numbersAt(base: Numbers, ms: number): Numbers;
  /** Returns the first instant after another at which other windows are open. */
  endAt(ms: number): number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOURS_A_DAY = 24;
const DAYS_A_WEEK = 7;
/** The first of January 1970 was a Thursday. */
const FIRST_WEEKDAY = 4;
const WINDOW = /^(?:h([\d,-]+))?(?:w([\d,-]+))?(?:s(\d+)|(?:c(\d+))?(?:a(\d+))?(?:p(\d+))?)$/;

const known = new Map<string, Windows>();

/** Reads windows as a shard stores them. */
export function windowsIn(text: string): Windows {
  const before = known.get(text);
  if (before !== undefined) return before;
  const read = new HourlyWindows(text);
  known.set(text, read);
  return read;
}

class HourlyWindows implements Windows {
  readonly text: string;
  readonly #windows: readonly Window[];
  #latest = { fromMs: 0, endMs: 0 };

  constructor(text: string) {
    this.text = text;
    this.#windows = text.slice(1).split(";").map(windowIn);
  }

  allOf(base: Numbers): readonly Numbers[] {
    return [base, ...this.#windows.map(({ numbersOf }) => numbersOf(base))];
  }

  numbersAt(base: Numbers, ms: number): Numbers {
    return this.#openAt(ms)?.numbersOf(base) ?? base;
  }

  endAt(ms: number): number {
    const { fromMs, endMs } = this.#latest;
    if (ms >= fromMs && ms < endMs) return endMs;
    const open = this.#openAt(ms);
    const lastMs = ms + (DAYS_A_WEEK + 1) * DAY_MS;
    let edgeMs = (Math.floor(ms / HOUR_MS) + 1) * HOUR_MS;
    while (edgeMs < lastMs && this.#openAt(edgeMs) === open) edgeMs += HOUR_MS;
    this.#latest = { fromMs: ms, endMs: edgeMs };
    return edgeMs;
  }

  #openAt(ms: number): Window | undefined {
    const hour = Math.floor(ms / HOUR_MS) % HOURS_A_DAY;
    const weekday = ((Math.floor(ms / DAY_MS) + FIRST_WEEKDAY - 1) % DAYS_A_WEEK) + 1;
    return this.#windows.find(
      ({ hours, weekdays }) => hours.includes(hour) && weekdays.includes(weekday),
    );
  }
}

function windowIn(entry: string): Window {
  const match = WINDOW.exec(entry);
  if (match === null) throw new Error(`a run has a window that is not of whole hours: ${entry}`);
  const [, hours, weekdays, scale, capacity, amount, period] = match;
  const tokens = (value: string | undefined, otherwise: number) =>
    value === undefined ? otherwise : Number(value) * 1000;
  const scaled = (milli: number) =>
    Math.max(1, Number((BigInt(milli) * BigInt(scale ?? 1000)) / 1000n));
  return {
    hours: valuesIn(hours, 0, HOURS_A_DAY - 1),
    weekdays: valuesIn(weekdays, 1, DAYS_A_WEEK),
    numbersOf: (base) => ({
      capacity: tokens(capacity, scaled(base.capacity)),
      refill: tokens(amount, scaled(base.refill)),
      period: tokens(period, base.period),
    }),
  };
}

function valuesIn(text: string | undefined, least: number, most: number): readonly number[] {
  return (text ?? `${least}-${most}`).split(",").flatMap((part) => {
    const [from = least, to = from] = part.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, at) => from + at);
  });
}
