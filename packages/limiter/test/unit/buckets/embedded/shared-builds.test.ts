import {
  type FastConfig,
  PackedBucket,
} from "@zae-limiter/limiter/buckets/embedded/packed-bucket.ts";
import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/shared-builds.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { bucketWith, limitWith } from "./bucket-of.ts";

const BUCKET = bucketWith([limitWith(1)]);

function fastOf(texts: readonly string[], version = 1): FastConfig {
  return {
    ...{ config: configOf(texts, "resource", version), given: undefined, generation: 1 },
    ...{ expires: false, keepSeconds: -1 },
  };
}

test("buckets with the same limits share one build, and balances make no difference", () => {
  const builds = new SharedBuilds();
  const build = builds.of(BUCKET, undefined);
  expect(builds.of(bucketWith([limitWith(9)]), undefined)).toBe(build);
  expect(builds.of(bucketWith([limitWith(9)]), build)).toBe(build);
  expect(build).toMatchObject({ version: 1, source: "resource", names: ["a"] });
});

test.each([
  ["another version", bucketWith([limitWith(1)], { version: 2 })],
  ["another source", bucketWith([limitWith(1)], { source: "system" })],
  ["another name", bucketWith([limitWith(1, { name: "b" })])],
  ["one limit more", bucketWith([limitWith(1), limitWith(1, { name: "b" })])],
  [
    "another rate",
    bucketWith([limitWith(1, { rate: { capacityMilli: 1, refillMilli: 1, periodMs: 1 } })]),
  ],
])("a bucket with %s has a build of its own", (_, bucket) => {
  const builds = new SharedBuilds();
  const build = builds.of(BUCKET, undefined);
  expect(builds.of(bucket, build)).not.toBe(build);
});

test.each([
  ["the limits it was built from", ["a:10/min"], 1, true],
  ["newer limits with another rate", ["a:20/min"], 2, false],
  ["limits in another order or number", ["a:10/min", "b:10/min"], 1, false],
])("a bucket is remembered with %s, or is not", (_, texts, version, expected) => {
  const builds = new SharedBuilds();
  const bucket = new PackedBucket(BUCKET, builds.of(BUCKET, undefined));
  builds.remember(bucket, fastOf(texts, version), 0);
  expect(bucket.isFastFor(undefined, 1)).toBe(expected);
});
