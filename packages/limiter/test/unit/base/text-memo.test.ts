/** Results that are remembered by a text. */

import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import { expect, test } from "vitest";

function counted() {
  const calls: string[] = [];
  const memo = new TextMemo((text) => {
    calls.push(text);
    return text.toUpperCase();
  });
  return { memo, calls };
}

test("a text is computed once", () => {
  const { memo, calls } = counted();
  expect([memo.of("a"), memo.of("b"), memo.of("a")]).toEqual(["A", "B", "A"]);
  expect(calls).toEqual(["a", "b"]);
});

test("a long text is computed each time, so that no client fills the memory with it", () => {
  const { memo, calls } = counted();
  const long = "x".repeat(257);
  expect([memo.of(long), memo.of(long)]).toEqual([long.toUpperCase(), long.toUpperCase()]);
  expect(calls).toEqual([long, long]);
});

test("after 500 texts all are forgotten, and computed again", () => {
  const { memo, calls } = counted();
  for (let at = 0; at < 500; at += 1) memo.of(`t${at}`);
  memo.of("t0");
  expect(calls).toHaveLength(500);
  memo.of("one more");
  memo.of("t0");
  expect(calls.slice(500)).toEqual(["one more", "t0"]);
});
