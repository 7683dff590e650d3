/**
 * Attributes of a bucket's limits that have periods, as the Python library has them and with ours.
 *
 * Python's: `rsched`, the resets of all quotas of the item, or `b_{name}_rsched` of one (`-` means
 * none), with `sched_tz`, the zone; `b_{name}_rsa`, the seconds of a session, `ws` and `wa`, its
 * beginning; `gc`, the count of shards by which the allowance was divided; `tu`, top-ups of the
 * period; `vu`, until when its fast path may use the item. Ours, which it ignores: `b_{name}_pe`,
 * the end of the period, `pl`, what was left at the reset, `tz` and `cy`, a zone of its own and
 * what is carried.
 *
 * `pe` counts only while the base time lies before it: a reset by the Python library moves the base
 * time, and leaves `pe` as it is.
 */

import { boundedMap } from "../base/bounded-map.ts";
import type { Rate } from "../core/bucket.ts";
import type { CalendarRule, Carry, PeriodRule } from "../core/period-rule.ts";
import type { RateSchedule } from "../core/rate-schedule.ts";
import { PERIOD_SECONDS_MAX } from "../domain/check.ts";
import {
  decodeResets,
  decodeWindows,
  encodeResets,
  encodeWindows,
  scheduleText,
  windowsOf,
} from "../domain/compact-schedule.ts";
import { PERIODS } from "../domain/periods.ts";
import { SCHEDULES } from "../domain/schedules.ts";
import { readTimeZone, UTC } from "../domain/zone.ts";
import { type Item, integerAt, textAt, type Value } from "../storage/item.ts";

/** In place of a schedule: none, although the item has a default. */
export const NO_SCHEDULE = "-";
export const RESETS = "rsched";
export const WINDOWS = "sched";
/** The zone of all schedules of an item; absent: UTC. */
export const ZONE = "sched_tz";
/** Until when Python's fast path may use the item, in epoch milliseconds. */
export const VALID_UNTIL = "vu";

const TIME_MS_MAX = 8_640_000_000_000_000;
const MILLI_MAX = Number.MAX_SAFE_INTEGER;
const CARRY = /^(none|debt|rest|both)(?::([1-9][0-9]{0,12}))?$/;
const RULES_MAX = 1000;

/** The attributes of a limit with periods besides its balance. */
export interface StoredPeriod {
  /** The end of the period in force; 0: a session that was never open. */
  readonly endMs: number;
  /** Milli-tokens that were left at the last reset. */
  readonly leftMilli: number;
  /** Milli-tokens that operators have added in the period. */
  readonly toppedUpMilli: number;
  /** Whether the item says so: else the end was computed from the base time. */
  readonly isStored: boolean;
}

/** The names of the attributes of one limit. */
export interface PeriodAttributes {
  readonly resets: string;
  readonly sessionSeconds: string;
  readonly end: string;
  readonly left: string;
  readonly toppedUp: string;
  readonly zone: string;
  readonly carry: string;
  readonly grantCount: string;
  readonly windowStart: string;
  readonly windowApplied: string;
}

export function periodAttributesOf(limit: string): PeriodAttributes {
  const name = (suffix: string) => `b_${limit}_${suffix}`;
  return {
    resets: name("rsched"),
    sessionSeconds: name("rsa"),
    end: name("pe"),
    left: name("pl"),
    toppedUp: name("tu"),
    zone: name("tz"),
    carry: name("cy"),
    grantCount: name("gc"),
    windowStart: name("ws"),
    windowApplied: name("wa"),
  };
}

/** Returns the zone of a limit: that in an attribute of its own, else that of the item. */
export function zoneIn(item: Item, own: string): string {
  return textAt(item, own) ?? textAt(item, ZONE) ?? UTC;
}

/** Equal rules are one object, so that most comparisons are of identity. */
const rules = new Map<string, PeriodRule>();

/** Returns the rule of a limit; `undefined` for one that this version cannot read. */
export function ruleIn(item: Item, names: PeriodAttributes): PeriodRule | undefined {
  const seconds = integerAt(item, names.sessionSeconds, 1, PERIOD_SECONDS_MAX);
  const resets = textAt(item, names.resets) ?? textAt(item, RESETS);
  const zone = zoneIn(item, names.zone);
  const carried = textAt(item, names.carry) ?? "none";
  const key = seconds === undefined ? `${resets} ${zone} ${carried}` : `s${seconds}`;
  const known = rules.get(key);
  if (known !== undefined) return known;
  const rule = seconds === undefined ? calendarRule(resets, zone, carried) : sessionRule(seconds);
  if (rule === undefined) return undefined;
  if (rules.size >= RULES_MAX) rules.clear();
  rules.set(key, Object.freeze(rule));
  return rule;
}

