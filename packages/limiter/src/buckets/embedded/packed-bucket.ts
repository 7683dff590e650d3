/**
 * A bucket as this process remembers it: its numbers in one array, changed in place.
 *
 * Nearly all acquires meet a bucket that was used before, by limits that are still in force. Such a
 * consume is decided here, with the arithmetic of `core/bucket.ts` and nothing else; whatever is
 * out of the ordinary takes the slow path, which comes to the same.
 */

import type { Rate } from "../../core/bucket.ts";
import { isLiteral, TOKENS_MAX } from "../../domain/check.ts";
import type { Limit } from "../../domain/limit.ts";
import type { FastRequest } from "../fast-path.ts";
import type { BucketConfig, LimitSource, Link } from "../leg.ts";
import { rowText } from "./bucket-row.ts";
import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";
import { FastConsume } from "./fast-consume.ts";
import { heldAt, lastRefillMs, limitsOf, numbersOf, refundAt, takeAt } from "./packed-numbers.ts";
import { hourStartMs } from "./usage-hour.ts";

/** The limits that a bucket was built from. Buckets with the same limits share one. */
export interface Build {
  readonly version: number;
  readonly source: LimitSource;
  readonly names: readonly string[];
  readonly rates: readonly Rate[];
}

/** Limits in force, for buckets that were built from them. */
export interface FastConfig {
  readonly config: BucketConfig;
  /** The very list a call must give for them to be in force; `undefined`: the stored limits. */
  readonly given: readonly Limit[] | undefined;
  /** The cache generation these limits were read in; stale once the cache has moved on. */
  readonly generation: number;
  /** Whether other processes may change the limits, so that they have to be read again in time. */
  readonly expires: boolean;
  /** A time to live that is at least so far off stays as it is; negative: there is none. */
  readonly keepSeconds: number;
}

export class PackedBucket {
  build: Build;
  link: Link;
  ttl: number | undefined;
  #usageHour: number;
  #events: number;
  #numbers: number[];
  /** The limits themselves, where a total is beyond what a number holds. */
  #wide: readonly EmbeddedLimit[] | undefined;
  #fast: FastConfig | undefined;
  /** Whole seconds, where limits expire. */
  #freshUntil = 0;
  /** Whole seconds: until then nothing but numbers changes. */
  #fastUntil = 0;

  constructor(bucket: EmbeddedBucket, build: Build) {
    this.build = build;
    this.link = bucket.link;
    this.ttl = bucket.ttl;
    this.#usageHour = bucket.usageHour;
    this.#events = bucket.events;
    this.#numbers = numbersOf(bucket);
    this.#wide = wideOf(bucket);
  }

  /** Takes over what was decided on the slow path. */
  replace(bucket: EmbeddedBucket, build: Build): void {
    if (build !== this.build || bucket.link !== this.link) this.#fast = undefined;
    this.build = build;
    this.link = bucket.link;
    this.ttl = bucket.ttl;
    this.#usageHour = bucket.usageHour;
    this.#events = bucket.events;
    this.#numbers = numbersOf(bucket);
    this.#wide = wideOf(bucket);
    this.#fastUntil = fastUntil(bucket, this.#fast, this.#freshUntil);
  }

  /** Returns the bucket in the form that the slow path and readers use. */
  unpacked(): EmbeddedBucket {
    const { version, source, names, rates } = this.build;
    return {
      link: this.link,
      version,
      source,
      ttl: this.ttl,
      usageHour: this.#usageHour,
      events: this.#events,
      limits: this.#wide ?? limitsOf(names, rates, this.#numbers),
    };
  }

