/**
 * The part of a bucket that a server decides warm calls by: made with each write of a step, and
 * read back with what the server has consumed since.
 */

import { hasSlots, type Level, type Rate } from "../../core/bucket.ts";
import { scheduleText } from "../../domain/compact-schedule.ts";
import type { Limit } from "../../domain/limit.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import type { WarmRow } from "../../storage/warm-buckets.ts";
import { ttlKeptSeconds } from "../bucket-ttl.ts";
import { hasPeriods } from "../periods.ts";
import { ruleText } from "../rule-text.ts";
import type { SlotEntry } from "../slots/slot-entries.ts";
import { seePeakOf } from "../slots/slot-peaks.ts";
import type { Bucket } from "./bucket.ts";
import { countAt, levelAt, periodAt, setLevelAt } from "./limit-numbers.ts";
import { hourStartMs } from "./usage-hour.ts";

/** The limits of a call as the rows of its buckets have them. */
export interface WarmTerms {
  readonly build: string;
  /** The places of the limits in the order of their names. */
  readonly order: readonly number[];
  /** Whether the limits are in that order, as they nearly always are. */
  readonly isSorted: boolean;
  /** Whether a limit is of slots. */
  readonly hasSlots: boolean;
}

const KNOWN_TERMS = new WeakMap<readonly Limit[], WarmTerms>();

/** Returns the terms of a list of limits. Lists of limits are cached, and so are their terms. */
export function warmTerms(limits: readonly Limit[]): WarmTerms {
  const known = KNOWN_TERMS.get(limits);
  if (known !== undefined) return known;
  const names = limits.map(({ name }) => name);
  const order = orderOf(names);
  const rates = limits.map(({ rate }) => rate);
  const isSorted = order.every((place, at) => place === at);
  const build = stampOf(names, rates, order);
  const terms = { build, order, isSorted, hasSlots: rates.some(hasSlots) };
  KNOWN_TERMS.set(limits, terms);
  return terms;
}

/**
 * Returns the row of a bucket. It is warm until its hour of usage ends, as long as its time to live
 * is kept, and until a period of it ends. A call that opens a session is a step.
 */
export function warmRowOf(bucket: Bucket, ttlMultiplier: number): WarmRow {
  const { build, link, ttl, usageHour, numbers } = bucket;
  const order = orderOf(build.names);
  const levels = order.map((at) => levelAt(numbers, at));
  // A limit with windows has the numbers that are in force since its level.
  const rates = order.map((at, place) =>
    SCHEDULES.rateAt(build.rates[at] as Rate, (levels[place] as Level).refilledAtMs),
  );
  const hourEnd = hourStartMs(usageHour + 1);
  const ends = order.flatMap((at) => endOf(bucket, at));
  const kept = ttlKeptSeconds(rates, ttlMultiplier, "system");
  const keptUntil = ttl === undefined || kept === undefined ? hourEnd : (ttl - kept) * 1000;
  return {
    build: stampOf(build.names, build.rates, order),
    parent: link.parentId ?? null,
    cascades: link.cascade,
    until: Math.min(hourEnd, keptUntil, ...ends),
    cap: order.map((at, place) => capOf(bucket, at, rates[place] as Rate)),
    refill: rates.map(({ refillMilli }) => refillMilli),
    period: rates.map(({ periodMs }) => periodMs),
    at: levels.map(({ refilledAtMs }) => refilledAtMs),
    tok: levels.map(({ tokensMilli }) => tokensMilli),
    rem: levels.map(({ remainder }) => remainder),
    used: order.map(() => 0),
    events: 0,
    held: heldText(bucket, order),
  };
}

/** Returns the slots that are held, as the row has them. */
function heldText({ build, rare: { slots } }: Bucket, order: readonly number[]): string {
  if (slots.length === 0) return "";
  const place = (name: string) => order.indexOf(build.names.indexOf(name)) + 1;
  return `;${slots.map((each) => `${each.entry} ${place(each.limitName)} ${each.milli};`).join("")}`;
}

/** Returns the slots that a row has as held; `names` are in the order of the row. */
function slotsIn(held: string, names: readonly string[]): readonly SlotEntry[] {
  const texts = held.split(";").filter((text) => text !== "");
  return texts.map((text) => {
    const [entry = "", place, milli] = text.split(" ");
    const limitName = names[Number(place) - 1] as string;
    return { limitName, entry, milli: Number(milli) };
  });
}

/** Returns the capacity of a limit, or the grant of its period. */
function capOf({ numbers }: Bucket, at: number, rate: Rate): number {
  return hasPeriods(rate) ? periodAt(numbers, at).grantedMilli : rate.capacityMilli;
}

/** Returns the end of the period of a limit, if it is in one. */
function endOf({ build, numbers }: Bucket, at: number): number[] {
  const rate = build.rates[at] as Rate;
  if (rate.schedule !== undefined) {
    return [SCHEDULES.endAt(rate, levelAt(numbers, at).refilledAtMs)];
  }
  if (!hasPeriods(rate)) return [];
  const { endMs } = periodAt(numbers, at);
  return endMs === 0 ? [] : [endMs];
}

/** Brings a bucket that was read to where the server has left it. */
export function applyWarmRow(bucket: Bucket, row: WarmRow): void {
  const { names, rates } = bucket.build;
  const order = orderOf(names);
  order.forEach((at, place) => {
    setLevelAt(bucket.numbers, at, {
      tokensMilli: row.tok[place] as number,
      refilledAtMs: row.at[place] as number,
      remainder: row.rem[place] as number,
    });
    const used = row.used[place] as number | bigint;
    if (hasSlots(rates[at] as Rate)) seePeakOf(bucket.numbers, at, Number(used));
    else countAt(bucket.numbers, at, used);
  });
  const isHeld = row.held !== "" || bucket.rare.slots.length > 0;
  if (isHeld)
    bucket.keep({
      slots: slotsIn(
        row.held,
        order.map((at) => names[at] as string),
      ),
    });
  bucket.events += row.events;
}

function orderOf(names: readonly string[]): readonly number[] {
  return names
    .map((_, at) => at)
    .sort((one, other) => ((names[one] as string) < (names[other] as string) ? -1 : 1));
}

/** Names of limits have neither spaces nor commas. */
function stampOf(
  names: readonly string[],
  rates: readonly Rate[],
  order: readonly number[],
): string {
  return order
    .map((at) => {
      const { capacityMilli, refillMilli, periodMs, rule, schedule } = rates[at] as Rate;
      const stamp = `${names[at]} ${capacityMilli} ${refillMilli} ${periodMs}`;
      if (schedule !== undefined) return `${stamp} ${scheduleText(schedule)}`;
      return rule === undefined ? stamp : `${stamp} ${ruleText(rule)}`;
    })
    .join(",");
}
