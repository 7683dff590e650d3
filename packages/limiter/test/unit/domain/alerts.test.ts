import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describe, expect, test } from "vitest";

const reasonOf = (make: () => unknown): string => {
  try {
    make();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was accepted");
};

describe("alerts", () => {
  test.each([
    ["usd:$500/month Europe/Berlin alerts 50,80,100", [50, 80, 100]],
    ["usd:$500/month Europe/Berlin soft alerts 100,150", [100, 150]],
    ["tok:400000/session:5hour alerts 90", [90]],
    ["req:1000/cron(0 6 * * 1-5) Europe/Berlin alerts 80", [80]],
  ])("the text %s is read and printed", (text, alerts) => {
    const limit = Limit.parse(text);
    expect(limit.alerts).toEqual(alerts);
    expect(String(limit)).toBe(text);
    expect(Limit.fromJSON(limit.toJSON()).equals(limit)).toBe(true);
    expect(limit.equals(Limit.parse(text.replace(/ alerts.*/, "")))).toBe(false);
  });

  test("percentages are sorted, and spaces separate them as commas do", () => {
    expect(String(Limit.parse("req:10/day UTC alerts 100 50, 80"))).toBe(
      "req:10/day UTC alerts 50,80,100",
    );
    expect(Limit.quota("req", 10, { every: "day", alerts: [80, 50] }).alerts).toEqual([50, 80]);
    expect(Limit.quota("req", 10, { after: { hours: 1 }, alerts: [5] }).alerts).toEqual([5]);
    expect(Limit.parse("req:10/day UTC").alerts).toEqual([]);
    expect("alerts" in Limit.parse("req:10/day UTC").toJSON()).toBe(false);
  });

  test.each([
    ["rpm:10 alerts 50", "only quotas and sessions have alerts"],
    ["req:10/day UTC alerts 0", "expected at most 10 whole percentages from 1 to 1000"],
    ["req:10/day UTC alerts 1001", "expected at most 10 whole percentages from 1 to 1000"],
    ["req:10/day UTC alerts 50,50", "a percentage is given twice"],
    ["req:10/day UTC alerts", "expected name:amount/day"],
    ["req:10/day UTC alerts 50 soft", "expected name:amount/day"],
    ["req:10/day UTC alerts 1 2 3 4 5 6 7 8 9 10 11", "expected at most 10"],
  ])("the text %s is refused", (text, reason) => {
    expect(reasonOf(() => Limit.parse(text))).toContain(reason);
  });

  test.each([[[12.5]], ["50"], [[Number.NaN]], [["50"]]])(
    "the alerts %j are refused in JSON",
    (alerts) => {
      const json = Limit.parse("req:10/day UTC").toJSON();
      expect(reasonOf(() => Limit.fromJSON({ ...json, alerts: alerts as number[] }))).toContain(
        "expected at most 10 whole percentages",
      );
    },
  );
});
