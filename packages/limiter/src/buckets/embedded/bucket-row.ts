/** A bucket as text in one column or attribute: a short array, as every acquire writes it. */

import { hasSlots, type Rate } from "../../core/bucket.ts";
import type { PeriodRule } from "../../core/period-rule.ts";
import { scheduleText, windowsOf } from "../../domain/compact-schedule.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import type { LimitSource } from "../leg.ts";
import { ruleOf, ruleText } from "../rule-text.ts";
import type { SlotEntry } from "../slots/slot-entries.ts";
import { Bucket } from "./bucket.ts";
import type { PausedLimit } from "./bucket-periods.ts";
import { Build } from "./build.ts";
import { type Numbers, numbersFor, PERIOD_NUMBERS, periodPlace, STRIDE } from "./limit-numbers.ts";

/** The place at which the totals begin among the numbers of a limit. */
const TOTALS = 3;
/** Fields of a limit that refills evenly; one with windows has their text besides. */
const PLAIN_ROW = 4 + STRIDE;
/** Period of all limits whose periods a rule decides. */
const PERIODS_MS = 1000;

type Row = [
  version: number,
  source: LimitSource,
  cascade: 0 | 1,
  parentId: string | null,
  limits: LimitRow[],
  usageHour: number,
  events: number,
  ...paused: PausedRow[],
];

/** A limit that waits for the end of its period. */
type PausedRow = [
  name: string,
  capacityMilli: number,
  tokensMilli: number,
  endMs: number,
  grantedMilli: number,
  leftMilli: number,
  rule: string,
  lateMilli: number,
];

/**
 * The numbers are those of `limit-numbers.ts`; a total beyond 2^53 is text. Those of a period, and
 * the text of its rule at the end, are in the rows of limits that have periods; the entries that
 * have slots, in the rows of limits of slots; the text of windows, in the rows of rates with them.
 */
type LimitRow = [
  name: string,
  capacityMilli: number,
  refillMilli: number,
  periodMs: number,
  ...numbers: (number | string | SlotRow[])[],
];

/** The slots that an entry has. */
type SlotRow = [entry: string, milli: number];

/** Returns the text of a row. Two texts of one bucket are the same to the byte. */
export function encodeRow(bucket: Bucket): string {
  const { build, link, usageHour, events, numbers, rare } = bucket;
  const { version, source, names, rates } = build;
  const parent = link.parentId === undefined ? "null" : JSON.stringify(link.parentId);
  let text = `[${version},"${source}",${link.cascade ? 1 : 0},${parent},[`;
  for (let at = 0; at < names.length; at += 1) {
    const { capacityMilli, refillMilli, periodMs } = rates[at] as Rate;
    text += `${at === 0 ? "" : ","}["${names[at]}",${capacityMilli},${refillMilli},${periodMs}`;
    for (let place = at * STRIDE; place < (at + 1) * STRIDE; place += 1) {
      const number = numbers[place] as number | bigint;
      text += typeof number === "bigint" ? `,"${number}"` : `,${number}`;
    }
    text += `${kindText(bucket, at)}]`;
  }
  text = `${text}],${usageHour},${events}`;
  for (const limit of rare.paused) text += `,${JSON.stringify(pausedRow(limit))}`;
  return `${text}]`;
}

/** Returns the fields of a limit's row behind its numbers, by its kind. */
function kindText({ build, numbers, rare }: Bucket, at: number): string {
  const rate = build.rates[at] as Rate;
  if (rate.rule !== undefined) return `,${periodText(numbers, at)},"${ruleText(rate.rule)}"`;
  if (rate.schedule !== undefined) return `,"${scheduleText(rate.schedule)}"`;
  return hasSlots(rate) ? slotsText(rare.slots, build.names[at] as string) : "";
}

/** Returns the entries of a limit, `,[["p7x2k9.4",2]]`, in milli-slots. */
function slotsText(slots: readonly SlotEntry[], name: string): string {
  const held = slots.filter(({ limitName }) => limitName === name);
  return `,${JSON.stringify(held.map(({ entry, milli }) => [entry, milli]))}`;
}

function periodText(numbers: Readonly<Numbers>, at: number): string {
  const from = periodPlace(numbers, at * STRIDE);
  return numbers.slice(from, from + PERIOD_NUMBERS).join(",");
}

