import {
  FULL_PYTHON_METER,
  newBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketConfig, type LimitSource, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW } from "../known.ts";
import { itemOf, limitOf } from "../written.ts";

const NAME = { entityId: "e", resource: "r" };

function made(config: BucketConfig, amountsMilli: readonly number[], ttlMultiplier = 7) {
  const link = { cascade: true, parentId: "team" };
  const rules = { ...DYNAMODB_TRAITS, ttlMultiplier };
  return newBucket({ name: NAME, config, link, amountsMilli, nowMs: NOW, rules });
}

test("a new bucket is full but for what is consumed, and says what it was built from", () => {
  const bucket = made(configOf(["a:10/min", "b:100/min"], "resource", 3), [4000, 0]);
  expect(bucket).toMatchObject({
    ...{ entityId: "e", resource: "r", shard: 0, shardCount: 1, refilledAtMs: NOW },
    ...{ cascade: true, parentId: "team", configVersion: 3, configSource: "resource" },
    ...{ rebases: 0, generation: 0, meterMs: undefined, writes: FULL_PYTHON_METER },
  });
  expect(limitOf(bucket, "a")).toMatchObject({ tokensMilli: 6000, totalConsumedMilli: 4000 });
  expect(limitOf(bucket, "b")).toMatchObject({ tokensMilli: 100_000, totalConsumedMilli: 0 });
});

test.each<[LimitSource, number, boolean]>([
  ["resource", 7, true],
  ["system", 7, true],
  ["override", 7, true],
  ["entity", 7, false],
  ["entity_default", 7, false],
  ["resource", 0, false],
])("a new bucket by limits of %s, kept for %i times its filling, expires: %s", (...row) => {
  const [source, multiplier, expires] = row;
  const { ttl } = made(configOf(["a:10/min"], source), [0], multiplier);
  if (expires) expect(ttl).toBeGreaterThanOrEqual(NOW / 1000 + 3600);
  else expect(ttl).toBeUndefined();
});

test("limits of a call leave the version of stored limits at none", () => {
  expect(made(configOf(["a:10/min"], "override", 9), [0])).toMatchObject({
    configVersion: 0,
    configSource: "override",
  });
});

test("a bucket that bypasses its limits is counted, and holds what it held", () => {
  const bucket = made({ ...configOf(["a:10/min"]), bypass: true }, [4000]);
  expect(limitOf(bucket)).toMatchObject({ tokensMilli: 10_000, totalConsumedMilli: 4000 });
});

test("an item of a new bucket has neither remainder nor meter nor rebases", () => {
  const config = configOf(["a:10/min"]);
  const bucket = newBucket({
    ...{ name: NAME, config, link: UNLINKED, amountsMilli: [1000], nowMs: NOW },
    rules: { ...DYNAMODB_TRAITS, ttlMultiplier: 7 },
  });
  const item = itemOf(bucket);
  expect(item).toMatchObject({ rf: NOW, b_a_tk: 9000, b_a_tc: 1000, b_a_cp: 10_000 });
  for (const name of ["b_a_rr", "rn", "mg", "parent_id"]) expect(item).not.toHaveProperty(name);
});
