import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import { withConfig } from "@zae-limiter/limiter/buckets/distributed/plan/with-config.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, RULES } from "../known.ts";

const DAY_MS = 86_400_000;
const CONFIG = configOf(["a:10/day UTC"]);
const BUCKET = newBucket({
  name: { entityId: "e", resource: "r" },
  config: CONFIG,
  link: UNLINKED,
  amountsMilli: [3000],
  nowMs: NOW,
  rules: RULES,
});
const CONTEXT = { namespaceId: "ns", nowMs: NOW + 1000, rules: RULES };

function limitWith(text: string) {
  const config = { ...configOf([text]), version: CONFIG.version + 1 };
  return withConfig([BUCKET], config, CONTEXT)[0]?.limits.get("a");
}

test("readers see a shard with the limits that a call would apply to it", () => {
  const endMs = NOW - (NOW % DAY_MS) + DAY_MS;
  expect(limitWith("a:15/day UTC")).toMatchObject({ tokensMilli: 12_000, period: { endMs } });
  expect(limitWith("a:8/session:5hour")).toMatchObject({
    tokensMilli: 8000,
    rate: { rule: { kind: "session", seconds: 18_000 } },
    period: { endMs: 0 },
  });
});

test("readers see a shard as it is where no call would apply limits to it", () => {
  expect(withConfig([BUCKET], CONFIG, CONTEXT)[0]).toBe(BUCKET);
});
