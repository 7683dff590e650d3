/**
 * An ideal balance of one limit of one shard, with a highest and a lowest level, between which the
 * stored one must be. Exact, in milli-tokens over a common denominator.
 *
 * Writes are planned at a time and land later, in another order. `atMs` is the latest time that a
 * write was planned for. A full bucket forgets the time beyond full; a write that was planned
 * earlier has forgotten less, and only then the highest level is raised by the difference.
 */

import type { Numbers, Windows } from "./windows.ts";

/** The part of a limit that a shard has. */
export interface ShareRate {
  readonly capacity: bigint;
  readonly refill: bigint;
  /** The period, times the number of shards; where there are windows, one for all of them. */
  readonly period: bigint;
  /** The worth of 1 in a stored remainder, over the period. */
  readonly unit: bigint;
}

/** The part of a limit that a shard has, in time. */
export interface Flow {
  at(ms: number): ShareRate;
  /** Returns the first boundary after an instant. */
  endAt(ms: number): number;
}

export function shareRate(
  limit: { readonly capacity: number; readonly refill: number; readonly period: number },
  shard: number,
  count: number,
): ShareRate {
  const [whole, parts] = [BigInt(limit.capacity), BigInt(count)];
  const odd = BigInt(shard) < whole % parts ? 1n : 0n;
  return {
    capacity: whole / parts + odd,
    refill: BigInt(limit.refill),
    period: BigInt(limit.period) * parts,
    unit: 1n,
  };
}

/** Returns the part of a shard in time: over a period that all numbers of the limit divide. */
export function flowOf(
  limit: Numbers & { readonly windows?: Windows | undefined },
  shard: number,
  count: number,
): Flow {
  const { windows } = limit;
  const plain = shareRate(limit, shard, count);
  if (windows === undefined) return { at: () => plain, endAt: () => Number.POSITIVE_INFINITY };
  const base = { capacity: limit.capacity, refill: limit.refill, period: limit.period };
  const periods = new Set(windows.allOf(base).map(({ period }) => BigInt(period)));
  const common = [...periods].reduce((product, period) => product * period, BigInt(count));
  return {
    at: (ms) => {
      const { capacity, refill, period } = shareRate(windows.numbersAt(base, ms), shard, count);
      const unit = common / period;
      return { capacity, refill: refill * unit, period: common, unit };
    },
    endAt: (ms) => windows.endAt(ms),
  };
}

/** No write lands longer than this after it was planned. */
const KEPT_MS = 60_000;

export class Share {
  /** The numbers in force at `atMs`. */
  rate: ShareRate;
  atMs: number;
  /** Numerators over the period of the rate. */
  highest: bigint;
  lowest: bigint;
  /** Milli-tokens that a debt may be deeper by: of a time which counts by other numbers now. */
  #recounted = 0n;
  /** Its parameters have changed, and what is stored was rounded then. */
  #rounded = false;
  #flow: Flow;
  #wasFull = false;

  /** `level`: over the period of the rate. */
  constructor(flow: Flow, atMs: number, level: bigint) {
    this.#flow = flow;
    this.rate = flow.at(atMs);
    this.atMs = atMs;
    this.highest = level;
    this.lowest = level;
  }

  static full(flow: Flow, atMs: number): Share {
    const rate = flow.at(atMs);
    return new Share(flow, atMs, rate.capacity * rate.period);
  }

  /** Creates a share that holds what is stored. */
  static stored(flow: Flow, stored: StoredLevel, atMs: number): Share {
    const rate = flow.at(atMs);
    const level = Share.numerator(rate, stored, atMs);
    const share = new Share(flow, atMs, smaller(rate.capacity * rate.period, level));
    share.#rounded = true;
    if (level < 0n) share.#recounted = ceilDiv(-level, rate.period);
    return share;
  }

