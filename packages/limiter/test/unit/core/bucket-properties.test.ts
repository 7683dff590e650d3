import {
  DEBT_MILLI_MAX,
  forceTake,
  type Level,
  type Rate,
  refill,
  retryAfterMs,
  waitMs,
} from "@zae-limiter/limiter/core/bucket.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { take } from "@zae-limiter/test-support/take.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { floorBig, idealParts, partsOf } from "./oracle.ts";

/** The largest a limit may say, in milli-tokens: 10^12 tokens. */
const MILLI_MAX = 1_000_000_000_000_000;
/** The longest period of a limit, over 64 shards. */
const PERIOD_MS_MAX = 64_000_000_000_000;
const YEAR_MS = 31_536_000_000;
const START_MS = 1_767_225_600_000;

const amountMilli = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 1, max: 1_000_000 }).map((tokens) => tokens * 1000),
  fc.integer({ min: 1, max: MILLI_MAX }),
  fc.integer({ min: MILLI_MAX - 1000, max: MILLI_MAX }),
);
const periodMs = fc.oneof(
  fc.constantFrom(1000, 60_000, 3_600_000, 86_400_000),
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 1, max: PERIOD_MS_MAX }),
);
const rateOf = fc.record({ capacityMilli: amountMilli, refillMilli: amountMilli, periodMs });
const elapsedMs = fc.oneof(
  fc.integer({ min: 0, max: 10 }),
  fc.integer({ min: 0, max: 120_000 }),
  fc.integer({ min: 0, max: YEAR_MS }),
);

/** A bucket in any state it can get into: in debt, partly filled, full. */
const bucket = rateOf.chain((rate) =>
  fc.record({
    rate: fc.constant(rate),
    level: fc.record({
      tokensMilli: fc.oneof(
        fc.integer({ min: 0, max: rate.capacityMilli }),
        fc.integer({ min: -rate.capacityMilli, max: rate.capacityMilli }),
        fc.integer({ min: -DEBT_MILLI_MAX, max: 0 }),
        fc.integer({ min: Math.max(0, rate.capacityMilli - 5), max: rate.capacityMilli }),
      ),
      refilledAtMs: fc.constant(START_MS),
      remainder: fc.integer({ min: 0, max: rate.periodMs - 1 }),
    }),
  }),
);

function later(level: Level, rate: Rate, pieces: readonly number[]): Level {
  let current = level;
  for (const piece of pieces) current = refill(current, rate, current.refilledAtMs + piece);
  return current;
}

describe("refill", () => {
  property(
    "a refill is exactly that of the ideal bucket, whatever the size of the numbers",
    [bucket, elapsedMs],
    ({ rate, level }, elapsed) => {
      const after = refill(level, rate, START_MS + elapsed);
      expect(partsOf(after, rate)).toBe(idealParts(level, rate, elapsed));
      expect(after.remainder).toBeGreaterThanOrEqual(0);
      expect(after.remainder).toBeLessThan(rate.periodMs);
      expect(after.refilledAtMs).toBe(START_MS + elapsed);
    },
  );

  property(
    "any split of an interval gives the tokens and the remainder of one piece",
    [bucket, fc.array(elapsedMs, { minLength: 2, maxLength: 12 })],
    ({ rate, level }, pieces) => {
      const whole = pieces.reduce((sum, piece) => sum + piece, 0);
      // Compared from the first read on: a full bucket gives up its remainder when it is read.
      const start = refill(level, rate, START_MS);
      expect(later(start, rate, pieces)).toEqual(refill(start, rate, START_MS + whole));
    },
  );

  property(
    "a refill never exceeds the capacity and never takes anything away from a bucket below it",
    [bucket, elapsedMs],
    ({ rate, level }, elapsed) => {
      const after = refill(level, rate, START_MS + elapsed);
      expect(after.tokensMilli).toBeLessThanOrEqual(rate.capacityMilli);
      expect(after.tokensMilli).toBeGreaterThanOrEqual(level.tokensMilli);
      expect(Number.isSafeInteger(after.tokensMilli)).toBe(true);
    },
  );

  property(
    "a refill rounds toward minus infinity, in debt too",
    [bucket, elapsedMs],
    ({ rate, level }, elapsed) => {
      const after = refill(level, rate, START_MS + elapsed);
      const ideal = idealParts(level, rate, elapsed);
      expect(BigInt(after.tokensMilli)).toBe(floorBig(ideal, BigInt(rate.periodMs)));
    },
  );

  property(
    "a series of takes and refills admits no more than the ideal bucket, in any order",
    [rateOf, fc.array(fc.tuple(elapsedMs, amountMilli), { minLength: 1, maxLength: 20 })],
    (rate, steps) => {
      const period = BigInt(rate.periodMs);
      const full = BigInt(rate.capacityMilli) * period;
      let level: Level = {
        tokensMilli: rate.capacityMilli,
        refilledAtMs: START_MS,
        remainder: 0,
      };
      let ideal = full;
      for (const [elapsed, wanted] of steps) {
        const taken = take(level, rate, wanted, level.refilledAtMs + elapsed);
        ideal += BigInt(elapsed) * BigInt(rate.refillMilli);
        if (ideal > full) ideal = full;
        expect(taken.taken).toBe(ideal >= BigInt(wanted) * period);
        if (taken.taken) ideal -= BigInt(wanted) * period;
        expect(partsOf(taken.level, rate)).toBe(ideal);
        level = taken.level;
      }
    },
  );
});

