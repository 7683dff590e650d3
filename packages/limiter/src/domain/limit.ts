/** A limit: how much a bucket holds and how fast it fills. */

import { defined } from "../base/defined.ts";
import { warnOnce } from "../base/warn-once.ts";
import type { Rate } from "../core/bucket.ts";
import type { Period } from "../core/calendar.ts";
import { isMoney } from "../core/micro-dollars.ts";
import { type PeriodRule, sameRule } from "../core/period-rule.ts";
import { type RateSchedule, sameSchedule } from "../core/rate-schedule.ts";
import { checkAlerts, sameAlerts } from "./alerts.ts";
import {
  checkFields,
  checkFlag,
  checkInteger,
  checkOptions,
  isPlainObject,
  PERIOD_SECONDS_MAX,
  show,
  TOKENS_MAX,
} from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { quotaJson, ruleOfJson } from "./limit-json.ts";
import { parseLimit, printLimit } from "./limit-language.ts";
import { periodDisagreement } from "./limit-period.ts";
import { type LimitJson, type LimitKind, type LimitSpec, NO_REFILL } from "./limit-spec.ts";
import { checkLimitName } from "./names.ts";
import { PERIODS } from "./periods.ts";
import { checkRule, type QuotaOptions, quotaRule } from "./quota.ts";
import {
  checkSchedule,
  givenWindows,
  readWindows,
  scheduleJson,
  scheduleOf,
  type WindowJson,
} from "./schedule.ts";
import { SCHEDULES } from "./schedules.ts";

const SPEC_FIELDS = [
  ...["name", "capacity", "refillAmount", "refillPeriodSeconds", "soft", "rule", "kind"],
  ...["alerts", "schedule"],
] as const;
const JSON_FIELDS = [
  ...["name", "capacity", "refill_amount", "refill_period_seconds", "soft"],
  ...["quota", "session_seconds", "concurrent", "alerts"],
  "schedule",
] as const;
/** The last instant of the year 9999; periods are computed since 1970. */
const TIME_MAX = 253_402_300_799_999;

/** A time of the week in which a rate has other numbers. */
export interface WindowOptions {
  /** Days, hours or both, `mon-fri 9-18`; or the local minutes, `cron(* 9-17 * * 1-5)`. */
  readonly when: string;
  /** The time zone, the same for all windows of a limit; `UTC` when absent. */
  readonly timeZone?: string;
  /** Multiplies capacity and refill; to the thousandth. */
  readonly scale?: number;
  /** Replaces the numbers; it has the name of the limit. */
  readonly limit?: LimitInput;
}

/** Options of the factories of limits besides the rate. */
export interface RateOptions {
  /** The most the bucket can hold; the rate when absent. */
  readonly burst?: number;
  /** Refuses nothing: it is consumed into debt. */
  readonly soft?: boolean;
}

/**
 * A limit, or its text: `"rpm:100"`, `"tpm:10000/min:15000"`, `"tpm:10000/min soft"`,
 * `"req:10000/month Europe/Berlin"`, `"parallel:20 concurrent"`.
 */
export type LimitInput = Limit | string;

/**
 * An immutable limit. Equal numbers make equal limits.
 *
 * @example
 * ```ts
 * import { Limit } from 'zae-limiter';
 * const requests = Limit.perMinute('rpm', 100);
 * const tokens = Limit.perMinute('tpm', 10_000, { burst: 15_000 });
 * console.log(`${requests} ${tokens}`); // rpm:100/min tpm:10000/min:15000
 * console.log(Limit.parse('rpm:100').equals(requests)); // true
 * console.log(String(Limit.perDay('tpd', 5000, { soft: true }))); // tpd:5000/day soft
 * ```
 */
export class Limit implements LimitSpec {
  /** The name that `consume` uses, such as `rpm`. */
  readonly name: string;
  /** How its tokens come back. */
  readonly kind: LimitKind;
  /** The most the bucket can hold, in tokens; the amount of a quota or a session; the slots. */
  readonly capacity: number;
  /** Tokens that come back in one period; 0 for a quota, a session and slots. */
  readonly refillAmount: number;
  /** The length of a period in seconds. */
  readonly refillPeriodSeconds: number;
  /** A soft limit refuses nothing: it is consumed into debt. */
  readonly soft: boolean;
  /** When a quota or a session resets; `undefined` for a rate. */
  readonly rule: PeriodRule | undefined;
  /** Percentages of what a period grants, ascending: each writes one alert when it is used. */
  readonly alerts: readonly number[];
  /** Windows in which a rate has other numbers; `undefined` where it always has these. */
  readonly schedule: RateSchedule | undefined;
  /** Capacity and refill in the units of the arithmetic. */
  readonly rate: Rate;

