import { expect, test } from "vitest";
import { Price } from "../../../src/domain/price.ts";
import { providerOfHost, shippedPrices } from "../../../src/llm/shipped-prices.ts";

const prices = shippedPrices();
const million = { input: 1_000_000, output: 0 };

test("every shipped price is a valid one, and none is free", () => {
  const entries = [...prices.entries()];
  expect(entries.length).toBeGreaterThan(1000);
  for (const { price } of entries) expect(Price.from(price).isFree).toBe(false);
});

test("the table names its sources with version, licence and hash", () => {
  expect(prices.date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  expect(prices.sources.map(({ licence }) => licence)).toEqual(["MIT", "MIT"]);
  for (const { version, sha256 } of prices.sources) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  }
});

test.each([
  ["gpt-5", undefined, 1_250_000],
  ["gpt-5-2025-08-07", undefined, 1_250_000],
  ["gpt-5-2031-01-01", undefined, 1_250_000],
  ["openai/gpt-5", undefined, 1_250_000],
  ["openai/gpt-5", "openrouter", 1_250_000],
  ["claude-sonnet-4-6-20260217", undefined, 3_000_000],
  ["gpt-5", "azure", 1_250_000],
])("%s of %s has its list price", (model, provider, micro) => {
  expect(prices.find(model, provider)?.cost(million)).toBe(micro);
});

test.each([
  ["gpt-5-but-not-quite", undefined],
  ["gpt-5", "anthropic"],
  ["llama-of-mine", undefined],
  ["gpt-5", "no-such-provider"],
])("%s of %s has no price", (model, provider) => {
  expect(prices.find(model, provider)).toBeUndefined();
});

test.each([
  ["api.openai.com", "openai"],
  ["my-resource.openai.azure.com", "azure"],
  ["API.Anthropic.com", "anthropic"],
  ["openrouter.ai", "openrouter"],
  ["notopenai.com", undefined],
  ["127.0.0.1", undefined],
])("the host %s is of %s", (host, provider) => {
  expect(providerOfHost(host)).toBe(provider);
});