describe("retryAfterMs", () => {
  property(
    "the wait is enough, and exceeds the ideal one by no more than the rounding it states",
    [bucket, fc.integer({ min: 1, max: 1000 })],
    ({ rate, level }, permille) => {
      const wanted = Math.max(1, Math.floor((rate.capacityMilli / 1000) * permille));
      const refused = take(level, rate, wanted, START_MS);
      fc.pre(!refused.taken);
      const wait = refused.retryAfterMs;
      fc.pre(wait < Number.MAX_SAFE_INTEGER - START_MS);
      expect(take(refused.level, rate, wanted, START_MS + wait).taken).toBe(true);

      const missing = BigInt(wanted) * BigInt(rate.periodMs) - partsOf(refused.level, rate);
      const ideal = -floorBig(-missing, BigInt(rate.refillMilli));
      const started = -floorBig(-BigInt(refused.level.remainder), BigInt(rate.refillMilli));
      expect(BigInt(wait)).toBeGreaterThanOrEqual(ideal);
      // One millisecond of safety, and the part of a milli-token that is already there.
      expect(BigInt(wait)).toBeLessThanOrEqual(ideal + 1n + started);
    },
  );

  property(
    "the wait is enough from behind a clock that ran backwards",
    [bucket, fc.integer({ min: 0, max: 120_000 })],
    ({ rate, level }, behind) => {
      const wanted = rate.capacityMilli;
      const refused = take(level, rate, wanted, START_MS - behind);
      fc.pre(!refused.taken && refused.retryAfterMs < Number.MAX_SAFE_INTEGER - START_MS);
      const retryAt = START_MS - behind + refused.retryAfterMs;
      expect(take(refused.level, rate, wanted, retryAt).taken).toBe(true);
    },
  );

  property(
    "the wait is infinite exactly for what the bucket can never hold",
    [bucket, amountMilli],
    ({ rate, level }, wanted) => {
      const wait = waitMs(wanted, level.tokensMilli, rate);
      expect(wait === Number.POSITIVE_INFINITY).toBe(wanted > rate.capacityMilli);
    },
  );

  property(
    "the wait grows with the deficit",
    [rateOf, amountMilli, amountMilli],
    (rate, one, other) => {
      const [less, more] = one < other ? [one, other] : [other, one];
      expect(retryAfterMs(less, rate)).toBeLessThanOrEqual(retryAfterMs(more, rate));
    },
  );
});

describe("forceTake", () => {
  property(
    "forceTake subtracts exactly the amount from the refilled bucket",
    [bucket, elapsedMs, fc.integer({ min: -MILLI_MAX, max: MILLI_MAX })],
    ({ rate, level }, elapsed, amount) => {
      const refilled = refill(level, rate, START_MS + elapsed);
      const after = forceTake(level, rate, amount, START_MS + elapsed);
      const expected = Math.max(-DEBT_MILLI_MAX, refilled.tokensMilli - amount);
      expect(after).toEqual({ ...refilled, tokensMilli: expected });
      expect(Number.isSafeInteger(after.tokensMilli)).toBe(true);
    },
  );

  property(
    "before the time of its level, a bucket keeps nothing beyond full, to the smallest part",
    [bucket, fc.integer({ min: 1, max: 120_000 }), fc.integer({ min: 0, max: MILLI_MAX })],
    ({ rate, level }, earlier, refund) => {
      const nowMs = START_MS - earlier;
      const { tokensMilli, remainder } = forceTake(level, rate, 0, nowMs);
      const over = forceTake({ ...level, tokensMilli: level.tokensMilli + refund }, rate, 0, nowMs);
      const partsAtNow = (tokens: number) =>
        BigInt(tokens) * BigInt(rate.periodMs) -
        BigInt(earlier) * BigInt(rate.refillMilli) +
        BigInt(remainder);
      const full = BigInt(rate.capacityMilli) * BigInt(rate.periodMs);
      expect(partsAtNow(over.tokensMilli) <= full).toBe(true);
      // Nor does it lose more than the part of a milli-token by which it is rounded.
      const given = partsAtNow(level.tokensMilli);
      const least = given < full ? given : full - BigInt(rate.periodMs);
      expect(partsAtNow(tokensMilli) >= least).toBe(true);
    },
  );
});

describe("speed", () => {
  test("ordinary limits never touch BigInt", () => {
    const original = globalThis.BigInt;
    const rates: Rate[] = [
      { capacityMilli: 100_000, refillMilli: 100_000, periodMs: 60_000 },
      { capacityMilli: 15_000_000, refillMilli: 10_000_000, periodMs: 60_000 },
      { capacityMilli: 1_000_000_000, refillMilli: 1_000_000_000, periodMs: 86_400_000 },
    ];
    const refuse = () => {
      throw new Error("BigInt was used");
    };
    try {
      Object.assign(globalThis, { BigInt: refuse });
      for (const rate of rates) {
        let level: Level = { tokensMilli: 0, refilledAtMs: START_MS, remainder: 0 };
        for (const elapsed of [0, 1, 17, 60_000, 3_600_000]) {
          level = take(level, rate, 1000, level.refilledAtMs + elapsed).level;
          level = forceTake(level, rate, 2000, level.refilledAtMs + elapsed);
          expect(waitMs(1000, -5000, rate)).toBeGreaterThan(0);
        }
      }
      // The trap works: a product beyond 2^53 does need BigInt.
      const large: Rate = { capacityMilli: MILLI_MAX, refillMilli: MILLI_MAX, periodMs: 1000 };
      expect(() =>
        refill({ tokensMilli: 0, refilledAtMs: 0, remainder: 0 }, large, YEAR_MS),
      ).toThrow("BigInt was used");
    } finally {
      Object.assign(globalThis, { BigInt: original });
    }
  });
});
