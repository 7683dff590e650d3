/** The search of the documentation site. */

import { expect, test } from "vitest";
import { weightOf } from "../site/.vitepress/search-weight.mjs";

test("guides weigh more than other pages, and those more than pages made from code", () => {
  const ranked = [
    "/guide/per-team#in-code",
    "/operators/container",
    "/adr/036-totals",
    "/reference/api/index/classes/Limit",
  ];
  const weights = ranked.map(weightOf);
  expect(weights).toEqual([...weights].sort((left, right) => right - left));
  expect(new Set(weights).size).toBe(ranked.length);
  expect(weightOf("/getting-started/quick-start")).toBe(weightOf("/guide/limits"));
  // It is copied into the page by its text, without what it would import.
  const copied = new Function(`return (${weightOf})`)() as typeof weightOf;
  expect(ranked.map(copied)).toEqual(weights);
});
