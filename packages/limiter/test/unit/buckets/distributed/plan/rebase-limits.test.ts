import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import { Rebase } from "@zae-limiter/limiter/buckets/distributed/plan/rebase-limits.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const RULES = { ...DYNAMODB_TRAITS, ttlMultiplier: 7 };

function rebased(config: BucketConfig, next: BucketConfig) {
  const name = { entityId: "e", resource: "r" };
  const amountsMilli = config.limits.map(() => 4000);
  const made = { name, config, link: UNLINKED, amountsMilli, nowMs: NOW, rules: RULES };
  const rebase = new Rebase(newBucket(made), { nowMs: NOW, rules: RULES, trustFull: () => true });
  rebase.apply(next, new Map());
  return rebase;
}

test("limits that stay keep their balance, new ones are full, and others go", () => {
  const rebase = rebased(
    configOf(["a:10/min", "b:10/min"]),
    configOf(["a:20/min", "c:5/min"], "resource", 2),
  );
  expect(rebase.balancesBefore(configOf(["a:20/min", "c:5/min"]))).toEqual([6000, 5000]);
  const { set, remove } = rebase.plan.change;
  expect(set).toMatchObject({ b_a_cp: 20_000, b_c_tk: 5000 });
  expect(remove).toContain("b_b_tk");
});

test("a rate in place of a quota has what the quota had left, and the quota waits", () => {
  const rebase = rebased(configOf(["a:10/day UTC"]), configOf(["a:60/min"], "resource", 2));
  expect(rebase.balancesBefore(configOf(["a:60/min"]))).toEqual([6000]);
  const { set, remove } = rebase.plan.change;
  expect(set).toMatchObject({ b_a_tk: 6000, b_a_ra: 60_000 });
  expect(String(set?.["pq_a"])).toMatch(/^6000 /);
  expect(remove).toContain("b_a_pe");
});

test("a quota in place of a rate starts its period with its allowance", () => {
  const rebase = rebased(configOf(["a:10/min"]), configOf(["a:50/day UTC"], "resource", 2));
  expect(rebase.balancesBefore(configOf(["a:50/day UTC"]))).toEqual([50_000]);
  expect(rebase.plan.change.set).toMatchObject({ b_a_tk: 50_000, b_a_ra: 0, b_a_rsched: "1m0h0" });
});
