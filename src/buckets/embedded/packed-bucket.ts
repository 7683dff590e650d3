/**
 * A bucket as this process remembers it: its numbers in one array, changed in place.
 *
 * Nearly all acquires meet a bucket that was used before, by limits that are still in force. Such a
 * consume is decided here, with the arithmetic of `core/bucket.ts` and nothing else; whatever is
 * out of the ordinary takes the slow path, which comes to the same.
 */

import { type Rate, remainderAfter, tokensAfter } from "../../core/bucket.ts";
import { invariant, TOKENS_MAX } from "../../domain/check.ts";
import type { Limit } from "../../domain/limit.ts";
import type { FastRequest } from "../fast-path.ts";
import type { BucketConfig, LimitSource, Link } from "../leg.ts";
import { rowText, STRIDE } from "./bucket-row.ts";
import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";
import { FastConsume } from "./fast-consume.ts";
import { hourOf } from "./usage-hour.ts";

/** What many buckets have in common. */
export interface Build {
  readonly version: number;
  readonly source: LimitSource;
  readonly names: readonly string[];
  readonly rates: readonly Rate[];
}

/** Limits in force, for buckets that were built from them. */
export interface FastConfig {
  readonly config: BucketConfig;
  /** Of the memory of limits: in another one they may be others. */
  readonly generation: number;
  /** Whether other processes may change the limits, so that they have to be read again in time. */
  readonly expires: boolean;
  /** A time to live that is at least so far off stays as it is; negative: there is none. */
  readonly keepSeconds: number;
}

/** Where the numbers of a limit are. */
const TOKENS = 0;
const REFILLED_AT = 1;
const REMAINDER = 2;
const CONSUMED = 3;
const COUNTED = 4;

