/** Conclusions about the clocks from the date of an answer. */

import { ServerDate } from "@zae-limiter/limiter/storage/dynamodb/transport/exchange.ts";
import { describe, expect, it } from "vitest";

const DATE = "Mon, 16 Nov 2026 02:00:00 GMT";
const DATE_MS = Date.UTC(2026, 10, 16, 2);

/** The skew after an answer with that date, given what our clock showed before and after. */
function skewOf(sentMs: number, answeredMs: number): number | undefined {
  let nowMs = sentMs;
  const date = new ServerDate(() => nowMs);
  const sentAtMs = date.now();
  nowMs = answeredMs;
  date.see(DATE, sentAtMs);
  return date.skewMs;
}

describe("the date of an answer", () => {
  it("the date of an answer is unknown before the first, and without one", () => {
    const date = new ServerDate(() => DATE_MS);
    expect([date.dateMs, date.skewMs]).toStrictEqual([undefined, undefined]);
    expect(date.see(undefined, DATE_MS)).toBeUndefined();
    expect(date.see("yesterday", DATE_MS)).toBeUndefined();
    expect([date.dateMs, date.skewMs]).toStrictEqual([undefined, undefined]);
  });

  it.each([
    ["at the same second", 100, 200],
    ["at the end of the second", 900, 1100],
    ["a moment before", -500, 100],
  ])("the date of an answer that was written %s proves nothing", (_, sent, answered) => {
    expect(skewOf(DATE_MS + sent, DATE_MS + answered)).toBe(0);
  });

  it("the date of an answer proves nothing when the answer took its time, wherever it lost it", () => {
    expect(skewOf(DATE_MS + 500, DATE_MS + 9000)).toBe(0);
    expect(skewOf(DATE_MS - 9000, DATE_MS + 500)).toBe(0);
    expect(skewOf(DATE_MS - 9000, DATE_MS + 9000)).toBe(0);
  });

  it("the date of an answer proves nothing when another answer has shown otherwise a moment ago", () => {
    let nowMs = DATE_MS + 9000;
    const date = new ServerDate(() => nowMs);
    date.see(DATE, nowMs);
    expect(date.skewMs).toBe(-8500);
    nowMs = DATE_MS + 500;
    date.see(DATE, nowMs);
    expect(date.skewMs).toBe(0);
    nowMs = DATE_MS + 9000;
    for (let answers = 0; answers < 7; answers += 1) date.see(DATE, nowMs);
    expect(date.skewMs).toBe(0);
    date.see(DATE, nowMs);
    expect(date.skewMs).toBe(-8500);
  });

  it("the date of an answer shows how far a clock is off, to the second", () => {
    expect(skewOf(DATE_MS + 60_000, DATE_MS + 60_020)).toBe(-59_510);
    expect(skewOf(DATE_MS - 60_000, DATE_MS - 59_980)).toBe(60_490);
    expect(skewOf(DATE_MS + 60_000, DATE_MS + 64_000)).toBe(-61_500);
  });
});
