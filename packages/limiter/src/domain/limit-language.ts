/**
 * The text of a limit: `name:amount[/period][:burst][ soft]`. A period is a unit with an optional
 * count (`min`, `10sec`); a calendar unit, a cron expression or a session makes a quota, whose text
 * `quota-text.ts` reads; without one, names such as `rps`, `rpm` and `tpd` have that of their last
 * letter, and all others are per minute. Amounts may be written `1_000`, `10k` and `2M`; those of
 * money are dollars (`usd:$12.50/month UTC`). The word `concurrent` after the amount makes slots,
 * which have no period; the word `soft` at the end makes a limit that refuses nothing; `alerts
 * 50,80,100` after it writes an alert at each of these percentages of a quota.
 */

import { defined } from "../base/defined.ts";
import { currenciesOf, isMoney, printMoney } from "../core/micro-dollars.ts";
import type { PeriodRule } from "../core/period-rule.ts";
import { cutAlerts, printAlerts } from "./alerts.ts";
import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { defaultPeriodSeconds, printPeriod, readPeriod } from "./limit-period.ts";
import { type LimitSpec, NO_REFILL } from "./limit-spec.ts";
import { checkMoneyPeriod, readMoney } from "./money.ts";
import { isCalendar, printRule, readCalendar, readCronQuota, readSession } from "./quota-text.ts";

const FORM =
  "name:rate[/[count]sec|min|hour|day][:burst][ soft], for example rpm:100 or tpm:10000/min:15000";
const SOFT_END = " soft";
const SLOTS_END = " concurrent";
const AMOUNT = /^(-?[0-9]+(?:_[0-9]+)*)([kM]?)$/;
const AMOUNT_FACTORS: ReadonlyMap<string, number> = new Map([
  ["k", 1000],
  ["M", 1_000_000],
]);

/** The parts of a text that all forms have. */
interface LimitText {
  /** The whole text, for errors. */
  readonly text: string;
  readonly name: string;
  readonly amount: string;
  /** All that follows the amount: `/min:15000`. */
  readonly tail: string;
}

/** A form of limits: how to recognise its text, and how to read it. */
interface LimitForm {
  matches(parts: LimitText): boolean;
  read(parts: LimitText): LimitSpec;
}

/** Forms that are recognised before anything else; a text of none of them is a rate. */
const FORMS: readonly LimitForm[] = [
  { matches: ({ amount, tail }) => `${amount}${tail}`.endsWith(SLOTS_END), read: readSlots },
  quota(({ tail }) => /^\/session\b/.test(tail), readSession),
  quota(({ tail }) => tail.startsWith("/cron("), readCronQuota),
  quota(({ tail }) => isCalendar(tail), readCalendar),
];

/** Reads the text into numbers; their bounds are checked by `Limit`. */
export function parseLimit(text: string): LimitSpec {
  if (typeof text !== "string") {
    throw new ValidationError("limit", text, `expected text like ${FORM}, got ${show(text)}`);
  }
  const { rest, alerts } = cutAlerts(text);
  const isSoft = rest.endsWith(SOFT_END);
  const parts = partsOf(text, isSoft ? withoutSpaces(rest.slice(0, -SOFT_END.length)) : rest);
  const form = FORMS.find(({ matches }) => matches(parts));
  if (form?.read !== readSlots) checkMoneyPeriod(text, parts.name, parts.tail);
  const spec = form === undefined ? readRate(parts) : form.read(parts);
  return { ...spec, ...(isSoft ? { soft: true } : {}), ...defined({ alerts }) };
}

/** Writes the text; reading it gives the same numbers. */
export function printLimit(limit: LimitSpec): string {
  const end = (limit.soft === true ? SOFT_END : "") + printAlerts(limit.alerts);
  const print = (amount: number) =>
    isMoney(limit.name) ? printMoney(limit.name, amount) : String(amount);
  if (limit.rule !== undefined) {
    return `${limit.name}:${print(limit.capacity)}${printRule(limit.rule)}${end}`;
  }
  if (limit.refillAmount === 0) return `${limit.name}:${limit.capacity}${SLOTS_END}${end}`;
  const burst = limit.capacity === limit.refillAmount ? "" : `:${print(limit.capacity)}`;
  const period = printPeriod(limit.refillPeriodSeconds);
  return `${limit.name}:${print(limit.refillAmount)}/${period}${burst}${end}`;
}

