import { expect, test } from "vitest";
import {
  CURRENCIES,
  currenciesOf,
  currencyOf,
  formatMoney,
  isMoney,
  printMoney,
  signOf,
} from "../../../src/core/micro-dollars.ts";

test.each([
  ["usd", true],
  ["usd_audio", true],
  ["usd_", true],
  ["eur", true],
  ["jpy_team.a", true],
  ["euro", false],
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
  expect(formatMoney("usd_x", micro)).toBe(text);
});

test("money of other currencies has their sign, and as many decimals", () => {
  expect(formatMoney("eur", -1_234_500_000)).toBe("-€1,234.50");
  expect(printMoney("gbp_x", 12_500_000)).toBe("£12.5");
  expect(currencyOf("eur_x")).toBe("eur");
  expect(currencyOf("tpm")).toBe(undefined);
  expect(currenciesOf("¥500")).toEqual(["jpy", "cny"]);
  expect(CURRENCIES.every((currency) => signOf(currency).length === 1)).toBe(true);
});
