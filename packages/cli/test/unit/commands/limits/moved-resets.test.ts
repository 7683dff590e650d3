import { movedResets } from "@zae-limiter/cli/commands/limits/limits-text.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitChange } from "@zae-limiter/limiter/manifest/plan.ts";
import { expect, test } from "vitest";

const NOW = Date.parse("2026-11-18T06:30:00Z");

function moved(before: string, after: string): string[] {
  const [from, to] = [before, after].map((text) => ({ limits: [Limit.parse(text)] }));
  const target = { level: "resource", resource: "api" } as const;
  const change = { action: "update", target, before: from, after: to } as LimitChange;
  return movedResets([change], NOW);
}

test("a plan says to which time the next reset of a quota moves", () => {
  expect(moved("req:5/month", "req:5/month Europe/Berlin")).toEqual([
    "req of resource api: the next reset moves from 2026-12-01 00:00 UTC " +
      "to 2026-12-01 00:00 Europe/Berlin.",
  ]);
  expect(moved("req:5/month", "req:5/week")).toEqual([
    "req of resource api: the next reset moves from 2026-12-01 00:00 UTC to 2026-11-23 00:00 UTC.",
  ]);
});

test("a plan is silent where the running period ends as before", () => {
  expect(moved("req:5/month", "req:9/month")).toEqual([]);
  expect(moved("req:5/day UTC", "req:5/month")).toEqual([]);
  expect(moved("req:5", "req:5/month")).toEqual([]);
  expect(moved("req:5/month", "req:5/session:5hour")).toEqual([]);
});
