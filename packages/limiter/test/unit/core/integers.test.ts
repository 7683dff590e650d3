import { ceilDiv, floorDiv, mulAddDiv, mulAddDivRem } from "@zae-limiter/limiter/core/integers.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clamp, floorBig } from "./oracle.ts";

const SAFE = Number.MAX_SAFE_INTEGER;

/** Safe integers of every size, also the largest, of either sign. */
const integer = fc.oneof(
  fc.integer({ min: -1000, max: 1000 }),
  fc.maxSafeInteger(),
  fc.integer({ min: SAFE - 1000, max: SAFE }),
  fc.integer({ min: -SAFE, max: -SAFE + 1000 }),
);
const divisor = fc.oneof(
  fc.integer({ min: 1, max: 100 }),
  fc.integer({ min: 1, max: 86_400_000 }),
  fc.integer({ min: 1, max: SAFE }),
  fc.integer({ min: SAFE - 1000, max: SAFE }),
);

describe("floorDiv and ceilDiv", () => {
  test.each([
    [-500, 1000, -1],
    [-1000, 1000, -1],
    [-1001, 1000, -2],
    [999, 1000, 0],
    [0, 7, 0],
    [SAFE, 1, SAFE],
    [-SAFE, 1, -SAFE],
    [SAFE, SAFE, 1],
    [-SAFE, 7, -1_286_742_750_677_285],
  ])("floorDiv(%d, %d) is %d: toward minus infinity", (value, by, expected) => {
    expect(floorDiv(value, by)).toBe(expected);
  });

  test.each([
    [-500, 1000, 0],
    [-1000, 1000, -1],
    [1, 1000, 1],
    [1000, 1000, 1],
    [0, 7, 0],
    [SAFE, 7, 1_286_742_750_677_285],
  ])("ceilDiv(%d, %d) is %d, and zero has no sign", (value, by, expected) => {
    expect(ceilDiv(value, by)).toBe(expected);
  });

  property("floorDiv is what BigInt says", [integer, divisor], (value, by) => {
    expect(BigInt(floorDiv(value, by))).toBe(floorBig(BigInt(value), BigInt(by)));
  });

  property("ceilDiv is what BigInt says", [integer, divisor], (value, by) => {
    expect(BigInt(ceilDiv(value, by))).toBe(-floorBig(-BigInt(value), BigInt(by)));
  });

  property(
    "floorDiv is right next to every multiple of the divisor",
    [fc.integer({ min: -SAFE, max: SAFE }), divisor, fc.integer({ min: -2, max: 2 })],
    (near, by, offset) => {
      const value = near - (near % by) + offset;
      fc.pre(Number.isSafeInteger(value));
      expect(BigInt(floorDiv(value, by))).toBe(floorBig(BigInt(value), BigInt(by)));
    },
  );
});

describe("mulAddDiv and mulAddDivRem", () => {
  test("the remainder is exact where the product of quotient and divisor passes 2^53", () => {
    expect(mulAddDivRem(-SAFE, 1, 0, 7)).toEqual({
      quotient: -1_286_742_750_677_285,
      remainder: 4,
    });
  });

  test("a quotient beyond 2^53 saturates, on either side", () => {
    expect(mulAddDiv(SAFE, 2, 0, 1)).toBe(SAFE);
    expect(mulAddDiv(SAFE, -2, 0, 1)).toBe(-SAFE);
    expect(mulAddDivRem(SAFE, 3, 1, 2)).toEqual({ quotient: SAFE, remainder: 0 });
  });

  test("a sum that passes 2^53 although its product does not is noticed", () => {
    expect(mulAddDiv(SAFE, 1, 2, 2)).toBe(4_503_599_627_370_496);
    expect(mulAddDivRem(-SAFE, 1, -2, 2)).toEqual({
      quotient: -4_503_599_627_370_497,
      remainder: 1,
    });
  });

  test("a product that passes 2^53 is noticed although its sum comes back below", () => {
    expect(mulAddDiv(94_906_267, 94_906_267, -4_000_000_000, 1)).toBe(9_007_195_515_875_289);
    expect(mulAddDivRem(94_906_267, -94_906_267, 4_000_000_000, 2)).toEqual({
      quotient: -4_503_597_757_937_645,
      remainder: 1,
    });
  });

  property(
    "floorDiv and ceilDiv are what BigInt says, and never lose the remainder",
    [integer, integer, integer, divisor],
    (a, b, c, by) => {
      const sum = BigInt(a) * BigInt(b) + BigInt(c);
      const expected = floorBig(sum, BigInt(by));
      const { quotient, remainder } = mulAddDivRem(a, b, c, by);
      expect(BigInt(quotient)).toBe(clamp(expected));
      expect(BigInt(remainder)).toBe(sum - expected * BigInt(by));
      expect(BigInt(mulAddDiv(a, b, c, by))).toBe(clamp(expected));
    },
  );

  property(
    "the same around the border where a product stops being safe",
    [
      fc.integer({ min: 1, max: 94_906_265 }),
      fc.integer({ min: -3, max: 3 }),
      fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -(2 ** 30), max: 2 ** 30 })),
      fc.oneof(divisor, fc.integer({ min: 1, max: 3 })),
      fc.boolean(),
    ],
    (a, offset, c, by, negative) => {
      const b = (Math.floor(SAFE / a) + offset) * (negative ? -1 : 1);
      fc.pre(Number.isSafeInteger(b));
      const sum = BigInt(a) * BigInt(b) + BigInt(c);
      const expected = floorBig(sum, BigInt(by));
      const { quotient, remainder } = mulAddDivRem(a, b, c, by);
      expect(BigInt(quotient)).toBe(clamp(expected));
      expect(BigInt(remainder)).toBe(sum - expected * BigInt(by));
      expect(BigInt(mulAddDiv(a, b, c, by))).toBe(clamp(expected));
    },
  );
});
