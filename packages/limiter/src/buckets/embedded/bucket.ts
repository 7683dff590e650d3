/**
 * A bucket of the embedded stores: one writer at a time, so it is refilled as it is used.
 *
 * Usage is counted in the acquire's own step. A bucket has its total consumption, and how much of
 * it the snapshots contain already; the difference belongs to one hour, since all larger windows
 * are made of whole hours. It is added to the snapshots when the hour is over, when the bucket is
 * deleted, and when usage is read: consumption that is not in the snapshots yet is in the bucket.
 */

import type { Rate } from "../../core/bucket.ts";
import type { StoredState } from "../bucket-admin.ts";
import type { LeftOver } from "../bucket-ttl.ts";
import { type BuiltFrom, sameRate, staleNames } from "../config-match.ts";
import {
  type BucketConfig,
  effectiveLink,
  type Leg,
  type LimitSource,
  type Link,
  sameLink,
} from "../leg.ts";
import {
  changeRate,
  consumeAt,
  consumedAt,
  copyLimit,
  countAt,
  fill,
  heldAt,
  markCountedAt,
  type Numbers,
  refilledAtMs,
  refundAt,
  STRIDE,
  uncountedAt,
} from "./limit-numbers.ts";
import type { Terms } from "./ordinary-call.ts";
import type { PendingUsage } from "./usage-book.ts";

const HOUR_MS = 3_600_000;
/** The map of shared builds is emptied when it has this many. */
const BUILDS_MAX = 1000;

/** Returns the hours since 1970. */
export function hourOf(nowMs: number): number {
  return Math.floor(nowMs / HOUR_MS);
}

/** Returns the epoch milliseconds at which an hour begins. */
export function hourStartMs(hour: number): number {
  return hour * HOUR_MS;
}

/** The limits that a bucket was built from. Buckets with the same limits share one object. */
export class Build implements BuiltFrom {
  readonly version: number;
  readonly source: LimitSource;
  readonly names: readonly string[];
  /** Aligned with `names`. */
  readonly rates: readonly Rate[];

  constructor(
    version: number,
    source: LimitSource,
    names: readonly string[],
    rates: readonly Rate[],
  ) {
    this.version = version;
    this.source = source;
    this.names = names;
    this.rates = rates;
  }

  rateOf(limitName: string): Rate | undefined {
    return this.rates[this.names.indexOf(limitName)];
  }

  limitNames(): Iterable<string> {
    return this.names;
  }

  /** Whether the bucket has exactly the limits of a config, in its order. */
  isOf({ limits }: Pick<BucketConfig, "limits">): boolean {
    const { names, rates } = this;
    return (
      names.length === limits.length &&
      limits.every(({ name, rate }, at) => names[at] === name && sameRate(rates[at] as Rate, rate))
    );
  }
}

/** Keeps one build for all buckets with the same limits: a table may have a million buckets. */
export class SharedBuilds {
  readonly #builds = new Map<string, Build>();

  /** Returns the shared build that is equal; `before`, which most writes leave, where it is. */
  of(build: Build, before: Build | undefined): Build {
    if (before !== undefined && (before === build || isSame(before, build))) return before;
    const text = JSON.stringify(build);
    const known = this.#builds.get(text);
    if (known !== undefined) return known;
    if (this.#builds.size >= BUILDS_MAX) this.#builds.clear();
    this.#builds.set(text, build);
    return build;
  }
}

function isSame(left: Build, right: Build): boolean {
  return (
    left.version === right.version &&
    left.source === right.source &&
    left.names.length === right.names.length &&
    left.names.every(
      (name, at) =>
        name === right.names[at] && sameRate(left.rates[at] as Rate, right.rates[at] as Rate),
    )
  );
}

/** Changed in place: a table hands out copies, and takes over what a step writes. */
export class Bucket {
  build: Build;
  link: Link;
  /** Epoch seconds after which the bucket may be removed; `undefined`: it stays. */
  ttl: number | undefined;
  /** The hour, since 1970, of all consumption that is not in the snapshots yet. */
  usageHour: number;
  /** Acquires that are not in the snapshots yet. */
  events: number;
  readonly numbers: Numbers;
  /** The limits that ordinary calls go by, until the slow path writes the bucket again. */
  terms: Terms | undefined = undefined;
  /** Epoch seconds between which calls by the terms may be ordinary. */
  ordinaryFrom = 0;
  ordinaryUntil = 0;

  constructor(
    build: Build,
    link: Link,
    ttl: number | undefined,
    usageHour: number,
    events: number,
    numbers: Numbers,
  ) {
    this.build = build;
    this.link = link;
    this.ttl = ttl;
    this.usageHour = usageHour;
    this.events = events;
    this.numbers = numbers;
  }

  /** Returns a new bucket, in which every limit is full. */
  static full(config: BucketConfig, link: Link, nowMs: number): Bucket {
    const names = config.limits.map(({ name }) => name);
    const rates = config.limits.map(({ rate }) => rate);
    const build = new Build(config.version, config.source, names, rates);
    const numbers = numbersFor(rates.length);
    rates.forEach((rate, at) => {
      fill(numbers, at, rate, nowMs);
    });
    return new Bucket(build, link, undefined, hourOf(nowMs), 0, numbers);
  }

  /** Returns a copy for the slow path, which ordinary calls do not go by. */
  copy(): Bucket {
    const { build, link, ttl, usageHour, events, numbers } = this;
    return new Bucket(build, link, ttl, usageHour, events, numbers.slice());
  }