/** Cuts the text after its name and after its amount. */
function partsOf(text: string, body: string): LimitText {
  const colon = body.indexOf(":");
  if (colon < 0) throw formError(text);
  const [name, rest] = [body.slice(0, colon), body.slice(colon + 1)];
  const end = rest.search(/[/:]/);
  if (end < 0) return { text, name, amount: rest, tail: "" };
  return { text, name, amount: rest.slice(0, end), tail: rest.slice(end) };
}

/** Reads `20 concurrent`. */
function readSlots(parts: LimitText): LimitSpec {
  const { text, name, amount, tail } = parts;
  if (tail !== "") {
    const reason = "slots have no period and no burst: write name:count concurrent";
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  if (isMoney(name)) {
    const reason = `"${name}" is money, which is spent and not held: name slots otherwise`;
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  const count = withoutSpaces(amount.slice(0, -SLOTS_END.length));
  const capacity = readCount(parts, "count", count);
  return { name, capacity, ...NO_REFILL, kind: "concurrency" };
}

/** Reads `[/period][:burst]` after the amount. */
function readRate(parts: LimitText): LimitSpec {
  const { text, name, amount, tail } = parts;
  refuseZone(text, tail);
  const [period = "", burst, ...more] = tail.split(":");
  if (more.length > 0 || period.indexOf("/", 1) > 0) throw formError(text);
  const refillAmount = readAmount(parts, "rate", amount);
  return {
    name,
    refillAmount,
    refillPeriodSeconds:
      period === "" ? defaultPeriodSeconds(name) : periodSeconds(text, period.slice(1)),
    capacity: burst === undefined ? refillAmount : readAmount(parts, "burst", burst),
  };
}

function periodSeconds(text: string, period: string): number {
  const read = readPeriod(period);
  if ("seconds" in read) return read.seconds;
  throw new ValidationError("limit", text, `${read.problem} in ${show(text)}`);
}

/** Refuses `/hour Europe/Berlin` and `/min@06:00`. */
function refuseZone(text: string, tail: string): void {
  if (!/^\/[0-9]*[a-z]+(?:@| [A-Za-z+-])/.test(tail)) return;
  const reason = "only quotas take a time zone or a time: /day, /week, /month, /quarter, /year";
  throw new ValidationError("limit", text, `${reason} or /cron(…), got ${show(text)}`);
}

/** Reads `1000`, `1_000` or `1k`; of money `$12.50`. */
function readAmount(parts: LimitText, part: string, amount: string): number {
  if (isMoney(parts.name)) return readMoney(parts.text, parts.name, amount);
  return readCount(parts, part, amount);
}

/** Reads `1000`, `1_000` or `1k`. */
function readCount({ text, name }: LimitText, part: string, amount: string): number {
  const [currency] = currenciesOf(amount);
  if (currency !== undefined) {
    const reason = `"${name}" is not money: its limits are named ${currency} or ${currency}_…`;
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  const [, digits, suffix = ""] = AMOUNT.exec(amount) ?? [];
  const value = Number(digits?.replaceAll("_", "")) * (AMOUNT_FACTORS.get(suffix) ?? 1);
  const problem = amountProblem(value);
  if (problem === undefined) return value;
  const words = amount.includes(" ") ? ", and after it come only concurrent, soft and alerts" : "";
  const reason = `the ${part} ${problem}${words}, got ${show(amount)} in ${show(text)}`;
  throw new ValidationError("limit", text, reason);
}

function amountProblem(value: number): string | undefined {
  if (Number.isNaN(value)) return "must be a whole number";
  if (value < 1) return "must be positive";
  return Number.isSafeInteger(value) ? undefined : "has too many digits";
}

/** Makes a form of quotas: what follows the amount is a rule. */
function quota(
  matches: LimitForm["matches"],
  read: (text: string, tail: string) => PeriodRule,
): LimitForm {
  return {
    matches,
    read: (parts) => ({
      name: parts.name,
      capacity: readAmount(parts, "amount", parts.amount),
      ...NO_REFILL,
      rule: read(parts.text, parts.tail),
    }),
  };
}

function formError(text: string): ValidationError {
  return new ValidationError("limit", text, `expected ${FORM}, got ${show(text)}`);
}

/** Removes the spaces at the end. */
function withoutSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === " ") end -= 1;
  return text.slice(0, end);
}
