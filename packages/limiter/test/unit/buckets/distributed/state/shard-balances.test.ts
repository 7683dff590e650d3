import {
  atMostFull,
  fullBalances,
} from "@zae-limiter/limiter/buckets/distributed/state/shard-balances.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const limits = [Limit.parse("rpm:10"), Limit.parse("req:10/day UTC")];
const config = { limits, source: "system", version: 1 } as const;

test("a bucket that is not there is full", () => {
  expect(fullBalances(config, 0)).toEqual([10_000, 10_000]);
});

test("sums over shards are at most full where limits refill, and have the top-ups of periods", () => {
  expect(atMostFull([12_000, 12_000], config, 0)).toEqual([10_000, 12_000]);
  expect(atMostFull([-1, -1], config, 0)).toEqual([-1, -1]);
});