  private constructor(spec: LimitSpec, exactly?: Rate) {
    checkOptions("limit", spec, "{ name, capacity, refillAmount, refillPeriodSeconds }");
    this.name = checkLimitName(spec.name);
    this.capacity = checkInteger("capacity", spec.capacity, 1, TOKENS_MAX);
    this.rule = spec.rule === undefined ? undefined : checkRule(spec.rule);
    this.kind = kindOfSpec(spec, this.rule);
    // Quotas and sessions are stored as the Python library does: nothing in every second.
    const [least, most, longest] =
      this.kind === "rate" ? [1, TOKENS_MAX, PERIOD_SECONDS_MAX] : [0, 0, 1];
    this.refillAmount = checkInteger("refill_amount", spec.refillAmount, least, most);
    this.refillPeriodSeconds = checkInteger(
      "refill_period_seconds",
      spec.refillPeriodSeconds,
      1,
      longest,
    );
    checkFlag("soft", spec.soft);
    this.soft = spec.soft === true;
    this.alerts = checkAlerts(spec.alerts, this.rule !== undefined);
    const rate = exactly ?? {
      capacityMilli: this.capacity * 1000,
      refillMilli: this.refillAmount * 1000,
      periodMs: this.refillPeriodSeconds * 1000,
    };
    const { schedule } = spec;
    this.schedule = schedule === undefined ? schedule : checkSchedule(this.kind, rate, schedule);
    this.rate = Object.freeze({
      ...rate,
      ...defined({ rule: this.rule, schedule: this.schedule }),
    });
    Object.freeze(this);
  }

  /** Makes a limit of `rate` tokens per second; up to `burst` at once when given. */
  static perSecond(name: string, rate: number, options: RateOptions = {}): Limit {
    return Limit.#per(name, rate, 1, options);
  }

  /** Makes a limit of `rate` tokens per minute; up to `burst` at once when given. */
  static perMinute(name: string, rate: number, options: RateOptions = {}): Limit {
    return Limit.#per(name, rate, 60, options);
  }

  /** Makes a limit of `rate` tokens per hour; up to `burst` at once when given. */
  static perHour(name: string, rate: number, options: RateOptions = {}): Limit {
    return Limit.#per(name, rate, 3600, options);
  }

  /** Makes a limit of `rate` tokens per day; up to `burst` at once when given. */
  static perDay(name: string, rate: number, options: RateOptions = {}): Limit {
    return Limit.#per(name, rate, 86_400, options);
  }

  /**
   * Makes a limit of `amount` tokens that come back at once: at a boundary of the calendar, or a
   * time after the first use.
   *
   * @example
   * ```ts
   * import { Limit } from 'zae-limiter';
   * const monthly = Limit.quota('req', 10_000, { every: 'month', timeZone: 'Europe/Berlin' });
   * const session = Limit.quota('tok', 400_000, { after: { hours: 5 } });
   * console.log(String(monthly)); // req:10000/month Europe/Berlin
   * console.log(String(session)); // tok:400000/session:5hour
   * const period = monthly.periodAt(Date.parse('2026-11-18T06:30:00Z'));
   * console.log(new Date(period?.endMs ?? 0).toISOString()); // 2026-11-30T23:00:00.000Z
   * ```
   */
  static quota(name: string, amount: number, options: QuotaOptions): Limit {
    const rule = quotaRule(options);
    const { soft, alerts } = options;
    return new Limit({ name, capacity: amount, ...NO_REFILL, rule, ...defined({ soft, alerts }) });
  }

  /**
   * Makes a limit of what may be in flight at once: each unit is a slot, which is held from the
   * grant until its lease ends, or until the lease releases it.
   *
   * @example
   * ```ts
   * import { Limit } from 'zae-limiter';
   * const parallel = Limit.concurrent('parallel', 20);
   * console.log(`${parallel} ${parallel.kind}`); // parallel:20 concurrent concurrency
   * ```
   */
  static concurrent(name: string, slots: number, options: { readonly soft?: boolean } = {}): Limit {
    checkFields("options", options, ["soft"]);
    const spec = { name, capacity: slots, ...NO_REFILL, kind: "concurrency" } as const;
    return new Limit({ ...spec, ...defined({ soft: options.soft }) });
  }