/** The names of the attributes by which a limit follows windows. */
interface WindowAttributes {
  readonly windows: string;
  readonly periods: Pick<PeriodAttributes, "zone">;
}

/** Returns the windows of a limit; `undefined`: it has none, or none that this version can read. */
export function scheduleIn(item: Item, names: WindowAttributes): RateSchedule | undefined {
  const text = textAt(item, names.windows) ?? textAt(item, WINDOWS);
  if (text === undefined || text === NO_SCHEDULE) return undefined;
  const read = readTimeZone(zoneIn(item, names.periods.zone));
  if (!("timeZone" in read) || decodeWindows(text) === undefined) return undefined;
  return windowsOf(`${read.timeZone} ${text}`);
}

/** Rates with windows: equal ones are one object, by which their numbers in time are known. */
const scheduled = boundedMap<Rate>(RULES_MAX);

/** Returns a rate with its windows, if it has some. */
export function rateWith(rate: Rate, schedule: RateSchedule | undefined): Rate {
  if (schedule === undefined) return rate;
  const { capacityMilli, refillMilli, periodMs } = rate;
  const key = `${capacityMilli} ${refillMilli} ${periodMs} ${scheduleText(schedule)}`;
  const known = scheduled.get(key);
  if (known !== undefined) return known;
  const made = Object.freeze({ capacityMilli, refillMilli, periodMs, schedule });
  scheduled.set(key, made);
  return made;
}

function sessionRule(seconds: number): PeriodRule {
  return { kind: "session", seconds };
}

function calendarRule(
  resets: string | undefined,
  zone: string,
  carried: string,
): CalendarRule | undefined {
  const cron = resets === undefined || resets === NO_SCHEDULE ? undefined : decodeResets(resets);
  const read = readTimeZone(zone);
  const [, carry, most] = CARRY.exec(carried) ?? [];
  if (cron === undefined || !("timeZone" in read) || carry === undefined) return undefined;
  const rule = { kind: "quota", cron, timeZone: read.timeZone, carry: carry as Carry } as const;
  return most === undefined ? rule : { ...rule, carryMax: Number(most) };
}

/** Returns the period of a limit, given its rule and the base time of the item. */
export function periodIn(
  item: Item,
  names: PeriodAttributes,
  rule: PeriodRule,
  refilledAtMs: number,
): StoredPeriod {
  const leftMilli = integerAt(item, names.left, -MILLI_MAX, MILLI_MAX) ?? 0;
  const toppedUpMilli = integerAt(item, names.toppedUp, -MILLI_MAX, MILLI_MAX) ?? 0;
  if (rule.kind === "session") {
    const startMs = integerAt(item, names.windowApplied, 0, TIME_MS_MAX);
    const endMs = startMs === undefined ? 0 : startMs + rule.seconds * 1000;
    return { endMs, leftMilli, toppedUpMilli, isStored: true };
  }
  const stored = integerAt(item, names.end, 0, TIME_MS_MAX);
  const isStored = stored !== undefined && refilledAtMs < stored;
  const endMs = isStored ? stored : PERIODS.at(rule, refilledAtMs).endMs;
  return { endMs, leftMilli, toppedUpMilli, isStored };
}

/**
 * Returns the attributes of all limits of a new item: the resets of the first quota hold for the
 * item, and the windows of the first limit with some, so limits without them are marked, as the
 * Python library does it.
 */
