import {
  fits,
  gatesOf,
  overdrawnOf,
  softNames,
  takenOf,
} from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const HARD = Limit.perMinute("hard", 10);
const SOFT = Limit.perMinute("soft", 10, { soft: true });
const AMOUNTS = [3000, 5000];

test.each<[string, Parameters<typeof gatesOf>[0], number[], number[]]>([
  ["two hard limits", { limits: [HARD, HARD] }, AMOUNTS, AMOUNTS],
  ["a hard and a soft limit", { limits: [HARD, SOFT] }, [3000, 0], AMOUNTS],
  ["two soft limits", { limits: [SOFT, SOFT] }, [0, 0], AMOUNTS],
  ["any limits under bypass", { limits: [HARD, SOFT], bypass: true }, [0, 0], [0, 0]],
])(
  "the amounts that need a balance and that lower one are right for %s",
  (_, config, gates, taken) => {
    expect(gatesOf(config, AMOUNTS)).toEqual(gates);
    expect(takenOf(config, AMOUNTS)).toEqual(taken);
  },
);

test("amounts are handed out as they came when every limit can refuse", () => {
  expect(gatesOf({ limits: [HARD] }, AMOUNTS)).toBe(AMOUNTS);
});

test("only soft limits are named as those that may go into debt", () => {
  expect(softNames({ limits: [HARD] })).toBeUndefined();
  expect(softNames({ limits: [HARD, SOFT] })).toEqual(new Set(["soft"]));
});

test.each([
  [[4000], [4000], true],
  [[4001], [4000], false],
  [[0], [-500], true],
])("a leg of %j milli-tokens fits into %j: %s", (amounts, held, expected) => {
  expect(fits({ limits: [HARD] }, amounts, held)).toBe(expected);
});

test("a soft limit and a bypass refuse nothing", () => {
  expect(fits({ limits: [SOFT] }, [9000], [0])).toBe(true);
  expect(fits({ limits: [HARD], bypass: true }, [9000], [0])).toBe(true);
});

test("a soft limit is overdrawn where it was consumed from and is below zero", () => {
  const config = { limits: [HARD, SOFT] };
  expect(overdrawnOf(config, [1, 1], [-1, -1])).toEqual(new Map([["soft", 1]]));
  expect(overdrawnOf(config, [1, 0], [-1, -1])).toBeUndefined();
  expect(overdrawnOf(config, [1, 1], [-1, 0])).toBeUndefined();
  expect(overdrawnOf({ ...config, bypass: true }, [1, 1], [-1, -1])).toBeUndefined();
});