function pausedRow({ name, rate, level, lateMilli }: PausedLimit): PausedRow {
  const { tokensMilli, endMs, grantedMilli, leftMilli } = level;
  const numbers = [rate.capacityMilli, tokensMilli, endMs, grantedMilli, leftMilli] as const;
  return [name, ...numbers, ruleText(rate.rule as PeriodRule), lateMilli];
}

function pausedLimit(row: PausedRow): PausedLimit {
  const [name, capacityMilli, tokensMilli, endMs, grantedMilli, leftMilli, rule, lateMilli] = row;
  const numbers = [capacityMilli, tokensMilli, endMs, grantedMilli, leftMilli, lateMilli];
  if (typeof name !== "string" || !numbers.every(Number.isSafeInteger)) throw new Error(`${row}`);
  const rate = { capacityMilli, refillMilli: 0, periodMs: PERIODS_MS, rule: ruleOf(rule) };
  return { name, rate, level: { tokensMilli, endMs, grantedMilli, leftMilli }, lateMilli };
}

/** Reads a row; throws `DamagedRecordError` for one that no version of this library has written. */
export function decodeRow(text: string, ttl: number | null, where: string): Bucket {
  try {
    return decoded(text, ttl);
  } catch (cause) {
    throw new DamagedRecordError(where, "the row", "cannot be read", { cause });
  }
}

function decoded(text: string, ttl: number | null): Bucket {
  const [version, source, cascade, parentId, limits, usageHour, events, ...paused] = JSON.parse(
    text,
  ) as Row;
  if (![version, usageHour, events].every(Number.isSafeInteger)) throw new Error(text);
  const names = limits.map(([name]) => name);
  const rates = limits.map(rateIn);
  const numbers = numbersFor(rates);
  limits.forEach((row, at) => {
    decodeLimit(row, numbers, at);
  });
  const bucket = new Bucket(
    new Build(version, source, names, rates),
    { cascade: cascade === 1, parentId: parentId ?? undefined },
    ttl ?? undefined,
    usageHour,
    events,
    numbers,
  );
  const slots = limits.flatMap(slotsIn);
  const isRare = slots.length + paused.length > 0;
  if (isRare) bucket.keep({ slots, paused: paused.map(pausedLimit) });
  return bucket;
}

function rateIn(row: LimitRow): Rate {
  const [, capacityMilli, refillMilli, periodMs] = row;
  if (refillMilli !== 0 || Array.isArray(row.at(-1))) {
    const rate = { capacityMilli, refillMilli, periodMs };
    return row.length === PLAIN_ROW || refillMilli === 0
      ? rate
      : { ...rate, schedule: windowsOf(String(row.at(-1))) };
  }
  return { capacityMilli, refillMilli, periodMs, rule: ruleOf(String(row.at(-1))) };
}

function slotsIn([name, , , , ...stored]: LimitRow): SlotEntry[] {
  const held = stored.at(-1);
  if (!Array.isArray(held)) return [];
  return held.map(([entry, milli]) => {
    if (typeof entry !== "string" || !Number.isSafeInteger(milli) || milli <= 0) {
      throw new Error(String(held));
    }
    return { limitName: name, entry, milli };
  });
}

function decodeLimit(row: LimitRow, numbers: Numbers, at: number): void {
  const [name, capacityMilli, refillMilli, periodMs, ...stored] = row;
  const areSlots = Array.isArray(stored.at(-1));
  const count = refillMilli === 0 && !areSlots ? STRIDE + PERIOD_NUMBERS : STRIDE;
  const others = [...stored.slice(0, TOTALS), ...stored.slice(STRIDE, count)];
  const whole = [capacityMilli, refillMilli, periodMs, ...others];
  const isWhole = whole.every(Number.isSafeInteger) && stored.length >= count;
  if (typeof name !== "string" || !isWhole) throw new Error(String(row));
  for (let offset = 0; offset < STRIDE; offset += 1) {
    const number = stored[offset] as number | string;
    numbers[at * STRIDE + offset] = typeof number === "string" ? BigInt(number) : number;
  }
  const from = periodPlace(numbers, at * STRIDE);
  for (let offset = STRIDE; offset < count; offset += 1) {
    numbers[from + offset - STRIDE] = stored[offset] as number;
  }
}