  /**
   * Returns the limit with other numbers in some hours of the week, by the local clock of a zone.
   * The first window that is open applies.
   *
   * @example
   * ```ts
   * import { Limit } from 'zae-limiter';
   * const office = { when: 'mon-fri 9-18', timeZone: 'Europe/Berlin', scale: 0.5 };
   * const limit = Limit.perMinute('rpm', 1000).withSchedule([office]);
   * console.log(limit.at(Date.parse('2026-11-18T10:00:00Z')).capacity); // 500
   * console.log(limit.at(Date.parse('2026-11-18T20:00:00Z')).capacity); // 1000
   * ```
   */
  withSchedule(windows: readonly WindowOptions[]): Limit {
    const given = givenWindows(windows, (input) => replacedBy(this, Limit.from(input)));
    return new Limit({ ...this, schedule: scheduleOf(this.kind, this.rate, given) });
  }

  /** Returns the limit with windows as JSON and the limits file have them. */
  withWindows(windows: readonly WindowJson[]): Limit {
    const schedule = scheduleOf(this.kind, this.rate, readWindows(windows));
    return new Limit({ ...this, schedule });
  }

  /** Returns the limit as it is at an instant: with the numbers of the window that is open then. */
  at(ms: number): Limit {
    const { schedule, name, kind, soft } = this;
    if (schedule === undefined) return this;
    checkInteger("ms", ms, 0, TIME_MAX);
    const rate = SCHEDULES.rateAt(this.rate, ms);
    const known = inForce.get(rate);
    if (known !== undefined) return known;
    // Parts of a token that a scale leaves count, and are not shown.
    const whole = (milli: number) => Math.max(1, Math.floor(milli / 1000));
    const [capacity, refillAmount] = [whole(rate.capacityMilli), whole(rate.refillMilli)];
    const numbers = { capacity, refillAmount, refillPeriodSeconds: rate.periodMs / 1000 };
    const limit = new Limit({ name, kind, soft, ...numbers }, rate);
    inForce.set(rate, limit);
    return limit;
  }

  /** Makes a limit of any capacity, refill amount and period. */
  static custom(spec: LimitSpec): Limit {
    if (isPlainObject(spec)) checkFields("limit", spec, SPEC_FIELDS);
    return new Limit(spec);
  }

  /**
   * Reads `name:rate[/[count]sec|min|hour|day][:burst][ soft]`, or a quota such as
   * `name:amount/month[@day][ Zone][@HH:MM]`, `name:amount/session:5hour`, or slots,
   * `name:count concurrent`; `soft` and `alerts 50,80,100` may follow. Without a period, names such
   * as `rps`, `rpm` and `tpd` have that of their last letter, all others a minute. Warns when the
   * name states another period than the text (`ZAEL_LIMIT_NAME`).
   */
  static parse(text: string): Limit {
    const limit = new Limit(parseLimit(text));
    const disagreement = periodDisagreement(limit);
    if (disagreement !== undefined) warnOnce("ZAEL_LIMIT_NAME", `In ${text}, ${disagreement}`);
    return limit;
  }

  /** Makes a limit of the object that `toJSON` returns. */
  static fromJSON(json: LimitJson): Limit {
    if (isPlainObject(json)) checkFields("limit", json, JSON_FIELDS);
    checkOptions("limit", json, "{ name, capacity, refill_amount, refill_period_seconds }");
    const limit = new Limit({
      name: json.name,
      capacity: json.capacity,
      refillAmount: json.refill_amount,
      refillPeriodSeconds: json.refill_period_seconds,
      rule: ruleOfJson(json),
      ...defined({ soft: json.soft, kind: kindOfJson(json), alerts: json.alerts }),
    });
    return json.schedule === undefined ? limit : limit.withWindows(json.schedule);
  }

  /** Accepts what users may pass: a limit or its text. */
  static from(input: LimitInput): Limit {
    if (input instanceof Limit) return input;
    if (typeof input === "string") return Limit.parse(input);
    throw new ValidationError("limit", input, `expected a Limit or its text, got ${show(input)}`);
  }