  /** As a row, for stores that write it. */
  text(): string {
    const { build, link } = this;
    const row = { build, link, usageHour: this.#usageHour, events: this.#events };
    return rowText(row, this.#numbers);
  }

  /** These limits are in force for the bucket, until then. */
  remember(fast: FastConfig, untilMs: number): void {
    this.#fast = fast;
    this.#freshUntil = Math.floor(untilMs / 1000);
    const { ttl } = this;
    this.#fastUntil = fastUntil({ ttl, usageHour: this.#usageHour }, fast, this.#freshUntil);
  }

  /** Whether the bucket is remembered with these limits of a call, or else with stored ones. */
  isFastFor(limits: readonly Limit[] | undefined, generation: number): boolean {
    const fast = this.#fast;
    return fast !== undefined && fast.generation === generation && fast.given === limits;
  }

  /** The same for an ancestor: stored limits of its own come before those of a call. */
  isFastAbove(limits: readonly Limit[] | undefined, generation: number): boolean {
    const fast = this.#fast;
    if (fast === undefined || fast.generation !== generation) return false;
    return fast.given === undefined || fast.given === limits;
  }

  /** Consumes from all limits or none; `undefined`, with nothing done: use the slow path. */
  consume(request: FastRequest, ignoresMissing: boolean, nowMs: number): FastConsume | undefined {
    const { entityId, resource, consume } = request;
    const outcome = this.look(entityId, resource, consume, ignoresMissing, nowMs);
    if (outcome?.granted === true) this.take(outcome, nowMs);
    return outcome;
  }

  /** Whether the entity cascades to an ancestor. */
  get cascades(): boolean {
    return this.link.cascade && this.link.parentId !== undefined;
  }

  /**
   * Returns what a consume would come to, with the balances as they are, and changes nothing;
   * `undefined`: use the slow path. `ignoresMissing` passes over names of other limits.
   */
  look(
    entityId: string,
    resource: string,
    consume: Readonly<Record<string, number>>,
    ignoresMissing: boolean,
    nowMs: number,
  ): FastConsume | undefined {
    const fast = this.#fast;
    if (fast === undefined || !isLiteral(consume)) return undefined;
    if (!isOrdinary(nowMs, this.#usageHour, this.#fastUntil)) return undefined;
    const { names, rates } = this.build;
    const count = names.length;
    const milli = new Array<number>(2 * count);
    let granted = true;
    let unknown = 0;
    for (const _ in consume) unknown += 1;
    for (let at = 0; at < count; at += 1) {
      const given = consume[names[at] as string];
      const held = heldAt(this.#numbers, at, rates[at] as Rate, nowMs);
      let amount = 0;
      if (given !== undefined) {
        amount = given;
        unknown -= 1;
      }
      if (held < 0 || !isAmount(amount)) return undefined;
      if (amount * 1000 > held) granted = false;
      milli[at] = amount * 1000;
      milli[count + at] = held;
    }
    if (unknown !== 0 && !(ignoresMissing && isPassedOver(consume, fast))) return undefined;
    return new FastConsume(granted, entityId, resource, fast.config, this.link, milli);
  }

  /** Consumes what `look` has granted at the same time; its balances become what is left. */
  take({ milli }: FastConsume, nowMs: number): void {
    const { rates } = this.build;
    const numbers = this.#numbers;
    let takes = false;
    for (let at = 0; at < rates.length; at += 1) {
      const amount = milli[at] as number;
      if (amount === 0) continue;
      takes = true;
      const held = milli[rates.length + at] as number;
      takeAt(numbers, at, rates[at] as Rate, held, amount, nowMs);
      milli[rates.length + at] = held - amount;
    }
    if (takes) this.#events += 1;
  }

  /**
   * Corrects what was consumed, in place; false, with nothing done: use the slow path. A refund
   * keeps the time of its limit, as in `withTaken`; a debt takes the slow path, because the bucket
   * must then be kept for longer.
   */
  adjust(
    limits: readonly Limit[],
    deltasMilli: readonly number[],
    acquires: number,
    nowMs: number,
  ): boolean {
    if (this.#fast?.config.limits !== limits) return false;
    if (!isOrdinary(nowMs, this.#usageHour, this.#fastUntil)) return false;
    const { rates } = this.build;
    const numbers = this.#numbers;
    for (let at = 0; at < rates.length; at += 1) {
      const delta = deltasMilli[at] ?? 0;
      if (delta === 0) continue;
      const held = heldAt(numbers, at, rates[at] as Rate, nowMs);
      if (held < 0 || delta > held) return false;
    }
    for (let at = 0; at < rates.length; at += 1) {
      const rate = rates[at] as Rate;
      const delta = deltasMilli[at] ?? 0;
      if (delta > 0) takeAt(numbers, at, rate, heldAt(numbers, at, rate, nowMs), delta, nowMs);
      if (delta < 0) refundAt(numbers, at, -delta);
    }
    this.#events += acquires;
    return true;
  }

  /** Whether a new bucket would hold just as much of every limit. */
  isFull(nowMs: number): boolean {
    if (this.#wide !== undefined) return false;
    return this.build.rates.every(
      (rate, at) => heldAt(this.#numbers, at, rate, nowMs) >= rate.capacityMilli,
    );
  }

  /** Returns the time since the last consume, in milliseconds. */
  idleMs(nowMs: number): number {
    return nowMs - lastRefillMs(this.#numbers);
  }
}

/** Neither limits, nor time to live, nor usage have anything to settle before. */
function isOrdinary(nowMs: number, usageHour: number, fastUntil: number): boolean {
  return nowMs < fastUntil * 1000 && nowMs >= hourStartMs(usageHour);
}

/** Returns until when a bucket can be fast, in whole seconds; 0: it cannot. */
function fastUntil(
  { ttl, usageHour }: Pick<EmbeddedBucket, "ttl" | "usageHour">,
  fast: FastConfig | undefined,
  freshUntil: number,
): number {
  if (fast === undefined || fast.keepSeconds < 0 !== (ttl === undefined)) return 0;
  const hourEnd = hourStartMs(usageHour + 1) / 1000;
  const ttlEnd = ttl === undefined ? hourEnd : ttl - fast.keepSeconds;
  return Math.min(hourEnd, ttlEnd, fast.expires ? freshUntil : hourEnd);
}

/** A name passed over may be a stored limit that is not supported; only the slow path tells. */
function isPassedOver(consume: Readonly<Record<string, number>>, { config }: FastConfig): boolean {
  return (config.unsupported ?? []).length === 0 && Object.values(consume).every(isAmount);
}

function isAmount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX;
}

function wideOf({ limits }: EmbeddedBucket): readonly EmbeddedLimit[] | undefined {
  const isWide = limits.some(
    ({ consumedMilli, countedMilli }) =>
      typeof consumedMilli === "bigint" || typeof countedMilli === "bigint",
  );
  return isWide ? limits : undefined;
}
