import { expect, test } from "vitest";
import { PriceList } from "../../../src/domain/price-list.ts";

const list = new PriceList([
  { model: "*", price: { input: "9" } },
  { model: "gpt-5*", price: { input: "5" } },
  { model: "gpt-5-mini*", price: { input: "4" } },
  { model: "gpt-5-mini", price: { input: "3" } },
  { model: "gpt-5*", upstream: "llm.example:8000", price: { free: true } },
]);

test.each([
  ["gpt-5-mini", undefined, 3],
  ["gpt-5-mini-2026", undefined, 4],
  ["gpt-5-nano", undefined, 5],
  ["llama", undefined, 9],
  ["gpt-5-nano", "llm.example:8000", 0],
  ["gpt-5-mini", "llm.example:8000", 3],
  ["gpt-5-nano", "other.example", 5],
])("the most specific entry prices %s at %s", (model, upstream, micro) => {
  expect(list.find(model, upstream)?.cost({ input: 1 })).toBe(micro);
});

test("a list without an entry for a model has no price for it", () => {
  expect(new PriceList([]).find("gpt-5")).toBeUndefined();
  expect(new PriceList([{ model: "gpt*", price: { input: "1" } }]).find("claude")).toBeUndefined();
});

test("a name that no model can have is refused", () => {
  expect(() => new PriceList([{ model: "a*b", price: { input: "1" } }])).toThrow(/must start with/);
  expect(() => new PriceList([{ model: "", price: { input: "1" } }])).toThrow(/empty/);
});
