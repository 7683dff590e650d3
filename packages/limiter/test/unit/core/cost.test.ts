import fc from "fast-check";
import { expect, test } from "vitest";
import { affordable, costMicro, FACTOR_ONE } from "../../../src/core/cost.ts";

const items = fc.array(
  fc.record({
    amount: fc.integer({ min: 0, max: 1_000_000_000_000 }),
    pico: fc.integer({ min: 0, max: 1_000_000_000_000 }),
  }),
  { maxLength: 6 },
);

test("a sum is rounded up once, so it is at most a micro-dollar above the exact one", () => {
  fc.assert(
    fc.property(items, fc.integer({ min: 1, max: FACTOR_ONE }), (list, factor) => {
      const exact = list.reduce((sum, { amount, pico }) => sum + BigInt(amount) * BigInt(pico), 0n);
      const scaled = exact * BigInt(factor);
      const micro = BigInt(costMicro(list, factor)) * 1_000_000_000_000n;
      if (costMicro(list, factor) === Number.MAX_SAFE_INTEGER) return;
      expect(micro >= scaled && micro - scaled < 1_000_000_000_000n).toBe(true);
    }),
  );
});

test("what an amount of money pays for costs at most that amount, and one more costs more", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1_000_000_000 }),
      fc.integer({ min: 1, max: 100_000_000 }),
      fc.integer({ min: 1, max: FACTOR_ONE }),
      (micro, pico, factor) => {
        const amount = affordable(micro, pico, factor);
        if (amount === Number.MAX_SAFE_INTEGER) return;
        expect(costMicro([{ amount, pico }], factor)).toBeLessThanOrEqual(micro);
        expect(costMicro([{ amount: amount + 1, pico }], factor)).toBeGreaterThan(micro);
      },
    ),
  );
});

test("nothing pays for nothing, and what is free has no end", () => {
  expect(affordable(0, 5)).toBe(0);
  expect(affordable(-3, 5)).toBe(0);
  expect(affordable(1, 0)).toBe(Number.POSITIVE_INFINITY);
});
