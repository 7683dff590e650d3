/** Calendar windows in UTC: the hours, days and months that usage is counted by. */

/** The window types, from fine to coarse. */
export const WINDOW_TYPES = ["hourly", "daily", "monthly"] as const;

/**
 * How usage is grouped in time.
 *
 * @example
 * ```ts
 * import type { WindowType } from 'zae-limiter';
 * const window: WindowType = 'daily';
 * ```
 */
export type WindowType = (typeof WINDOW_TYPES)[number];

/** Returns whether a text is the name of a window type. */
export function isWindowType(text: string | undefined): text is WindowType {
  return WINDOW_TYPES.some((type) => type === text);
}

/** Returns the first millisecond of the window that holds `ms`. */
export function windowStartMs(type: WindowType, ms: number): number {
  const date = new Date(ms);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (type === "hourly") return Date.UTC(year, month, day, date.getUTCHours());
  if (type === "daily") return Date.UTC(year, month, day);
  return Date.UTC(year, month, 1);
}

/** Returns the first millisecond after the window that holds `ms`. */
export function windowEndMs(type: WindowType, ms: number): number {
  const start = new Date(windowStartMs(type, ms));
  const [year, month, day] = [start.getUTCFullYear(), start.getUTCMonth(), start.getUTCDate()];
  if (type === "hourly") return Date.UTC(year, month, day, start.getUTCHours() + 1);
  if (type === "daily") return Date.UTC(year, month, day + 1);
  return Date.UTC(year, month + 1, 1);
}

/** Formats a time as `YYYY-MM-DDTHH:MM:SSZ`, the format of every stored record. */
export function isoSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