  static #per(name: string, rate: number, seconds: number, options: RateOptions): Limit {
    checkFields("options", options, ["burst", "soft"]);
    const { burst: capacity = rate, soft = false } = options;
    return new Limit({ name, capacity, refillAmount: rate, refillPeriodSeconds: seconds, soft });
  }

  /**
   * Returns the period of a quota that holds an instant; `undefined` for a rate, which has none,
   * and for a session, whose periods begin when it is used.
   */
  periodAt(ms: number): Period | undefined {
    checkInteger("ms", ms, 0, TIME_MAX);
    return this.rule?.kind === "quota" ? PERIODS.at(this.rule, ms) : undefined;
  }

  /** Tokens per second, for display; 0 for a quota, a session and slots. */
  get refillRate(): number {
    return this.refillAmount / this.refillPeriodSeconds;
  }

  /** Returns the limit in the mini-language, which `Limit.parse` reads. */
  toString(): string {
    return printLimit(this);
  }

  /** Returns the limit as JSON, with the field names of the limits file. */
  toJSON(): LimitJson {
    return {
      name: this.name,
      capacity: this.capacity,
      refill_amount: this.refillAmount,
      refill_period_seconds: this.refillPeriodSeconds,
      ...(this.soft ? { soft: true } : {}),
      ...(this.kind === "concurrency" ? { concurrent: true } : {}),
      ...quotaJson(this.rule),
      ...(this.alerts.length > 0 ? { alerts: this.alerts } : {}),
      ...scheduleJson(this.schedule),
    };
  }

  /** Returns whether both limits have the same name and numbers. */
  equals(other: Limit): boolean {
    return (
      this.name === other.name &&
      this.kind === other.kind &&
      this.capacity === other.capacity &&
      this.refillAmount === other.refillAmount &&
      this.refillPeriodSeconds === other.refillPeriodSeconds &&
      this.soft === other.soft &&
      sameAlerts(this.alerts, other.alerts) &&
      sameRule(this.rule, other.rule) &&
      sameSchedule(this.schedule, other.schedule)
    );
  }
}

/** Returns the kind of a limit: that of its rule; without one a rate, unless `kind` says slots. */
function kindOfSpec({ name, kind }: LimitSpec, rule: PeriodRule | undefined): LimitKind {
  const known = rule?.kind ?? (kind === "concurrency" ? kind : "rate");
  if (kind !== undefined && kind !== known) {
    const reason = `expected "${known}" with these fields, or "concurrency" without a rule`;
    throw new ValidationError("kind", kind, `${reason}, got ${show(kind)}`);
  }
  if (known === "concurrency" && isMoney(name)) {
    const reason = `"${name}" is money, which is spent and not held: name slots otherwise`;
    throw new ValidationError("name", name, reason);
  }
  return known;
}

/** The limits of windows by their rates, which are objects of their own. */
const inForce = new WeakMap<Rate, Limit>();

/** Returns the numbers that a window has from another limit. */
function replacedBy({ name }: Limit, other: Limit) {
  const { capacity, refillAmount, refillPeriodSeconds } = other;
  if (other.name === name && other.kind === "rate" && other.schedule === undefined) {
    return { capacity, refillAmount, refillPeriodSeconds };
  }
  const reason = `expected a limit named "${name}" that refills evenly, got ${other}`;
  throw new ValidationError("limit", String(other), reason);
}

function kindOfJson({ concurrent }: LimitJson): LimitKind | undefined {
  checkFlag("concurrent", concurrent);
  return concurrent === true ? "concurrency" : undefined;
}

/** Lists that `checkLimits` has made. They are frozen, so they need no second check. */
const checkedLists = new WeakSet<readonly LimitInput[]>();

/** Whether `checkLimits` made this very list: it stays valid, and never changes. */
export function isCheckedList(limits: readonly LimitInput[]): boolean {
  return checkedLists.has(limits);
}

/** Checks a list of limits from a user: each valid, no name twice. A checked list stays itself. */
export function checkLimits(inputs: readonly LimitInput[]): readonly Limit[] {
  if (!Array.isArray(inputs)) {
    throw new ValidationError("limits", inputs, `expected an array, got ${show(inputs)}`);
  }
  if (isCheckedList(inputs)) return inputs as readonly Limit[];
  // `Array.from` also visits the holes of a sparse array, which are no limits.
  const limits = Array.from(inputs, (input) => Limit.from(input));
  const names = new Set<string>();
  for (const { name } of limits) {
    if (names.has(name)) {
      throw new ValidationError("limits", name, `the limit "${name}" is given twice`);
    }
    names.add(name);
  }
  checkedLists.add(Object.freeze(limits));
  return limits;
}
