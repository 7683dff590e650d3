import { describe, expect, test } from "vitest";
import { ValidationError } from "../../../src/domain/errors/errors.ts";
import { Price, type PriceSpec } from "../../../src/domain/price.ts";

const FULL = Price.from({
  input: "3",
  cachedInput: "0.3",
  cacheWrite: "3.75",
  cacheWrite1h: "6",
  output: "15",
  longContext: [{ above: 200_000, input: "6", cachedInput: "0.6", output: "22.5" }],
  tiers: { batch: { input: "1.5", output: "7.5" }, priority: { input: "6", output: "30" } },
});

describe("what a call costs, in micro-dollars", () => {
  test.each([
    ["input and output", { input: 1000, output: 500 }, undefined, 10_500],
    ["cached input", { input: 100, cachedInput: 10_000, output: 10 }, undefined, 3450],
    ["writing a cache for five minutes", { cacheWrite: 1000 }, undefined, 3750],
    ["writing a cache for an hour", { cacheWrite1h: 1000 }, undefined, 6000],
    ["reasoning as output", { input: 0, output: 100, reasoning: 900 }, undefined, 15_000],
    ["sound as input and output", { audioInput: 1000, audioOutput: 100 }, undefined, 4500],
    ["a prompt at the bound of long ones", { input: 200_000 }, undefined, 600_000],
    ["a prompt above the bound", { input: 200_001, output: 1000 }, undefined, 1_222_506],
    ["a batch", { input: 1000, output: 1000 }, "batch", 9000],
    ["a tier without a price of its own", { input: 1000 }, "scale", 3000],
    ["a part that its tier does not price", { cachedInput: 10_000 }, "batch", 15_000],
    ["a long prompt in a tier without prices for it", { input: 300_000 }, "batch", 1_800_000],
    ["a third of a micro-dollar, rounded up", { cachedInput: 1 }, undefined, 1],
    ["nothing", {}, undefined, 0],
  ] as const)("%s", (_, tokens, tier, micro) => {
    expect(FULL.cost(tokens, { tier })).toBe(micro);
  });

  test("a request has a price of its own, and a discount counts for all", () => {
    const price = Price.from({ perRequest: "0.01", input: "1", discount: "0.9" });
    expect(price.cost({ input: 1000 })).toBe(9900);
  });

  test("a free model costs nothing", () => {
    const free = Price.from({ free: true });
    expect(free.cost({ input: 1_000_000, output: 1_000_000 })).toBe(0);
    expect(free.isFree && free.hasOutput).toBe(true);
    expect(free.outputFor(0, {})).toBe(Number.POSITIVE_INFINITY);
  });
});

test("the output that money pays for leaves room for the input, and is never too much", () => {
  const input = { input: 1000 };
  const output = FULL.outputFor(10_000, input);
  expect(output).toBe(466);
  expect(FULL.cost({ ...input, output })).toBeLessThanOrEqual(10_000);
  expect(FULL.cost({ ...input, output: output + 1 })).toBeGreaterThan(10_000);
  expect(FULL.outputFor(2999, input)).toBe(0);
});

test("a model of embeddings has no price for output", () => {
  expect(Price.from({ input: "0.02" }).hasOutput).toBe(false);
  expect(FULL.hasOutput).toBe(true);
});

test.each([
  [{ input: 1.25 }, /price\.input.*expected dollars as text/],
  [{ input: "1,25" }, /expected dollars as text/],
  [{ input: "0.0000001" }, /at most six decimals/],
  [{ input: "-1" }, /expected dollars as text/],
  [{ output: "10" }, /at least a price for input/],
  [{}, /at least a price for input/],
  [{ input: "0", output: "0" }, /write free: true/],
  [{ input: "1", free: true }, /free: true or prices, got both/],
  [{ input: "1", discount: "1.1" }, /at most 1/],
  [{ input: "1", tiers: { turbo: { input: "2" } } }, /turbo.*flex, priority, batch/],
  [{ input: "1", tiers: { flex: { inputs: "2" } } }, /inputs/],
  [{ input: "1", longContext: [{ input: "2" }] }, /above.*expected tokens/],
  [{ input: "1", longContext: "200000" }, /expected an array/],
  [{ input: "1", cached: "1" }, /there is no "cached" here/],
])("%j is refused with a sentence", (spec, sentence) => {
  const make = () => Price.from(spec as PriceSpec);
  expect(make).toThrow(ValidationError);
  expect(make).toThrow(sentence);
});
