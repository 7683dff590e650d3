/**
 * Windows on the local clock: which of them is open at an instant, and when that changes. A window
 * is open in the local minutes that its expression matches, as the clock shows them: where an hour
 * is shown twice, it is open twice.
 */

import { type OffsetAt, stretches } from "./calendar.ts";
import { type Cron, DAY_MS, MINUTE_MS, matchesDay, midnightOf } from "./cron.ts";

/** Days in which the next change is searched; without one, the last counts as a boundary. */
const HORIZON_DAYS = 400;
const NONE = -1;

/** Windows in their order, and the local clock that they go by. */
export interface Windows {
  readonly crons: readonly Cron[];
  readonly offsetAt: OffsetAt;
}

/** Returns the place of the first window that is open at an instant; -1: none is. */
export function openAt({ crons, offsetAt }: Windows, ms: number): number {
  return openAtLocal(crons, ms + offsetAt(ms));
}

/** Returns the first instant after another at which another window is open, or none any more. */
export function changeAfter({ crons, offsetAt }: Windows, ms: number): number {
  const open = openAtLocal(crons, ms + offsetAt(ms));
  for (let day = 0; day < HORIZON_DAYS; day += 1) {
    const fromMs = ms + day * DAY_MS;
    for (const { fromMs: startMs, toMs, offsetMs } of stretches(
      offsetAt,
      fromMs,
      fromMs + DAY_MS,
    )) {
      for (const localMs of changesIn(crons, startMs + offsetMs, toMs + offsetMs)) {
        const atMs = localMs - offsetMs;
        if (atMs > ms && openAtLocal(crons, localMs) !== open) return atMs;
      }
    }
  }
  return ms + HORIZON_DAYS * DAY_MS;
}

/** Returns the local times from one until another at which a window may open or close. */
function changesIn(crons: readonly Cron[], fromMs: number, toMs: number): readonly number[] {
  // The clock may have been set there, and show any other time than before.
  const times = [fromMs];
  for (let midnightMs = midnightOf(fromMs); midnightMs < toMs; midnightMs += DAY_MS) {
    times.push(midnightMs);
    for (const cron of crons) {
      if (!matchesDay(cron, midnightMs)) continue;
      for (const minute of cron.edges) times.push(midnightMs + minute * MINUTE_MS);
      for (const minute of cron.ends) times.push(midnightMs + minute * MINUTE_MS);
    }
  }
  return times.filter((ms) => ms >= fromMs && ms < toMs).sort((one, other) => one - other);
}

function openAtLocal(crons: readonly Cron[], localMs: number): number {
  const midnightMs = midnightOf(localMs);
  const minute = Math.floor((localMs - midnightMs) / MINUTE_MS);
  const at = crons.findIndex((cron) => matchesDay(cron, midnightMs) && isIn(cron, minute));
  return at < 0 ? NONE : at;
}

function isIn({ edges, ends }: Cron, minute: number): boolean {
  return edges.some((edge, at) => minute >= edge && minute < (ends[at] as number));
}
