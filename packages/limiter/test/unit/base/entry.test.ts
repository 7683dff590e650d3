import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { expect, test } from "vitest";

test("an entry is made when it is first asked for, and the same one is returned after that", () => {
  const map = new Map<string, string[]>();
  const first = entryOf(map, "a", () => ["made"]);
  first.push("added");
  expect(entryOf(map, "a", () => ["made again"])).toBe(first);
  expect([...map]).toEqual([["a", ["made", "added"]]]);
});
