/** Periods of quotas and sessions, with the edges that were computed last. */

import { boundedMap } from "../base/bounded-map.ts";
import {
  type Calendar,
  edgeAfter,
  nextPeriodOf,
  type OffsetAt,
  type Period,
  periodOf,
  resetsUntil,
} from "../core/calendar.ts";
import { type Cron, readCron } from "../core/cron.ts";
import type { CalendarRule, PeriodRule } from "../core/period-rule.ts";
import { invariant } from "./check.ts";
import { localClock } from "./zone.ts";

export type { Period };

/** Rules whose edges are remembered. Tenants share rules, so there are few. */
const RULES_MAX = 1000;

/** The edges of a rule that were asked for last. */
interface KnownEdges {
  readonly calendar: Calendar;
  current?: Period;
  /** The period that follows an end that a store has. */
  next?: { readonly storedEndMs: number; readonly period: Period };
}

/** Computes periods by the clocks of zones, and remembers an edge until it has passed. */
export class Periods {
  readonly #known = boundedMap<KnownEdges>(RULES_MAX);
  readonly #clockOf: (timeZone: string) => OffsetAt;

  /** `clockOf`: returns the local clock of a zone; simulations invent zones. */
  constructor(clockOf: (timeZone: string) => OffsetAt = localClock) {
    this.#clockOf = clockOf;
  }

  /** Returns the period of a quota that holds an instant. */
  at(rule: CalendarRule, ms: number): Period {
    const known = this.#edgesOf(rule);
    const { current } = known;
    if (current !== undefined && ms >= current.startMs && ms < current.endMs) return current;
    known.current = periodOf(known.calendar, ms);
    return known.current;
  }

  /**
   * Returns the period that a call at `nowMs` opens: of a quota after the end that the store has,
   * so that clients with other data of zones do not reset twice; of a session from now on.
   */
  next(rule: PeriodRule, nowMs: number, storedEndMs?: number): Period {
    if (rule.kind === "session") return { startMs: nowMs, endMs: nowMs + rule.seconds * 1000 };
    if (storedEndMs === undefined) return this.at(rule, nowMs);
    const known = this.#edgesOf(rule);
    const { next } = known;
    const isKnown =
      next?.storedEndMs === storedEndMs &&
      nowMs >= next.period.startMs &&
      nowMs < next.period.endMs;
    if (next !== undefined && isKnown) return next.period;
    const period = nextPeriodOf(known.calendar, nowMs, storedEndMs);
    known.next = { storedEndMs, period };
    return period;
  }

  /**
   * Returns the end of the running period under another rule: as it is, at most until the first
   * edge of that rule.
   */
  movedEnd(rule: CalendarRule, nowMs: number, storedEndMs: number): number {
    return Math.min(storedEndMs, this.at(rule, nowMs).endMs);
  }

  /** Returns how often a quota has reset since the end that the store has, `atMost` times. */
  passed(rule: CalendarRule, storedEndMs: number, nowMs: number, atMost: number): number {
    return resetsUntil(this.#edgesOf(rule).calendar, storedEndMs, nowMs, atMost);
  }

  /** Returns the first edge of a rule after an instant. */
  edgeAfter(rule: CalendarRule, ms: number): number {
    return edgeAfter(this.#edgesOf(rule).calendar, ms);
  }

  #edgesOf({ cron, timeZone }: CalendarRule): KnownEdges {
    const key = `${cron}\n${timeZone}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const crons = cron.split(";").map(cronOf);
    const made: KnownEdges = { calendar: { crons, offsetAt: this.#clockOf(timeZone) } };
    this.#known.set(key, made);
    return made;
  }
}

/** Returns an expression that was checked when its limit was made. */
export function cronOf(text: string): Cron {
  const read = readCron(text);
  invariant("edges" in read, `a limit has the expression "${text}"`);
  return read;
}

/** Periods by the zones of this Node. */
export const PERIODS = new Periods();
