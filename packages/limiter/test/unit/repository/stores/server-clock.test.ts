import { serverClock } from "@zae-limiter/limiter/base/time.ts";
import { describe, expect, test } from "vitest";

const LOCAL = 1_800_000_000_000;

describe("the server's clock", () => {
  test.each([
    ["unknown before the first answer", undefined, LOCAL],
    ["a difference that rounding explains is left alone", 2000, LOCAL],
    ["the same behind", -2000, LOCAL],
    ["a clock that runs behind is put forward", 2001, LOCAL + 2001],
    ["a clock that runs ahead is put back", -60_000.4, LOCAL - 60_000],
  ])("the server's clock corrects this one: %s", (_, skew, expected) => {
    expect(serverClock(() => LOCAL, { serverDateSkewMs: skew })()).toBe(expected);
  });
});
