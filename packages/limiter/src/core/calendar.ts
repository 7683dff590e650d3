/**
 * Periods between instants of a local clock.
 *
 * A local time is the number of milliseconds that the local clock shows, counted as if it were UTC.
 * An edge is the first instant at which the local clock shows a boundary or a later time: where the
 * clock is set forward over a boundary, the edge is the instant of the change; where it is set back
 * and shows a boundary again, nothing happens the second time.
 */

import { type Cron, DAY_MS, MINUTE_MS, matchesDay, midnightOf } from "./cron.ts";

const HOUR_MS = 3_600_000;
/** No offset is larger, and no clock has been set by more. */
const REACH_MS = 26 * HOUR_MS;
/** A zone changes its offset at most once in this time. */
const STEP_MS = 13 * HOUR_MS;
/** 29 February falls on a given weekday every 40 years at the rarest. */
const FARTHEST_DAYS = 41 * 366;
/** The time whose edges are counted in one step. */
const COUNTED_MS = 64 * DAY_MS;
/** Clients whose zones differ in their data disagree about an edge by a day at most. */
const GUARD_MAX_MS = DAY_MS;

/** Returns the milliseconds by which the local clock is ahead of UTC at an instant. */
export type OffsetAt = (ms: number) => number;

/** The time that an allowance covers: from `startMs` until just before `endMs`. */
export interface Period {
  /** The first millisecond of the period. */
  readonly startMs: number;
  /** The first millisecond after the period. */
  readonly endMs: number;
}

/** The boundaries of a quota and the local clock that reaches them. */
export interface Calendar {
  /** Each of them begins periods; at least one has an edge. */
  readonly crons: readonly Cron[];
  readonly offsetAt: OffsetAt;
}

/** Returns whether an expression ever begins to match; `* * * * *` always matches. */
export function hasEdges(cron: Cron): boolean {
  return boundaryAfter(cron, 0) !== undefined;
}

/** Returns the period that holds an instant. */
export function periodOf(calendar: Calendar, ms: number): Period {
  const shownMs = latestShown(calendar.offsetAt, ms);
  const before = pick(calendar, Math.max, (cron) => boundaryUntil(cron, shownMs));
  const after = pick(calendar, Math.min, (cron) => boundaryAfter(cron, shownMs));
  return {
    startMs: before === undefined ? ms : firstInstant(calendar.offsetAt, before),
    endMs: after === undefined ? Number.MAX_SAFE_INTEGER : firstInstant(calendar.offsetAt, after),
  };
}

/** Returns the first edge after an instant. */
export function edgeAfter(calendar: Calendar, ms: number): number {
  return periodOf(calendar, ms).endMs;
}

/**
 * Returns the period that the first call at or after a stored end opens. Its end lies beyond that
 * end by half of the shorter period next to it, or by a day: another client, whose zone has other
 * data, may have stored an end that lies shortly before an edge of this one.
 */
export function nextPeriodOf(calendar: Calendar, nowMs: number, storedEndMs: number): Period {
  const current = periodOf(calendar, nowMs);
  const guardedMs = storedEndMs + guardMs(calendar, storedEndMs);
  const endMs = guardedMs < current.endMs ? current.endMs : edgeAfter(calendar, guardedMs);
  return { startMs: Math.max(current.startMs, Math.min(storedEndMs, nowMs)), endMs };
}

/** Returns the number of edges from a stored end, which counts, until now; at most `atMost`. */
export function resetsUntil(
  calendar: Calendar,
  storedEndMs: number,
  nowMs: number,
  atMost: number,
): number {
  if (nowMs < storedEndMs) return 0;
  const firstMs = edgeAfter(calendar, storedEndMs + guardMs(calendar, storedEndMs));
  if (firstMs > nowMs || atMost < 2) return Math.min(atMost, 1);
  return Math.min(atMost, 2 + countEdges(calendar, firstMs, nowMs, atMost - 2));
}

/**
 * Counts the edges after an instant until another one, and may stop at `enough`. Boundaries are
 * counted by local days: to compute each edge would take minutes where thousands have passed.
 */
function countEdges(calendar: Calendar, afterMs: number, untilMs: number, enough: number): number {
  const { offsetAt } = calendar;
  let count = 0;
  let shownMs = latestShown(offsetAt, afterMs);
  for (let atMs = afterMs; atMs < untilMs && count < enough; atMs += COUNTED_MS) {
    const endMs = Math.min(atMs + COUNTED_MS, untilMs);
    for (const { fromMs, toMs, offsetMs } of stretches(offsetAt, atMs + 1, endMs + 1)) {
      const [firstMs, lastMs] = [fromMs + offsetMs, toMs - 1 + offsetMs];
      // Boundaries that the clock leaves out, and the one that it is set to, are one edge.
      if (firstMs > shownMs) count += Math.min(1, countBoundaries(calendar, shownMs, firstMs));
      shownMs = Math.max(shownMs, firstMs);
      count += countBoundaries(calendar, shownMs, lastMs);
      shownMs = Math.max(shownMs, lastMs);
    }
  }
  return count;
}

