/**
 * The rule of a quota or a session as attributes of a config item, as the Python library has them,
 * and the windows of a rate.
 *
 * A quota has the fields of its cron expressions in `l_{name}_rsched`, a rate its windows in
 * `l_{name}_sched`; one zone holds for the whole item, in `sched_tz`. A session has all of its
 * attributes under `w_{name}_`, and its length in `w_{name}_rsa`. Ours alone: `l_{name}_tz`, the
 * zone of a limit that has another than its item, `l_{name}_carry` and `l_{name}_cmax`;
 * `l_{name}_alerts` or `w_{name}_alerts`, a text like `50,80,100`; and all of a limit of slots,
 * under `s_{name}_`.
 */

import { defined } from "../../base/defined.ts";
import type { PeriodRule } from "../../core/period-rule.ts";
import type { RateSchedule } from "../../core/rate-schedule.ts";
import {
  decodeResets,
  decodeWindows,
  encodeResets,
  encodeWindows,
} from "../../domain/compact-schedule.ts";
import type { UnsupportedKind } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import { checkRule } from "../../domain/quota.ts";
import { checkSchedule } from "../../domain/schedule.ts";
import { readTimeZone, UTC } from "../../domain/zone.ts";
import { type Item, integerAt, numberAt, textAt, valueAt } from "../../storage/item.ts";
import { zoneIn } from "../period-attributes.ts";

export const RATE_PREFIX = "l_";
export const SESSION_PREFIX = "w_";
/** The Python library knows no slots, and passes over what begins so. */
export const SLOTS_PREFIX = "s_";

/** Suffixes of everything that a limit may have on a config item. */
export const LIMIT_SUFFIXES = [
  "cp",
  "ra",
  "rp",
  "soft",
  "sched",
  "rsched",
  "tz",
  "carry",
  "cmax",
  "rsa",
  "alerts",
] as const;

/** A rule, `undefined` for a rate, or the kind of a limit that this version cannot express. */
export type ReadRule =
  | { readonly rule: PeriodRule | undefined; readonly schedule?: RateSchedule }
  | UnsupportedKind;

/** Returns the attributes of a rule, besides the zone of the item. */
export function encodeRule(
  { name, rule, schedule }: Limit,
  itemZone: string | undefined,
): Record<string, string | number> {
  if (schedule !== undefined) return encodeSchedule(name, schedule, itemZone);
  if (rule === undefined) return {};
  if (rule.kind === "session") return { [`${SESSION_PREFIX}${name}_rsa`]: rule.seconds };
  const { cron, timeZone, carry, carryMax } = rule;
  const attribute = (suffix: string) => `${RATE_PREFIX}${name}_${suffix}`;
  return defined({
    [attribute("rsched")]: encodeResets(cron),
    [attribute("tz")]: timeZone === (itemZone ?? UTC) ? undefined : timeZone,
    [attribute("carry")]: carry === "none" ? undefined : carry,
    [attribute("cmax")]: carryMax,
  }) as Record<string, string | number>;
}

function encodeSchedule(
  name: string,
  { timeZone, windows }: RateSchedule,
  itemZone: string | undefined,
): Record<string, string> {
  const zone = timeZone === (itemZone ?? UTC) ? {} : { [`${RATE_PREFIX}${name}_tz`]: timeZone };
  return { [`${RATE_PREFIX}${name}_sched`]: encodeWindows(windows), ...zone };
}

/** Returns the prefix of all attributes of a limit. */
export function prefixOf({ kind }: Pick<Limit, "kind">): string {
  if (kind === "concurrency") return SLOTS_PREFIX;
  return kind === "session" ? SESSION_PREFIX : RATE_PREFIX;
}

/** Reads the rule of a limit of an item. */
export function decodeRule(item: Item, prefix: string, name: string): ReadRule {
  const attribute = (suffix: string) => `${prefix}${name}_${suffix}`;
  const isScheduled = valueAt(item, attribute("sched")) !== undefined;
  if (prefix !== RATE_PREFIX) {
    // Another client may have stored a rate of the name, which is then in force.
    const isTwice = valueAt(item, `${RATE_PREFIX}${name}_cp`) !== undefined;
    if (prefix === SLOTS_PREFIX) return isTwice ? "concurrency" : { rule: undefined };
    return isScheduled ? "schedule" : sessionOf(numberAt(item, attribute("rsa")), isTwice);
  }
  return quotaOf(item, attribute, isScheduled);
}

/** Reads the rule of a quota, which a rate has not. */
function quotaOf(
  item: Item,
  attribute: (suffix: string) => string,
  isScheduled: boolean,
): ReadRule {
  const resets = textAt(item, attribute("rsched"));
  if (resets === undefined && numberAt(item, attribute("ra")) !== 0) {
    return isScheduled ? scheduleIn(item, attribute) : { rule: undefined };
  }
  const cron = decodeResets(resets ?? "");
  if (isScheduled || cron === undefined) return "calendar quota";
  const timeZone = zoneIn(item, attribute("tz"));
  const carry = textAt(item, attribute("carry")) ?? "none";
  const carryMax = integerAt(item, attribute("cmax"), 1, Number.MAX_SAFE_INTEGER);
  const rule = { kind: "quota", cron, timeZone, carry, ...defined({ carryMax }) };
  return checked(rule as PeriodRule, "calendar quota");
}

/** Reads the windows of a rate. */
function scheduleIn(item: Item, attribute: (suffix: string) => string): ReadRule {
  const windows = decodeWindows(textAt(item, attribute("sched")) ?? "");
  const read = readTimeZone(zoneIn(item, attribute("tz")));
  if (windows === undefined || !("timeZone" in read)) return "schedule";
  const number = (suffix: string) => (numberAt(item, attribute(suffix)) ?? 0) * 1000;
  const base = { capacityMilli: number("cp"), refillMilli: number("ra"), periodMs: number("rp") };
  try {
    const schedule = { timeZone: read.timeZone, windows };
    return { rule: undefined, schedule: checkSchedule("rate", base, schedule) };
  } catch {
    return "schedule";
  }
}

function sessionOf(seconds: number | undefined, isTwice: boolean): ReadRule {
  if (seconds === undefined || isTwice) return "session quota";
  return checked({ kind: "session", seconds }, "session quota");
}

/** Returns a stored rule; the kind when this version does not know its zone or its expression. */
function checked(rule: PeriodRule, kind: UnsupportedKind): ReadRule {
  try {
    return { rule: checkRule(rule) };
  } catch {
    return kind;
  }
}

/** Returns the zone that an item has for its quotas and windows: that of the first by name. */
export function zoneOf(limits: readonly Limit[]): string | undefined {
  let first: Limit | undefined;
  for (const limit of limits) {
    if (zoneOfLimit(limit) === undefined) continue;
    if (first === undefined || limit.name < first.name) first = limit;
  }
  return first && zoneOfLimit(first);
}

/** Returns the zone that a limit goes by; `undefined`: none. */
export function zoneOfLimit({ rule, schedule }: Limit): string | undefined {
  return rule?.kind === "quota" ? rule.timeZone : schedule?.timeZone;
}
