import { ruleOf, ruleText } from "@zae-limiter/limiter/buckets/rule-text.ts";
import type { PeriodRule } from "@zae-limiter/limiter/core/period-rule.ts";
import { expect, test } from "vitest";

const MONTH = { kind: "quota", cron: "0 0 1 * *", timeZone: "Europe/Berlin" } as const;

test.each<PeriodRule>([
  { ...MONTH, carry: "none" },
  { ...MONTH, carry: "debt" },
  { ...MONTH, carry: "rest", carryMax: 300 },
  { ...MONTH, carry: "both", carryMax: 1 },
  { kind: "quota", cron: "0 6 * * 1;30 7 * * 2", timeZone: "UTC", carry: "none" },
  { kind: "session", seconds: 18_000 },
])("the rule %o is read from its text, each time as the same object", (rule) => {
  const read = ruleOf(ruleText(rule));
  expect(read).toEqual(rule);
  expect(ruleOf(ruleText({ ...rule }))).toBe(read);
});

test.each(["", "s", "s-1", "qx UTC 0 0 1 * *", "qn UTC"])("the text %j is of no rule", (text) => {
  expect(() => ruleOf(text)).toThrow();
});
