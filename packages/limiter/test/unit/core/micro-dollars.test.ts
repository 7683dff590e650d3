import { expect, test } from "vitest";
import { formatMoney, isMoney } from "../../../src/core/micro-dollars.ts";

test.each([
  ["usd", true],
  ["usd_audio", true],
  ["usd_", true],
  ["usdt", false],
  ["USD", false],
  ["tpm", false],
])("a limit named %s is money: %s", (name, expected) => {
  expect(isMoney(name)).toBe(expected);
});

test.each([
  [0, "$0.00"],
  [1234, "$0.001234"],
  [500_000_000, "$500.00"],
  [1_234_567_500_000, "$1,234,567.50"],
  [-2_500_000, "-$2.50"],
])("%d micro-dollars are shown as %s", (micro, text) => {
  expect(formatMoney(micro)).toBe(text);
});
