/** Which consumes of a group share a write. */

import { describe, expect, test } from "vitest";
import {
  acquiresOf,
  balancesAfterEach,
  fitting,
  sumOf,
} from "../../../../src/buckets/distributed/combining.ts";

import { Limit } from "../../../../src/domain/limit.ts";

const CONFIG = {
  limits: [Limit.parse("a:1"), Limit.parse("b:1")],
  source: "system",
  version: 1,
} as const;

const parts = (...amounts: readonly (readonly number[])[]) =>
  amounts.map((amountsMilli) => ({ amountsMilli }));

describe("of consumes that share a write", () => {
  test.each([
    ["all fit", [[3], [2]], [5], [[3], [2]]],
    ["a later one of the same size never overtakes", [[3], [3]], [5], [[3]]],
    ["a smaller one behind one that does not fit goes", [[6], [3]], [5], [[3]]],
    ["none fits", [[6], [7]], [5], []],
    [
      "every limit counts",
      [
        [1, 9],
        [1, 1],
      ],
      [5, 5],
      [[1, 1]],
    ],
    ["what asks for nothing fits in a debt", [[0], [1]], [-1], [[0]]],
  ])("a write is shared by order and size: %s", (_, amounts, balances, fit) => {
    const found = fitting(parts(...amounts), balances, CONFIG);
    expect(found.map(({ amountsMilli }) => amountsMilli)).toEqual(fit);
  });

  test("the amounts add up, and each that consumes counts as an acquire", () => {
    const some = parts([1, 2], [0, 0], [3, 0]);
    expect(sumOf(some)).toEqual([4, 2]);
    expect(acquiresOf(some)).toBe(2);
  });

  test("each sees what the ones before it have left", () => {
    expect(balancesAfterEach(parts([1], [2], [3]), [4], CONFIG)).toEqual([[9], [7], [4]]);
  });
});
