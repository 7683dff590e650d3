import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ValidationError } from "../../../src/domain/errors/errors.ts";
import { Limit } from "../../../src/domain/limit.ts";

describe("texts of money", () => {
  test.each([
    ["usd:$500/month Europe/Berlin", 500_000_000, "usd:$500/month Europe/Berlin"],
    ["usd:$12.50/day UTC", 12_500_000, "usd:$12.5/day UTC"],
    ["usd:$0.000001/month", 1, "usd:$0.000001/month UTC"],
    ["usd_img:$1_000/year", 1_000_000_000, "usd_img:$1000/year UTC"],
    ["usd:$1000000/quarter", 1_000_000_000_000, "usd:$1000000/quarter UTC"],
    ["usd:$20/session:5hour soft", 20_000_000, "usd:$20/session:5hour soft"],
    ["usd:$5/hour", 5_000_000, "usd:$5/hour"],
    ["usd:$5/hour:$10.25", 10_250_000, "usd:$5/hour:$10.25"],
    ["eur:€500/month Europe/Berlin", 500_000_000, "eur:€500/month Europe/Berlin"],
    ["gbp_team:£12.50/day UTC alerts 80", 12_500_000, "gbp_team:£12.5/day UTC alerts 80"],
    ["cny:¥0.000001/month", 1, "cny:¥0.000001/month UTC"],
  ])("%s has %d micro-dollars", (text, capacity, printed) => {
    const limit = Limit.parse(text);
    expect(limit.capacity).toBe(capacity);
    expect(String(limit)).toBe(printed);
    expect(Limit.parse(printed).equals(limit)).toBe(true);
  });

  test.each([
    ["usd:$500", /money needs a period/],
    ["usd:$500:$600", /money needs a period/],
    ["usd:$500/day", /would drip back.*\/day UTC/],
    ["usd:$500/1day", /would drip back/],
    ["usd:500/month", /"usd" is money.*single quotes/],
    ["usd:00/month", /"usd:\$500\/…" becomes usd:00\/…/],
    ["rpm:$500/min", /"rpm" is not money/],
    ["usdt:$500/month", /"usdt" is not money/],
    ["usd:$1.0000001/month", /at most six decimals/],
    ["usd:$1,50/month", /at most six decimals/],
    ["usd:$-5/month", /at most six decimals/],
    ["usd:$0/month", /more than \$0/],
    ["usd:$1000000.01/month", /at most \$1,000,000/],
    ["usd:$5/hour:10", /"usd" is money/],
    ["usd:€5/hour", /"usd" is money/],
    ["eur:$5/hour", /"eur" is money: expected eur:€500\/month, got "eur:\$5\/hour"$/],
    ["eur:€500", /such as eur:€500\/month Europe\/Berlin/],
    ["rpm:€500/min", /its limits are named eur or eur_/],
  ])("%s is refused with a sentence", (text, sentence) => {
    expect(() => Limit.parse(text)).toThrow(ValidationError);
    expect(() => Limit.parse(text)).toThrow(sentence);
  });

  test("every amount is printed so that reading it gives the same one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000_000_000 }), (micro) => {
        const limit = Limit.quota("usd", micro, { every: "month" });
        expect(Limit.parse(String(limit)).capacity).toBe(micro);
      }),
    );
  });
});
