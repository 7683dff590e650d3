/**
 * An ideal bucket, written from the rules of the documents and not from the library: exact
 * fractions of milli-tokens, one clock, no store. Shares no code with what it judges.
 */
export class IdealBucket {
  #limits = new Map();
  #nowMs = 0;

  /** `limits`: name, capacity and refill in tokens, period in milliseconds. Starts full. */
  constructor(limits, nowMs) {
    this.#nowMs = nowMs;
    for (const { name, capacity, refill, periodMs } of limits) {
      const period = BigInt(periodMs);
      // In milli-tokens times the period, so that every refill is a whole number.
      const full = BigInt(capacity) * 1000n * period;
      const perMs = BigInt(refill) * 1000n;
      this.#limits.set(name, { period, full, perMs, level: full, consumed: 0n });
    }
  }

  passTo(nowMs) {
    const ms = BigInt(nowMs - this.#nowMs);
    this.#nowMs = nowMs;
    for (const limit of this.#limits.values()) {
      limit.level = smaller(limit.full, limit.level + ms * limit.perMs);
    }
  }

  /** Whether all amounts fit, and how long a caller would wait, in milliseconds. */
  judge(amounts) {
    let waitMs = 0;
    for (const [name, amount] of Object.entries(amounts)) {
      // A limit that nothing is asked of refuses nothing, in debt or not.
      if (amount === 0) continue;
      const { period, full, perMs, level } = this.#limits.get(name);
      const needed = BigInt(amount) * 1000n * period;
      // The balance is shown in whole milli-tokens, and the wait is rounded up past the next ms.
      const missing = needed / period - floorDiv(level, period);
      if (missing <= 0n) continue;
      const own = needed > full ? Number.POSITIVE_INFINITY : Number((missing * period) / perMs) + 1;
      waitMs = Math.max(waitMs, own);
    }
    return { fits: waitMs === 0, waitMs };
  }

  /** Consumes the amounts, and refunds those below zero. */
  consume(amounts) {
    for (const [name, amount] of Object.entries(amounts)) {
      const limit = this.#limits.get(name);
      const milli = BigInt(amount) * 1000n;
      limit.level = smaller(limit.full, limit.level - milli * limit.period);
      limit.consumed += milli;
    }
  }

  /** Returns whole tokens, rounded down, and all that was consumed. */
  shown() {
    return new Map(
      [...this.#limits].map(([name, { period, level, consumed }]) => [
        name,
        { tokens: Number(floorDiv(level, 1000n * period)), consumed: Number(consumed / 1000n) },
      ]),
    );
  }
}

function smaller(left, right) {
  if (left < right) return left;
  return right;
}

function floorDiv(value, by) {
  const quotient = value / by;
  return value % by !== 0n && value < 0n ? quotient - 1n : quotient;
}