  /** Whether its time is over: then it would be full again, and counts as removed. */
  isExpired(nowMs: number): boolean {
    return this.ttl !== undefined && this.ttl * 1000 <= nowMs;
  }

  /** Returns the bucket with the limits of a config: balances stay, capped; new ones are full. */
  withConfig(config: BucketConfig, nowMs: number): Bucket {
    const { names, rates } = this.build;
    const { limits, source } = config;
    const stale = new Set(staleNames(this.build, config));
    const applied = new Set(limits.map(({ name }) => name));
    const kept = names.filter((name) => !stale.has(name) && !applied.has(name));
    const build = new Build(
      source === "override" ? this.build.version : config.version,
      source,
      [...applied, ...kept],
      [...limits.map(({ rate }) => rate), ...kept.map((name) => this.build.rateOf(name) as Rate)],
    );
    const numbers = numbersFor(build.names.length);
    build.names.forEach((name, at) => {
      const rate = build.rates[at] as Rate;
      const from = names.indexOf(name);
      if (from < 0) {
        fill(numbers, at, rate, nowMs);
        return;
      }
      copyLimit(this.numbers, from, numbers, at);
      if (applied.has(name)) changeRate(numbers, at, rates[from] as Rate, rate, nowMs);
    });
    return new Bucket(build, this.link, this.ttl, this.usageHour, this.events, numbers);
  }

  /** Returns the balance of a limit in milli-tokens. */
  balanceMilli(at: number, nowMs: number): number {
    return heldAt(this.numbers, at, this.build.rates[at] as Rate, nowMs);
  }

  /** Returns the balances of some limits; one that the bucket does not have is full. */
  balancesOf({ limits }: Pick<BucketConfig, "limits">, nowMs: number): readonly number[] {
    return limits.map(({ name, rate }) => {
      const at = this.build.names.indexOf(name);
      return at < 0 ? rate.capacityMilli : this.balanceMilli(at, nowMs);
    });
  }

  /**
   * Consumes amounts that are aligned with the limits of a config, without a check; a negative one
   * is refunded. Under bypass they are only counted.
   */
  consume(config: BucketConfig, amountsMilli: readonly number[], nowMs: number): void {
    const { numbers } = this;
    config.limits.forEach(({ name }, index) => {
      const amount = amountsMilli[index] ?? 0;
      const at = this.build.names.indexOf(name);
      if (at < 0 || amount === 0) return;
      if (config.bypass === true) countAt(numbers, at, amount);
      else if (amount < 0) refundAt(numbers, at, -amount);
      else {
        const rate = this.build.rates[at] as Rate;
        consumeAt(numbers, at, rate, heldAt(numbers, at, rate, nowMs), amount, nowMs);
      }
    });
  }

  /** Returns what is left of every limit, by which a time to live is chosen. */
  left(nowMs: number): readonly LeftOver[] {
    return this.build.rates.map((rate, at) => ({
      rate,
      balanceMilli: this.balanceMilli(at, nowMs),
    }));
  }

  /** Returns the usage that is not in the snapshots yet; `undefined` when there is none. */
  pendingUsage(): PendingUsage | undefined {
    const { build, numbers, events } = this;
    const amountsMilli = build.names.flatMap((name, at) => {
      const milli = uncountedAt(numbers, at);
      return Number(milli) === 0 ? [] : [[name, milli] as const];
    });
    if (amountsMilli.length === 0 && events === 0) return undefined;
    return { atMs: hourStartMs(this.usageHour), amountsMilli, events };
  }

  /** Records that the snapshots have all usage, and that an hour begins. */
  markCounted(hour: number): void {
    this.build.names.forEach((_, at) => {
      markCountedAt(this.numbers, at);
    });
    this.usageHour = hour;
    this.events = 0;
  }

  /** Whether a new bucket would hold just as much of every limit. */
  isFull(nowMs: number): boolean {
    return this.build.rates.every(
      ({ capacityMilli }, at) => this.balanceMilli(at, nowMs) >= capacityMilli,
    );
  }

  /** Returns the time since the last consume, in milliseconds. */
  idleMs(nowMs: number): number {
    const times = this.build.names.map((_, at) => refilledAtMs(this.numbers, at));
    return nowMs - Math.max(0, ...times);
  }

  /** Returns its limits for lists. */
  states(entityId: string, resource: string, nowMs: number): StoredState[] {
    const { numbers } = this;
    return this.build.names.map((limitName, at) => {
      const { capacityMilli, refillMilli, periodMs } = this.build.rates[at] as Rate;
      return {
        entityId,
        resource,
        shard: 0,
        shardCount: 1,
        limitName,
        capacityMilli,
        refillMilli,
        periodMs,
        balanceMilli: this.balanceMilli(at, nowMs),
        consumedMilli: consumedAt(numbers, at),
        refilledAtMs: refilledAtMs(numbers, at),
      };
    });
  }
}

/** Returns an array of exactly the size needed: one that grows reserves room for more. */
export function numbersFor(limits: number): Numbers {
  return new Array<number>(limits * STRIDE);
}

/** Returns the links of all buckets when one is not the link that its leg was made from. */
export function changedLinks(
  parts: readonly { readonly leg: Leg; readonly bucket: Bucket }[],
): readonly Link[] | undefined {
  const links = parts.map(({ leg, bucket }) => effectiveLink(bucket.link, leg.config.cascade));
  return parts.every(({ leg }, at) => sameLink(leg.link, links[at] as Link)) ? undefined : links;
}