/** Counts the boundaries of the local clock after a local time until another one. */
function countBoundaries({ crons }: Calendar, afterMs: number, untilMs: number): number {
  let count = 0;
  for (let midnightMs = midnightOf(afterMs); midnightMs <= untilMs; midnightMs += DAY_MS) {
    const minutes = crons.flatMap((cron) =>
      matchesDay(cron, midnightMs) ? edgesOf(cron, midnightMs) : [],
    );
    const isWhole = midnightMs > afterMs && midnightMs + DAY_MS <= untilMs;
    if (isWhole && crons.length === 1) count += minutes.length;
    else {
      const times = new Set(minutes.map((minute) => midnightMs + minute * MINUTE_MS));
      for (const ms of times) if (ms > afterMs && ms <= untilMs) count += 1;
    }
  }
  return count;
}

/** Returns half of the shorter of the two periods at the edge nearest to a stored end. */
function guardMs(calendar: Calendar, storedEndMs: number): number {
  const around = periodOf(calendar, storedEndMs);
  const isStart = storedEndMs - around.startMs <= around.endMs - storedEndMs;
  const neighbour = isStart
    ? periodOf(calendar, around.startMs - 1)
    : periodOf(calendar, around.endMs);
  const shorter = Math.min(around.endMs - around.startMs, neighbour.endMs - neighbour.startMs);
  return Math.min(Math.floor(shorter / 2), GUARD_MAX_MS);
}

/** Returns the first instant at which the local clock shows a time or a later one. */
export function firstInstant(offsetAt: OffsetAt, localMs: number): number {
  for (const { fromMs, toMs, offsetMs } of stretches(
    offsetAt,
    localMs - REACH_MS,
    localMs + REACH_MS,
  )) {
    const ms = Math.max(fromMs, localMs - offsetMs);
    if (ms < toMs) return ms;
  }
  return localMs - offsetAt(localMs);
}

/** Returns the latest time that the local clock has shown until an instant. */
export function latestShown(offsetAt: OffsetAt, ms: number): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { toMs, offsetMs } of stretches(offsetAt, ms - REACH_MS, ms + 1)) {
    latest = Math.max(latest, toMs - 1 + offsetMs);
  }
  return latest;
}

/** A time in which the local clock is not set. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offsetMs: number;
}

/** Cuts a time at the instants at which the local clock is set. */
export function stretches(offsetAt: OffsetAt, fromMs: number, toMs: number): Stretch[] {
  const found: Stretch[] = [];
  let [startMs, offsetMs] = [fromMs, offsetAt(fromMs)];
  for (let ms = fromMs; ms < toMs; ) {
    const nextMs = Math.min(ms + STEP_MS, toMs);
    const nextOffsetMs = offsetAt(nextMs);
    if (nextOffsetMs !== offsetMs) {
      const setMs = changeBetween(offsetAt, ms, nextMs, offsetMs);
      found.push({ fromMs: startMs, toMs: setMs, offsetMs });
      [startMs, offsetMs] = [setMs, nextOffsetMs];
    }
    ms = nextMs;
  }
  found.push({ fromMs: startMs, toMs, offsetMs });
  return found;
}

/** Returns the first instant whose offset is another than that at `lowMs`. */
function changeBetween(
  offsetAt: OffsetAt,
  lowMs: number,
  highMs: number,
  offsetMs: number,
): number {
  let [low, high] = [lowMs, highMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === offsetMs) low = middle;
    else high = middle;
  }
  return high;
}

function pick(
  { crons }: Calendar,
  choose: (one: number, other: number) => number,
  boundary: (cron: Cron) => number | undefined,
): number | undefined {
  let chosen: number | undefined;
  for (const cron of crons) {
    const ms = boundary(cron);
    if (ms !== undefined) chosen = chosen === undefined ? ms : choose(chosen, ms);
  }
  return chosen;
}

/** Returns the first boundary of the local clock after a local time. */
function boundaryAfter(cron: Cron, localMs: number): number | undefined {
  let midnightMs = midnightOf(localMs);
  for (let days = 0; days < FARTHEST_DAYS; days += 1) {
    if (matchesDay(cron, midnightMs)) {
      const minute = edgesOf(cron, midnightMs).find(
        (one) => midnightMs + one * MINUTE_MS > localMs,
      );
      if (minute !== undefined) return midnightMs + minute * MINUTE_MS;
    }
    midnightMs += DAY_MS;
  }
  return undefined;
}

/** Returns the last boundary of the local clock at or before a local time. */
function boundaryUntil(cron: Cron, localMs: number): number | undefined {
  let midnightMs = midnightOf(localMs);
  for (let days = 0; days < FARTHEST_DAYS; days += 1) {
    if (matchesDay(cron, midnightMs)) {
      const minute = edgesOf(cron, midnightMs).findLast(
        (one) => midnightMs + one * MINUTE_MS <= localMs,
      );
      if (minute !== undefined) return midnightMs + minute * MINUTE_MS;
    }
    midnightMs -= DAY_MS;
  }
  return undefined;
}

/** Returns the minutes at which a matching day begins to match; midnight may go on from before. */
function edgesOf(cron: Cron, midnightMs: number): readonly number[] {
  const goesOn = cron.isOpenAtMidnight && cron.edges[0] === 0;
  return goesOn && matchesDay(cron, midnightMs - DAY_MS) ? cron.edges.slice(1) : cron.edges;
}