/** Filled by one consume at a time: what a refill would make of each limit. */
const refilled: number[] = [];
const remainders: number[] = [];

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
  }

  /** As others see it. */
  unpacked(): EmbeddedBucket {
    const { version, source, names, rates } = this.build;
    return {
      link: this.link,
      version,
      source,
      ttl: this.ttl,
      usageHour: this.#usageHour,
      events: this.#events,
      limits: this.#wide ?? names.map((name, at) => this.#limit(name, rates[at] as Rate, at)),
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
  }

  /** Whether the bucket is remembered with these limits of a call, or else with stored ones. */
  isFastFor(limits: readonly Limit[] | undefined, generation: number): boolean {
    const fast = this.#fast;
    if (fast === undefined || fast.generation !== generation) return false;
    const { config } = fast;
    return limits === undefined ? config.source !== "override" : config.limits === limits;
  }

  /** The same for an ancestor: stored limits of its own come before those of a call. */
  isFastAbove(limits: readonly Limit[] | undefined, generation: number): boolean {
    const fast = this.#fast;
    if (fast === undefined || fast.generation !== generation) return false;
    return fast.config.source !== "override" || fast.config.limits === limits;
  }

  /** Consumes from all limits or none; `undefined`, with nothing done: use the slow path. */
  consume(
    { entityId, resource, consume }: FastRequest,
    ignoresMissing: boolean,
    nowMs: number,
  ): FastConsume | undefined {
    const fast = this.#fast;
    const amounts = this.ownAmounts(consume, ignoresMissing);
    if (fast === undefined || amounts === undefined) return undefined;
    const fits = this.fits(amounts, nowMs);
    if (fits === undefined) return undefined;
    const balances = fits ? this.#take(amounts, nowMs) : refilled.slice(0, amounts.length);
    return new FastConsume(fits, entityId, resource, fast.config, this.link, amounts, balances);
  }

  /** Whether the entity cascades to an ancestor. */
  get cascades(): boolean {
    return this.link.cascade && this.link.parentId !== undefined;
  }

  /** Returns the amounts of a call in milli-tokens; `undefined`: use the slow path. */
  ownAmounts(
    consume: Readonly<Record<string, number>>,
    ignoresMissing: boolean,
  ): readonly number[] | undefined {
    if (!ignoresMissing) return amountsIn(consume, this.build.names, false);
    // A name may belong to a limit that is stored and not supported: the slow path tells.
    const mayHaveOthers = this.#supportsAll && areAmounts(consume);
    return amountsIn(consume, this.build.names, mayHaveOthers);
  }

  /** The same for an ancestor: names of other limits are those of the entity below. */
  amountsBelow(consume: Readonly<Record<string, number>>): readonly number[] | undefined {
    return amountsIn(consume, this.build.names, this.#supportsAll);
  }

  get #supportsAll(): boolean {
    const unsupported = this.#fast?.config.unsupported;
    return unsupported === undefined || unsupported.length === 0;
  }

  /** Whether the bucket holds as much; `undefined` where only the slow path can tell. */
  fits(amounts: readonly number[], nowMs: number): boolean | undefined {
    const fast = this.#fast;
    if (fast === undefined || !this.#isOrdinary(fast, nowMs)) return undefined;
    let fits = true;
    for (let at = 0; at < amounts.length; at += 1) {
      if (!this.#refill(at, nowMs)) return undefined;
      const amount = amounts[at] as number;
      if (amount > 0 && amount > (refilled[at] as number)) fits = false;
    }
    return fits;
  }

  /** The leg of a chain whose buckets all can decide: consumed where `granted`, else unchanged. */
  leg(
    entityId: string,
    resource: string,
    amounts: readonly number[],
    granted: boolean,
    nowMs: number,
  ): FastConsume {
    const fast = this.#fast;
    invariant(fast !== undefined, "a leg of a chain has limits that are remembered");
    this.fits(amounts, nowMs);
    const balances = granted ? this.#take(amounts, nowMs) : refilled.slice(0, amounts.length);
    return new FastConsume(granted, entityId, resource, fast.config, this.link, amounts, balances);
  }

  /**
   * Corrects what was consumed, in place; false, with nothing done: use the slow path. A refund
   * keeps the time of its limit, as in `withTaken`; a debt takes the slow path, because the bucket
   * must then be kept for longer.
   */
  correct(
    limits: readonly Limit[],
    deltasMilli: readonly number[],
    acquires: number,
    nowMs: number,
  ): boolean {
    const fast = this.#fast;
    if (fast === undefined || fast.config.limits !== limits) return false;
    if (!this.#isOrdinary(fast, nowMs)) return false;
    for (let at = 0; at < limits.length; at += 1) {
      if (!this.#refill(at, nowMs) || (deltasMilli[at] ?? 0) > (refilled[at] as number))
        return false;
    }
    const numbers = this.#numbers;
    for (let at = 0; at < limits.length; at += 1) {
      const delta = deltasMilli[at] ?? 0;
      if (delta === 0) continue;
      const place = at * STRIDE;
      if (delta > 0) {
        numbers[place + TOKENS] = refilled[at] as number;
        numbers[place + REFILLED_AT] = nowMs;
        numbers[place + REMAINDER] = remainders[at] as number;
      }
      numbers[place + TOKENS] = (numbers[place + TOKENS] as number) - delta;
      numbers[place + CONSUMED] = (numbers[place + CONSUMED] as number) + delta;
    }
    this.#events += acquires;
    return true;
  }

  /** Whether a new bucket would hold just as much of every limit. */
  isFull(nowMs: number): boolean {
    if (this.#wide !== undefined) return false;
    for (let at = 0; at < this.build.names.length; at += 1) {
      if (!this.#refill(at, nowMs)) return false;
      if ((refilled[at] as number) < (this.build.rates[at] as Rate).capacityMilli) return false;
    }
    return true;
  }

  /** Returns the time since the last consume, in milliseconds. */
  idleMs(nowMs: number): number {
    let lastMs = 0;
    for (let place = REFILLED_AT; place < this.#numbers.length; place += STRIDE) {
      lastMs = Math.max(lastMs, this.#numbers[place] as number);
    }
    return nowMs - lastMs;
  }

  /** Neither limits, nor time to live, nor usage have anything to settle before. */
  #isOrdinary({ keepSeconds, expires }: FastConfig, nowMs: number): boolean {
    if (expires && nowMs >= this.#freshUntil * 1000) return false;
    if (this.#usageHour !== hourOf(nowMs)) return false;
    const { ttl } = this;
    if (keepSeconds < 0) return ttl === undefined;
    return ttl !== undefined && ttl >= Math.ceil(nowMs / 1000) + keepSeconds;
  }

  /** Refills a limit; false where the slow path has to: a debt, or a clock that went back. */
  #refill(at: number, nowMs: number): boolean {
    const rate = this.build.rates[at] as Rate;
    const numbers = this.#numbers;
    const place = at * STRIDE;
    const tokens = numbers[place + TOKENS] as number;
    const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
    if (elapsedMs < 0 || tokens < 0) return false;
    const remainder = numbers[place + REMAINDER] as number;
    const after = tokensAfter(rate, tokens, elapsedMs, remainder);
    refilled[at] = after;
    remainders[at] = remainderAfter(rate, tokens, after, elapsedMs, remainder);
    const consumed = numbers[place + CONSUMED] as number;
    return consumed < Number.MAX_SAFE_INTEGER - TOKENS_MAX * 1000;
  }

  #take(amounts: readonly number[], nowMs: number): number[] {
    const numbers = this.#numbers;
    const balances = new Array<number>(amounts.length);
    let takes = false;
    for (let at = 0; at < amounts.length; at += 1) {
      const amount = amounts[at] as number;
      const place = at * STRIDE;
      const left = (refilled[at] as number) - amount;
      balances[at] = left;
      if (amount === 0) continue;
      takes = true;
      numbers[place + TOKENS] = left;
      numbers[place + REFILLED_AT] = nowMs;
      numbers[place + REMAINDER] = remainders[at] as number;
      numbers[place + CONSUMED] = (numbers[place + CONSUMED] as number) + amount;
    }
    if (takes) this.#events += 1;
    return balances;
  }

  #limit(name: string, rate: Rate, at: number): EmbeddedLimit {
    const place = at * STRIDE;
    const number = (offset: number) => this.#numbers[place + offset] as number;
    return {
      name,
      rate,
      level: {
        tokensMilli: number(TOKENS),
        refilledAtMs: number(REFILLED_AT),
        remainder: number(REMAINDER),
      },
      consumedMilli: number(CONSUMED),
      countedMilli: number(COUNTED),
    };
  }
}

/** In milli-tokens, by the order of the names; `undefined` for what has to be looked at closely. */
function amountsIn(
  consume: Readonly<Record<string, number>>,
  names: readonly string[],
  mayHaveOthers: boolean,
): number[] | undefined {
  if (typeof consume !== "object" || consume === null) return undefined;
  if (Object.getPrototypeOf(consume) !== Object.prototype) return undefined;
  let unknown = 0;
  for (const _ in consume) unknown += 1;
  const amounts = new Array<number>(names.length);
  for (let at = 0; at < names.length; at += 1) {
    const amount = consume[names[at] as string];
    if (amount === undefined) {
      amounts[at] = 0;
      continue;
    }
    if (!isAmount(amount)) return undefined;
    unknown -= 1;
    amounts[at] = amount * 1000;
  }
  return unknown === 0 || mayHaveOthers ? amounts : undefined;
}

function areAmounts(consume: Readonly<Record<string, number>>): boolean {
  for (const name in consume) if (!isAmount(consume[name])) return false;
  return true;
}

function isAmount(value: number | undefined): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= TOKENS_MAX;
}

/** Of exactly the size that is needed: an array that grows takes room for more. */
function numbersOf({ limits }: EmbeddedBucket): number[] {
  const numbers = new Array<number>(limits.length * STRIDE);
  for (let at = 0; at < limits.length; at += 1) {
    const { level, consumedMilli, countedMilli } = limits[at] as EmbeddedLimit;
    const place = at * STRIDE;
    numbers[place + TOKENS] = level.tokensMilli;
    numbers[place + REFILLED_AT] = level.refilledAtMs;
    numbers[place + REMAINDER] = level.remainder;
    numbers[place + CONSUMED] = Number(consumedMilli);
    numbers[place + COUNTED] = Number(countedMilli);
  }
  return numbers;
}

function wideOf({ limits }: EmbeddedBucket): readonly EmbeddedLimit[] | undefined {
  const isWide = limits.some(
    ({ consumedMilli, countedMilli }) =>
      typeof consumedMilli === "bigint" || typeof countedMilli === "bigint",
  );
  return isWide ? limits : undefined;
}
