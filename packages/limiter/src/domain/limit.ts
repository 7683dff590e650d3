/** A limit: how much a bucket holds and how fast it fills. */

import type { Rate } from "../core/bucket.ts";
import { checkFields, checkFlag, checkInteger, checkOptions, show, TOKENS_MAX } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { parseLimit, printLimit } from "./limit-language.ts";
import { checkLimitName } from "./names.ts";

export const PERIOD_SECONDS_MAX = 1_000_000_000;

/** The numbers of a limit, in whole tokens and seconds. */
export interface LimitSpec {
  /** The name that `consume` uses, such as `rpm`. */
  readonly name: string;
  /** The most the bucket can hold. */
  readonly capacity: number;
  /** Tokens that come back in one period. */
  readonly refillAmount: number;
  /** The length of a period in seconds. */
  readonly refillPeriodSeconds: number;
  /** Refuses nothing: it is consumed into debt. `false` when absent. */
  readonly soft?: boolean;
}

/** The form of a limit in JSON. */
export type LimitJson = {
  readonly name: string;
  /** The most the bucket can hold. */
  readonly capacity: number;
  /** Tokens that come back in one period. */
  readonly refill_amount: number;
  /** The length of a period in seconds. */
  readonly refill_period_seconds: number;
  /** Present when the limit is soft. */
  readonly soft?: true;
};

/** Options of the factories of limits besides the rate. */
export interface RateOptions {
  /** The most the bucket can hold; the rate when absent. */
  readonly burst?: number;
  /** Refuses nothing: it is consumed into debt. */
  readonly soft?: boolean;
}

/** A limit, or its text: `"rpm:100"`, `"tpm:10000/min:15000"`, `"tpm:10000/min soft"`. */
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
  /** The most the bucket can hold, in tokens. */
  readonly capacity: number;
  /** Tokens that come back in one period. */
  readonly refillAmount: number;
  /** The length of a period in seconds. */
  readonly refillPeriodSeconds: number;
  /** A soft limit refuses nothing: it is consumed into debt. */
  readonly soft: boolean;
  /** Capacity and refill in the units of the arithmetic. */
  readonly rate: Rate;

  private constructor(spec: LimitSpec) {
    checkOptions("limit", spec, "{ name, capacity, refillAmount, refillPeriodSeconds }");
    this.name = checkLimitName(spec.name);
    this.capacity = checkInteger("capacity", spec.capacity, 1, TOKENS_MAX);
    this.refillAmount = checkInteger("refill_amount", spec.refillAmount, 1, TOKENS_MAX);
    this.refillPeriodSeconds = checkInteger(
      "refill_period_seconds",
      spec.refillPeriodSeconds,
      1,
      PERIOD_SECONDS_MAX,
    );
    checkFlag("soft", spec.soft);
    this.soft = spec.soft === true;
    this.rate = Object.freeze({
      capacityMilli: this.capacity * 1000,
      refillMilli: this.refillAmount * 1000,
      periodMs: this.refillPeriodSeconds * 1000,
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

  /** Makes a limit of any capacity, refill amount and period. */
  static custom(spec: LimitSpec): Limit {
    return new Limit(spec);
  }

  /** Reads `name:rate[/[count]sec|min|hour|day][:burst][ soft]`; without a period per minute. */
  static parse(text: string): Limit {
    return new Limit(parseLimit(text));
  }

  /** Makes a limit of the object that `toJSON` returns. */
  static fromJSON(json: LimitJson): Limit {
    checkOptions("limit", json, "{ name, capacity, refill_amount, refill_period_seconds }");
    return new Limit({
      name: json.name,
      capacity: json.capacity,
      refillAmount: json.refill_amount,
      refillPeriodSeconds: json.refill_period_seconds,
      ...(json.soft === undefined ? {} : { soft: json.soft }),
    });
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

  /** Tokens per second, for display. */
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
    };
  }

  /** Returns whether both limits have the same name and numbers. */
  equals(other: Limit): boolean {
    return (
      this.name === other.name &&
      this.capacity === other.capacity &&
      this.refillAmount === other.refillAmount &&
      this.refillPeriodSeconds === other.refillPeriodSeconds &&
      this.soft === other.soft
    );
  }
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