  get #full(): bigint {
    return this.rate.capacity * this.rate.period;
  }

  get isFull(): boolean {
    return this.highest >= this.#full;
  }

  /** Whether it was full at the last boundary, and holds less than the capacity since. */
  get isFullButForBoundary(): boolean {
    return this.#wasFull;
  }

  refill(nowMs: number): void {
    while (nowMs > this.atMs) {
      const endMs = this.#flow.endAt(this.atMs);
      const untilMs = Math.min(nowMs, endMs);
      const gained = this.#gained(this.atMs, untilMs);
      this.highest = smaller(this.#full, this.highest + gained);
      this.lowest = smaller(this.#full, this.lowest + gained);
      this.atMs = untilMs;
      if (untilMs === endMs) this.#cross();
    }
  }

  /** Goes on with the numbers that are in force now. What is beyond them is cut. */
  #cross(): void {
    const before = this.rate;
    this.#wasFull = this.isFull;
    this.rate = this.#flow.at(this.atMs);
    // The part of a milli-token that is stored is rounded down, to units of the new period.
    if (this.rate.unit !== before.unit) this.lowest -= this.rate.unit;
    this.highest = smaller(this.#full, this.highest);
    this.lowest = smaller(this.#full, this.lowest);
  }

  /**
   * Lets be missing what a base time that is pulled back over a boundary gives up: what is beyond
   * the numbers before it, in a bucket that began full inside of a window, and some milli-tokens.
   */
  pullBack(epochMs: number, milli: bigint): void {
    const most = Share.full(this.#flow, epochMs);
    most.refill(this.atMs);
    this.lowest = smaller(this.lowest, most.highest) - milli * this.rate.period;
    this.#recounted += milli;
  }

  /** Returns the most that there is if the bucket was cut at the last boundary. */
  #sinceBoundary(): bigint {
    let boundaryMs = this.atMs - KEPT_MS;
    for (;;) {
      const endMs = this.#flow.endAt(boundaryMs);
      if (endMs > this.atMs) break;
      boundaryMs = endMs;
    }
    const most = Share.full(this.#flow, boundaryMs);
    most.refill(this.atMs);
    return most.highest;
  }

  /** Whether a boundary lies after a base time, and not after another time. */
  isBoundaryBetween(epochMs: number, nowMs: number): boolean {
    return this.#flow.endAt(epochMs) <= nowMs;
  }

  /** Whether another share has the same numbers, and windows with the same ones. */
  follows(flow: Flow): boolean {
    const [one, other] = [this.#flow.at(this.atMs), flow.at(this.atMs)];
    return (
      one.capacity === other.capacity && one.refill === other.refill && one.period === other.period
    );
  }

  /**
   * Consumes `amount` by a write that was planned for `plannedMs`; refunds if negative. `isBefore`:
   * it counts before a boundary that has passed, where what is beyond the new capacity was cut.
   */
  take(amount: bigint, plannedMs: number, isBefore = false): void {
    this.refill(plannedMs);
    const taken = amount * this.rate.period;
    if (isBefore) {
      const most = this.#sinceBoundary();
      const left = this.highest - taken;
      if (amount > 0n) this.lowest -= taken;
      if (amount < 0n || left > most) this.highest = smaller(this.#full, left);
      else this.highest = smaller(this.highest, most);
      return;
    }
    if (amount > 0n && plannedMs < this.atMs && this.isFull) {
      this.highest = this.#full + this.#gained(plannedMs, this.atMs);
    }
    this.highest = smaller(this.#full, this.highest - taken);
    this.lowest = smaller(this.#full, this.lowest - taken);
  }

  /**
   * Changes parameters or the number of shards from `plannedMs` on. `moved` goes to another shard:
   * milli-tokens over the new period. A split of a shard that other clients keep writing to
   * does not know its remainder, and gives up less than two milli-tokens; one that does know it, an
   * `exact` one, gives up nothing.
   */
  change(flow: Flow, plannedMs: number, moved?: bigint, exact = false): void {
    this.refill(plannedMs);
    const before = this.rate;
    const late = gainedBy(this.#flow, plannedMs, this.atMs);
    this.#flow = flow;
    const rate = flow.at(this.atMs);
    this.#rounded = true;
    if (rate.period !== before.period) {
      this.highest = ceilDiv(this.highest * rate.period, before.period);
      this.lowest = floorDiv(this.lowest * rate.period, before.period);
      // The part of a milli-token that is stored is rounded down, to units of the new period.
      if (rate.period % before.period !== 0n) this.lowest -= rate.unit;
    }
    this.rate = rate;
    if (plannedMs < this.atMs) {
      // The time since was counted by the old rate, and counts by the new one.
      this.highest += gainedBy(flow, plannedMs, this.atMs);
      this.lowest -= ceilDiv(late * rate.period, before.period);
      this.#recounted += ceilDiv(late, before.period);
    }
    this.highest = smaller(this.#full, this.highest - (moved ?? 0n));
    this.lowest = smaller(this.#full, this.lowest - (moved ?? 0n));
    if (moved !== undefined && !exact) this.lowest -= 2n * this.rate.period;
  }

  /**
   * Takes in another share of the same count: `flow` is that of both together. Each of them was cut
   * at what it holds until `plannedMs`, and not any more since. Half of the least part that is
   * stored may be given up.
   */
  absorb(other: Share, flow: Flow, plannedMs: number): void {
    const untilMs = Math.max(plannedMs, this.atMs, other.atMs);
    for (const share of [this, other]) share.refill(untilMs);
    const regained = 2n * gainedBy(this.#flow, plannedMs, untilMs);
    const before = this.rate.period;
    this.#flow = flow;
    const rate = flow.at(untilMs);
    this.rate = rate;
    this.#rounded = true;
    this.#recounted += other.#recounted;
    const highest = this.highest + other.highest + regained;
    this.highest = smaller(this.#full, ceilDiv(highest * rate.period, before));
    this.lowest = floorDiv((this.lowest + other.lowest) * rate.period, before) - rate.unit;
  }

  /** Returns in which way the stored balance is wrong; `undefined` when it may be right. */
  judge(stored: StoredLevel): "above" | "below" | undefined {
    const level = this.#levelOf(stored);
    if (level > this.highest) return "above";
    return level < this.lowest ? "below" : undefined;
  }

  /** Whether the stored balance is deeper in debt than it may be. */
  owes(stored: StoredLevel, debt: bigint): boolean {
    const level = this.#levelOf(stored);
    const most = (debt + this.#recounted) * this.rate.period;
    return this.#rounded ? level <= -(most + this.rate.period) : level < -most;
  }

  /** Formats the stored balance at the time of the ideal one. */
  describe(stored: StoredLevel): string {
    const show = (level: bigint) => Number((level * 1000n) / this.rate.period) / 1000;
    const level = show(this.#levelOf(stored));
    return `holds ${level} milli, where ${show(this.lowest)} to ${show(this.highest)} are right`;
  }

  /** Returns the stored balance at a time, over the period of the share. */
  static numerator(rate: ShareRate, stored: StoredLevel, atMs: number): bigint {
    const { tokens, epochMs, remainder } = stored;
    const { period, refill, unit } = rate;
    const parts = BigInt(remainder) * unit;
    const carried = remainder >= 0 && parts < period ? parts : 0n;
    return tokens * period + BigInt(atMs - epochMs) * refill + carried;
  }

  #levelOf(stored: StoredLevel): bigint {
    const { epochMs } = stored;
    if (this.isBoundaryBetween(epochMs, this.atMs)) {
      const level = Share.numerator(this.#flow.at(epochMs), stored, epochMs);
      const walked = new Share(this.#flow, epochMs, level);
      walked.refill(this.atMs);
      return walked.highest;
    }
    return smaller(this.#full, Share.numerator(this.rate, stored, this.atMs));
  }

  #gained(fromMs: number, toMs: number): bigint {
    return BigInt(toMs - fromMs) * this.rate.refill;
  }
}

/** Returns what accrues in a time, through the boundaries in it. */
function gainedBy(flow: Flow, fromMs: number, toMs: number): bigint {
  let gained = 0n;
  for (let atMs = fromMs; atMs < toMs; ) {
    const endMs = Math.min(toMs, flow.endAt(atMs));
    gained += BigInt(endMs - atMs) * flow.at(atMs).refill;
    atMs = endMs;
  }
  return gained;
}

/** A balance as it is stored: relative to an epoch. */
export interface StoredLevel {
  readonly tokens: bigint;
  readonly epochMs: number;
  readonly remainder: number;
}

/** Returns the smaller of two amounts. */
export function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

export function floorDiv(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

function ceilDiv(value: bigint, by: bigint): bigint {
  return -floorDiv(-value, by);
}
