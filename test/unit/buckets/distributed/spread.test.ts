import { expect, test } from "vitest";
import { type Offer, offered, spreadOver } from "../../../../src/buckets/distributed/spread.ts";

const offers = (...balances: readonly (readonly number[])[]): Offer[] =>
  balances.map((balancesMilli, shard) => ({ shard, balancesMilli }));

test("what shards offer is their sum, debts included", () => {
  expect(offered(offers([5, 1], [-2, 3]), 2)).toEqual([3, 4]);
  expect(offered([], 1)).toEqual([0]);
});

test.each<[string, number[], Offer[], [number, number[]][]]>([
  ["the fullest shard alone, if it has enough", [5], offers([3], [6]), [[1, [5]]]],
  [
    "the fullest first, then the others",
    [8],
    offers([3], [6]),
    [
      [1, [6]],
      [0, [2]],
    ],
  ],
  ["no shard in debt", [4], offers([-3], [5]), [[1, [4]]]],
  [
    "each limit where it is",
    [4, 4],
    offers([4, 1], [1, 4]),
    [
      [0, [4, 1]],
      [1, [0, 3]],
    ],
  ],
])("a consume is spread over %s", (_, amounts, shards, parts) => {
  const expected = parts.map(([shard, amountsMilli]) => ({ shard, amountsMilli }));
  expect(spreadOver(amounts, shards)).toEqual(expected);
});

test("what cannot be refused comes from the first shard, into debt if need be", () => {
  expect(spreadOver([8, 100], offers([3, 0], [6, 0]), [8, 0])).toEqual([
    { shard: 1, amountsMilli: [6, 100] },
    { shard: 0, amountsMilli: [2, 0] },
  ]);
});
