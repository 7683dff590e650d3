/** The most slots that were held at once, in the numbers of a bucket. */

import { Build } from "@zae-limiter/limiter/buckets/embedded/build.ts";
import {
  consumeAt,
  fill,
  heldAt,
  numbersFor,
  refundAt,
} from "@zae-limiter/limiter/buckets/embedded/limit-numbers.ts";
import {
  beginPeaks,
  peaksOf,
  seePeakAt,
  totalAt,
} from "@zae-limiter/limiter/buckets/slots/slot-peaks.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const NOW = 1_900_000_000_000;

function bucketOf(...texts: string[]) {
  const limits = texts.map((text) => Limit.parse(text));
  const names = limits.map(({ name }) => name);
  const rates = limits.map(({ rate }) => rate);
  const build = new Build(1, "system", names, rates);
  const numbers = numbersFor(build.rates);
  build.rates.forEach((rate, at) => {
    fill(numbers, at, rate, NOW);
  });
  const take = (slots: number) => {
    const [rate] = build.rates;
    if (rate === undefined) return;
    if (slots < 0) refundAt(numbers, 0, rate, -1000 * slots);
    else consumeAt(numbers, 0, rate, heldAt(numbers, 0, rate, NOW), 1000 * slots, NOW);
    seePeakAt(numbers, 0, rate);
  };
  return { build, numbers, take };
}

test("a peak is the most slots that were held, and a new one begins with those held now", () => {
  const { build, numbers, take } = bucketOf("parallel:4 concurrent", "rpm:10");
  const peak = () => peaksOf(build, numbers).peaks?.get("parallel");
  for (const slots of [1, 2, -1, 1, -2]) take(slots);
  expect(peak()).toBe(3);
  beginPeaks(build, numbers);
  expect(peak()).toBe(1);
  // Soft slots are overdrawn.
  take(5);
  expect(peak()).toBe(6);
  expect(peaksOf(build, numbers).peaks?.size).toBe(1);
});

test("slots have consumed nothing in total, and a bucket without slots has no peaks", () => {
  const { build, numbers, take } = bucketOf("parallel:4 concurrent");
  take(3);
  expect(build.rates.map((rate) => totalAt(numbers, 0, rate))).toEqual([0]);
  const rates = bucketOf("rpm:10");
  expect(peaksOf(rates.build, rates.numbers)).toEqual({});
  beginPeaks(rates.build, rates.numbers);
  expect(rates.build.rates.map((rate) => totalAt(rates.numbers, 0, rate))).toEqual([0]);
});
