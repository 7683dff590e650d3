/**
 * An ideal balance of one limit of one shard, with a highest and a lowest level, between which the
 * stored one must be. Exact, in milli-tokens over a common denominator.
 *
 * Writes are planned at a time and land later, in another order. `atMs` is the latest time that a
 * write was planned for. A full bucket forgets the time beyond full; a write that was planned
 * earlier has forgotten less, and only then the highest level is raised by the difference.
 */

/** The part of a limit that a shard has. */
export interface ShareRate {
  readonly capacity: bigint;
  readonly refill: bigint;
  /** The period, times the number of shards. */
  readonly period: bigint;
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
  };
}

export class Share {
  rate: ShareRate;
  atMs: number;
  /** Numerators over the period of the rate. */
  highest: bigint;
  lowest: bigint;
  /** Milli-tokens that were taken of a time which counts by another rate now. */
  #recounted = 0n;
  /** Its parameters have changed, and what is stored was rounded then. */
  #rounded = false;

  /** `level`: over the period of the rate. */
  constructor(rate: ShareRate, atMs: number, level: bigint) {
    this.rate = rate;
    this.atMs = atMs;
    this.highest = level;
    this.lowest = level;
  }

  static full(rate: ShareRate, atMs: number): Share {
    return new Share(rate, atMs, rate.capacity * rate.period);
  }

  /** Creates a share that holds what is stored. */
  static stored(rate: ShareRate, stored: StoredLevel, atMs: number): Share {
    const level = Share.numerator(rate, stored, atMs);
    const share = new Share(rate, atMs, smaller(rate.capacity * rate.period, level));
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

  refill(nowMs: number): void {
    if (nowMs <= this.atMs) return;
    const gained = this.#gained(this.atMs, nowMs);
    this.highest = smaller(this.#full, this.highest + gained);
    this.lowest = smaller(this.#full, this.lowest + gained);
    this.atMs = nowMs;
  }

  /** Consumes `amount` by a write that was planned for `plannedMs`; refunds if negative. */
  take(amount: bigint, plannedMs: number): void {
    this.refill(plannedMs);
    const taken = amount * this.rate.period;
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
  change(rate: ShareRate, plannedMs: number, moved?: bigint, exact = false): void {
    this.refill(plannedMs);
    const before = this.rate;
    this.#rounded = true;
    const late = this.#gained(plannedMs, this.atMs);
    if (rate.period !== before.period) {
      this.highest = ceilDiv(this.highest * rate.period, before.period);
      this.lowest = floorDiv(this.lowest * rate.period, before.period);
      // The part of a milli-token that is stored is rounded down, to units of the new period.
      if (rate.period % before.period !== 0n) this.lowest -= 1n;
    }
    this.rate = rate;
    if (plannedMs < this.atMs) {
      // The time since was counted by the old rate, and counts by the new one.
      this.highest += this.#gained(plannedMs, this.atMs);
      this.lowest -= ceilDiv(late * rate.period, before.period);
      this.#recounted += ceilDiv(late, before.period);
    }
    this.highest = smaller(this.#full, this.highest - (moved ?? 0n));
    this.lowest = smaller(this.#full, this.lowest - (moved ?? 0n));
    if (moved !== undefined && !exact) this.lowest -= 2n * this.rate.period;
  }

  /**
   * Takes in another share of the same count: `rate` is that of both together. Each of them was cut
   * at what it holds until `plannedMs`, and not any more since. Half of the least part that is
   * stored may be given up.
   */
  absorb(other: Share, rate: ShareRate, plannedMs: number): void {
    const untilMs = Math.max(plannedMs, this.atMs, other.atMs);
    for (const share of [this, other]) share.refill(untilMs);
    const regained = 2n * this.#gained(plannedMs, untilMs);
    const before = this.rate.period;
    this.rate = rate;
    this.#rounded = true;
    this.#recounted += other.#recounted;
    const highest = this.highest + other.highest + regained;
    this.highest = smaller(this.#full, ceilDiv(highest * rate.period, before));
    this.lowest = floorDiv((this.lowest + other.lowest) * rate.period, before) - 1n;
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
    if (!this.#rounded) return level < -debt * this.rate.period;
    return level <= -(debt + this.#recounted + 1n) * this.rate.period;
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
    const { period, refill } = rate;
    const carried = remainder >= 0 && BigInt(remainder) < period ? BigInt(remainder) : 0n;
    return tokens * period + BigInt(atMs - epochMs) * refill + carried;
  }

  #levelOf(stored: StoredLevel): bigint {
    return smaller(this.#full, Share.numerator(this.rate, stored, this.atMs));
  }

  #gained(fromMs: number, toMs: number): bigint {
    return BigInt(toMs - fromMs) * this.rate.refill;
  }
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
