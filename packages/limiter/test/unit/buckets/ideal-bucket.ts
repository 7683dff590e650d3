/**
 * The ideal bucket: exact fractions, one mind, no network. Written from the design and not from
 * the code under test.
 *
 * It holds at most its capacity, gains evenly, and forgets what is beyond full at once. Limits
 * change as ADR 008 says: a newer stored config replaces everything, limits of a call replace only
 * what they name, and the next call without them puts the stored ones back.
 */

import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import type { Rate } from "@zae-limiter/limiter/core/bucket.ts";
import { compare, type Fraction, fraction, minus, plus, smaller, ZERO } from "./fraction.ts";

/** One limit. */
export class IdealLimit {
  rate: Rate;
  /** Milli-tokens at `atMs`. */
  level: Fraction;
  atMs: number;
  /** Net milli-tokens consumed. */
  consumed = 0n;
  /** Milli-tokens that the code under test may have rounded off, by changes of the period. */
  slack: Fraction = ZERO;
  /** Time by which clocks may differ: the bucket is that much larger. */
  readonly #spreadMs: number;

  constructor(rate: Rate, nowMs: number, spreadMs: number) {
    this.rate = rate;
    this.atMs = nowMs;
    this.#spreadMs = spreadMs;
    this.level = this.full;
  }

  /** The most it holds: the capacity, and what accrues while clocks differ. */
  get full(): Fraction {
    return plus(fraction(this.rate.capacityMilli), this.#accrued(this.#spreadMs));
  }

  get isFull(): boolean {
    return compare(this.level, this.full) >= 0;
  }

  refill(nowMs: number): void {
    if (nowMs <= this.atMs) return;
    this.level = smaller(this.full, plus(this.level, this.#accrued(nowMs - this.atMs)));
    this.atMs = nowMs;
  }

  /** Below zero gives back. */
  take(amountMilli: number): void {
    this.level = smaller(this.full, minus(this.level, fraction(amountMilli)));
    this.consumed += BigInt(amountMilli);
  }

  change(rate: Rate): void {
    if (rate.periodMs !== this.rate.periodMs) {
      // The fraction of a milli-token is kept in units of the period.
      this.slack = plus(this.slack, fraction(1, rate.periodMs));
    }
    this.rate = rate;
    this.level = smaller(this.full, this.level);
  }

  #accrued(ms: number): Fraction {
    return fraction(BigInt(ms) * BigInt(this.rate.refillMilli), this.rate.periodMs);
  }
}

export type IdealMatch = "absent" | "same" | "apply" | "outdated";

/** A bucket with its limits, and what is known of where they came from. */
export class IdealBucket {
  readonly limits = new Map<string, IdealLimit>();
  #version: number;
  #overridden: boolean;
  /** Limits of stored config were never applied: there is nothing they could replace. */
  #onlyOverrides: boolean;
  readonly #spreadMs: number;

  constructor(config: BucketConfig, nowMs: number, spreadMs: number) {
    this.#version = config.source === "override" ? 0 : config.version;
    this.#overridden = config.source === "override";
    this.#onlyOverrides = this.#overridden;
    this.#spreadMs = spreadMs;
    for (const { name, rate } of config.limits) {
      this.limits.set(name, new IdealLimit(rate, nowMs, spreadMs));
    }
  }

  refill(nowMs: number): void {
    for (const limit of this.limits.values()) limit.refill(nowMs);
  }

  match(config: BucketConfig): IdealMatch {
    if (config.source === "override") return this.#differs(config) ? "apply" : "same";
    if (config.version < this.#version) return "outdated";
    if (config.version > this.#version) {
      return this.#differs(config) || this.#replaced(config).length > 0 ? "apply" : "same";
    }
    const restores = this.#overridden && this.#differs(config);
    return restores || this.#lacks(config) ? "apply" : "same";
  }

  /** The levels a call with these limits would find, in their order. */
  levels(config: BucketConfig, nowMs: number): { level: Fraction; slack: Fraction }[] {
    this.refill(nowMs);
    return config.limits.map(({ name, rate }) => {
      const known = this.limits.get(name);
      const full = new IdealLimit(rate, nowMs, this.#spreadMs).full;
      if (known === undefined) return { level: full, slack: ZERO };
      const replaced = this.match(config) === "apply";
      const level = replaced ? smaller(full, known.level) : known.level;
      return { level, slack: known.slack };
    });
  }

  apply(config: BucketConfig, nowMs: number): void {
    this.refill(nowMs);
    for (const name of this.#replaced(config)) this.limits.delete(name);
    for (const { name, rate } of config.limits) {
      const known = this.limits.get(name);
      if (known === undefined) this.limits.set(name, new IdealLimit(rate, nowMs, this.#spreadMs));
      else known.change(rate);
    }
    this.#overridden = config.source === "override";
    if (this.#overridden) return;
    this.#version = config.version;
    this.#onlyOverrides = false;
  }

  /**
   * Whether a refused call changes the limits: stored ones do, its own only if they are no less.
   */
  isKept(config: BucketConfig): boolean {
    if (config.source !== "override") return true;
    return config.limits.every(({ name, rate }) => {
      const known = this.limits.get(name)?.rate;
      if (known === undefined) return true;
      const speed = BigInt(rate.refillMilli) * BigInt(known.periodMs);
      const before = BigInt(known.refillMilli) * BigInt(rate.periodMs);
      return rate.capacityMilli >= known.capacityMilli && speed >= before;
    });
  }

  #differs(config: BucketConfig): boolean {
    return config.limits.some(({ name, rate }) => {
      const known = this.limits.get(name)?.rate;
      return (
        known?.capacityMilli !== rate.capacityMilli ||
        known.refillMilli !== rate.refillMilli ||
        known.periodMs !== rate.periodMs
      );
    });
  }

  #lacks(config: BucketConfig): boolean {
    return config.limits.some(({ name }) => !this.limits.has(name));
  }

  #replaced(config: BucketConfig): string[] {
    if (config.source === "override" || config.version <= this.#version) return [];
    if (this.#onlyOverrides) return [];
    const kept = new Set(config.limits.map(({ name }) => name));
    return [...this.limits.keys()].filter((name) => !kept.has(name));
  }
}
