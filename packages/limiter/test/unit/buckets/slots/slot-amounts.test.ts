import {
  lacksSlots,
  movesSlots,
  slotsOnly,
  takesSlots,
  withoutSlots,
} from "@zae-limiter/limiter/buckets/slots/slot-amounts.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const CONFIG = configOf(["rpm:10", "parallel:5 concurrent", "many:9 concurrent soft"]);

test("slots are told from all other amounts", () => {
  expect(slotsOnly(CONFIG, [1000, 2000, 3000])).toEqual([0, 2000, 3000]);
  expect(withoutSlots(CONFIG, [1000, 2000, 3000])).toEqual([1000, 0, 0]);
  expect(movesSlots(CONFIG, [1000, 0, 0])).toBe(false);
  expect(movesSlots(CONFIG, [0, -1000, 0])).toBe(true);
  expect(movesSlots(CONFIG, [1000])).toBe(false);
});

test("a bypassed call takes no slots", () => {
  const amountsMilli = [0, 1000, 0];
  expect(takesSlots({ config: CONFIG, amountsMilli })).toBe(true);
  expect(takesSlots({ config: { ...CONFIG, bypass: true }, amountsMilli })).toBe(false);
});

test("a call lacks slots only where they can be refused", () => {
  const lacks = (balances: readonly number[]) =>
    lacksSlots({ config: CONFIG, amountsMilli: [1000, 2000, 1000] }, balances);
  expect(lacks([0, 2000, -5000])).toBe(false);
  expect(lacks([9000, 1000, 9000])).toBe(true);
});