export function newPeriodAttributes(
  limits: ReadonlyMap<string, { readonly rate: Rate; readonly period?: StoredPeriod | undefined }>,
  { shardCount, refilledAtMs }: { readonly shardCount: number; readonly refilledAtMs: number },
): Record<string, Value> {
  const attributes: Record<string, Value> = {};
  const [first, windows] = firstOf([...limits.values()].map(({ rate }) => rate));
  const zone = first?.timeZone ?? windows?.timeZone;
  if (first !== undefined) attributes[RESETS] = encodeResets(first.cron);
  if (windows !== undefined) attributes[WINDOWS] = encodeWindows(windows.windows);
  if (zone !== undefined) attributes[ZONE] = zone;
  for (const [name, { rate, period }] of limits) {
    const names = periodAttributesOf(name);
    if (windows !== undefined) {
      Object.assign(attributes, windowAttributes(name, rate.schedule, windows, zone));
    }
    if (period === undefined || rate.rule === undefined) {
      if (first !== undefined) attributes[names.resets] = NO_SCHEDULE;
      continue;
    }
    Object.assign(attributes, ruleAttributes(name, rate.rule, first));
    Object.assign(attributes, levelAttributes(name, rate.rule, period, shardCount));
  }
  const untilMs = Math.min(...[...limits.values()].map((limit) => validUntil(limit, refilledAtMs)));
  if (untilMs !== Number.POSITIVE_INFINITY) attributes[VALID_UNTIL] = untilMs;
  return attributes;
}

/** Returns the rule of the first quota, and the windows of the first limit with some. */
function firstOf(
  rates: readonly Rate[],
): readonly [CalendarRule | undefined, RateSchedule | undefined] {
  let first: CalendarRule | undefined;
  let windows: RateSchedule | undefined;
  for (const { rule, schedule } of rates) {
    if (rule?.kind === "quota") first ??= rule;
    windows ??= schedule;
  }
  return [first, windows];
}

/** Returns the end of a limit's period, or its next boundary. */
function validUntil(
  { rate, period }: { readonly rate: Rate; readonly period?: StoredPeriod | undefined },
  refilledAtMs: number,
): number {
  if (period !== undefined && period.endMs > 0) return period.endMs;
  return SCHEDULES.endAt(rate, refilledAtMs);
}

/**
 * Returns the attributes of the windows of a limit. `first`, `zone`: what the item has for all of
 * its limits.
 */
export function windowAttributes(
  name: string,
  schedule: RateSchedule | undefined,
  first?: RateSchedule,
  zone?: string,
): Record<string, Value> {
  const attribute = `b_${name}_${WINDOWS}`;
  if (schedule === undefined) return { [attribute]: NO_SCHEDULE };
  const text = encodeWindows(schedule.windows);
  const isFirst = first !== undefined && encodeWindows(first.windows) === text;
  const { timeZone } = schedule;
  return {
    ...(isFirst ? {} : { [attribute]: text }),
    ...(timeZone === zone ? {} : { [periodAttributesOf(name).zone]: timeZone }),
  };
}

/** Returns the attributes of a rule. `first`: the one that the item has for all of its quotas. */
export function ruleAttributes(
  name: string,
  rule: PeriodRule,
  first?: CalendarRule,
): Record<string, Value> {
  const names = periodAttributesOf(name);
  if (rule.kind === "session") {
    const none = first === undefined ? {} : { [names.resets]: NO_SCHEDULE };
    return { ...none, [names.sessionSeconds]: rule.seconds };
  }
  const { cron, timeZone, carry, carryMax } = rule;
  const most = carryMax === undefined ? "" : `:${carryMax}`;
  const resets = encodeResets(cron);
  const isFirst = first !== undefined && encodeResets(first.cron) === resets;
  return {
    ...(isFirst ? {} : { [names.resets]: resets }),
    ...(first?.timeZone === timeZone ? {} : { [names.zone]: timeZone }),
    ...(carry === "none" ? {} : { [names.carry]: carry + most }),
  };
}

/** Returns the attributes of a period; those of a session are Python's alone. */
export function levelAttributes(
  name: string,
  rule: PeriodRule,
  { endMs, leftMilli, toppedUpMilli }: StoredPeriod,
  shardCount: number,
): Record<string, Value> {
  const names = periodAttributesOf(name);
  const toppedUp = toppedUpMilli === 0 ? {} : { [names.toppedUp]: toppedUpMilli };
  const grant = { ...toppedUp, [names.grantCount]: shardCount };
  if (rule.kind === "session") {
    const startMs = endMs - rule.seconds * 1000;
    if (endMs === 0) return grant;
    return { ...grant, [names.windowStart]: startMs, [names.windowApplied]: startMs };
  }
  const left = leftMilli === 0 ? {} : { [names.left]: leftMilli };
  return { ...grant, ...left, [names.end]: endMs };
}
