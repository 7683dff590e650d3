/** The windows that a chart shows: all of a range, also those in which nothing was consumed. */

export type UsageWindow = "hourly" | "daily" | "monthly";

/** Two times in ISO 8601. A window belongs to the range when it begins in it. */
export interface TimeRange {
  readonly start: string;
  readonly end: string;
}

/** Seconds of a window; a month is about so long. */
export const WINDOW_SECONDS: Readonly<Record<UsageWindow, number>> = {
  hourly: 3600,
  daily: 86_400,
  monthly: 30 * 86_400,
};

/** More bars than this are thinner than a pixel. */
const WINDOWS_MAX = 1000;

/**
 * Returns when each window of a chart begins, in seconds since 1970, in order. A range of too many
 * windows has its first, its last, and those with usage. Pure.
 */
export function chartWindows(
  window: UsageWindow,
  range: TimeRange,
  used: readonly string[],
): readonly number[] {
  const [start, end] = [secondsOf(range.start), secondsOf(range.end)];
  const first = startOf(window, start, start);
  const last = startOf(window, end);
  const starts = new Set(used.map(secondsOf));
  const isLong = (end - start) / WINDOW_SECONDS[window] > WINDOWS_MAX;
  if (first <= last) {
    starts.add(first).add(last);
    for (let at = first; !isLong && at < last; at = nextOf(window, at)) starts.add(at);
  }
  return [...starts].sort((left, right) => left - right);
}

function secondsOf(iso: string): number {
  return Date.parse(iso) / 1000;
}

/** Returns when the window of a time begins; the next window when that is before `notBefore`. */
function startOf(window: UsageWindow, seconds: number, notBefore = -Infinity): number {
  const date = new Date(seconds * 1000);
  const start =
    window === "monthly"
      ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000
      : Math.floor(seconds / WINDOW_SECONDS[window]) * WINDOW_SECONDS[window];
  return start < notBefore ? nextOf(window, start) : start;
}

function nextOf(window: UsageWindow, start: number): number {
  if (window !== "monthly") return start + WINDOW_SECONDS[window];
  const date = new Date(start * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / 1000;
}
