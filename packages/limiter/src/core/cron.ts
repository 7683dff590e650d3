/**
 * Cron expressions of five fields, in the dialect of the Python library.
 *
 * Fields are lists of numbers, ranges and steps; months and weekdays also have names. A step on a
 * single number runs to the end of the field. If a day field begins with `*`, both day fields must
 * match, else one of them suffices. In canonical form a Sunday is 7 by itself and 0 where a
 * range or a step begins, and names are numbers.
 */

/** A cron expression as sets of numbers. */
export interface Cron {
  /** The expression in canonical form. */
  readonly text: string;
  /** Matching minutes of a matching day whose minute before does not match, ascending. */
  readonly edges: readonly number[];
  /** The minutes after those, at which it ends to match; 1440 at the end of the day. */
  readonly ends: readonly number[];
  /** The last minute of a matching day matches, so that the next midnight may be no edge. */
  readonly isOpenAtMidnight: boolean;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** From 0, Sunday, to 6. */
  readonly weekdays: ReadonlySet<number>;
  /** One of the two days suffices. */
  readonly isEitherDay: boolean;
}

/** A cron expression, or what is wrong with its text. */
export type ReadCron = Cron | { readonly problem: string };

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names of the numbers, from `firstName` on. */
  readonly names?: readonly string[];
  readonly firstName?: number;
}

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

const MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
const WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split(" ");
const MINUTE: Field = { name: "minute", min: 0, max: 59 };
const HOUR: Field = { name: "hour", min: 0, max: 23 };
const DAY: Field = { name: "day of the month", min: 1, max: 31 };
const MONTH: Field = { name: "month", min: 1, max: 12, names: MONTHS, firstName: 1 };
const WEEKDAY: Field = { name: "day of the week", min: 0, max: 7, names: WEEKDAYS, firstName: 0 };
const FIELDS = [MINUTE, HOUR, DAY, MONTH, WEEKDAY] as const;
const ITEM = /^(?:(\*)|([0-9]+|[A-Z]{3})(?:-([0-9]+|[A-Z]{3}))?)(?:\/([0-9]+))?$/;

/** Reads an expression; its letters may be small. */
export function readCron(text: string): ReadCron {
  const words = text.trim().toUpperCase().split(/\s+/);
  if (words.length !== FIELDS.length) {
    const fields = FIELDS.map(({ name }) => name).join(", ");
    return { problem: `expected five fields (${fields}), got ${words.length}` };
  }
  const read = FIELDS.map((field, index) => readField(field, words[index] ?? ""));
  for (const one of read) if ("problem" in one) return one;
  const [minutes, hours, days, months, weekdays] = read as readonly ReadField[];
  if (!minutes || !hours || !days || !months || !weekdays) return { problem: "no fields" };
  const inDay = minutesOfDay(hours.values, minutes.values);
  return {
    text: [minutes, hours, days, months, weekdays].map((field) => field.text).join(" "),
    edges: inDay.filter((minute, index) => inDay[index - 1] !== minute - 1),
    ends: inDay.filter((minute, index) => inDay[index + 1] !== minute + 1).map((last) => last + 1),
    isOpenAtMidnight: inDay.at(-1) === 1439,
    days: days.values,
    months: months.values,
    weekdays: new Set([...weekdays.values].map((weekday) => weekday % 7)),
    isEitherDay: !days.text.startsWith("*") && !weekdays.text.startsWith("*"),
  };
}

interface ReadField {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

function readField(field: Field, text: string): ReadField | { readonly problem: string } {
  const values = new Set<number>();
  const items: string[] = [];
  for (const item of text.split(",")) {
    const [whole, star, first, last, step] = ITEM.exec(item) ?? [];
    const from = star === undefined ? numberOf(field, first) : field.min;
    const to = endOf(field, star, from, last, step);
    const by = step === undefined ? 1 : Number(step);
    if (whole === undefined || from === undefined || to === undefined || from > to || by < 1) {
      return { problem: problemOf(field, item) };
    }
    for (let value = from; value <= to; value += by) values.add(value);
    items.push(printItem(field, { star, from, last: last === undefined ? undefined : to, step }));
  }
  return { text: items.join(","), values };
}

/** Returns the last number of an item; `undefined` when it has no meaning. */
function endOf(
  field: Field,
  star: string | undefined,
  from: number | undefined,
  last: string | undefined,
  step: string | undefined,
): number | undefined {
  if (last !== undefined) return numberOf(field, last);
  return star !== undefined || step !== undefined ? field.max : from;
}

function numberOf(field: Field, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const named = field.names?.indexOf(text) ?? -1;
  const value = named >= 0 ? named + (field.firstName ?? 0) : Number(text);
  return value >= field.min && value <= field.max ? value : undefined;
}

interface Item {
  readonly star: string | undefined;
  readonly from: number;
  readonly last: number | undefined;
  readonly step: string | undefined;
}

function printItem(field: Field, { star, from, last, step }: Item): string {
  const isLoneSunday = field === WEEKDAY && from === 0 && last === undefined && step === undefined;
  const begin = star ?? String(isLoneSunday ? 7 : from);
  const end = last === undefined ? "" : `-${last}`;
  return begin + end + (step === undefined ? "" : `/${Number(step)}`);
}

function problemOf(field: Field, item: string): string {
  if (item.includes("#") || /^(?:L|LW|[0-9]+[LW])$/.test(item)) {
    return `L, W and # are not supported, got "${item}" as ${field.name}`;
  }
  return `the ${field.name} must be from ${field.min} to ${field.max}, got "${item}"`;
}

/** Returns the matching minutes of a matching day, ascending. */
function minutesOfDay(hours: ReadonlySet<number>, minutes: ReadonlySet<number>): number[] {
  return [...hours]
    .flatMap((hour) => [...minutes].map((minute) => hour * 60 + minute))
    .sort((one, other) => one - other);
}

/** Returns the midnight at which a local day begins, as if it were in UTC. */
export function midnightOf(localMs: number): number {
  return Math.floor(localMs / DAY_MS) * DAY_MS;
}

/** Returns whether a local day matches, given its midnight. */
export function matchesDay(cron: Cron, midnightMs: number): boolean {
  const date = new Date(midnightMs);
  if (!cron.months.has(date.getUTCMonth() + 1)) return false;
  const isDay = cron.days.has(date.getUTCDate());
  const isWeekday = cron.weekdays.has(date.getUTCDay());
  return cron.isEitherDay ? isDay || isWeekday : isDay && isWeekday;
}
