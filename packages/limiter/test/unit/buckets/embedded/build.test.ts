import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/build.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { bucketWith, limitWith } from "./bucket-of.ts";

describe("the limits that a bucket was built from", () => {
  const BUILD = bucketWith([limitWith(1)]).build;

  test("buckets with the same limits share one build, and balances make no difference", () => {
    const builds = new SharedBuilds();
    const build = builds.of(BUILD, undefined);
    expect(builds.of(bucketWith([limitWith(9)]).build, undefined)).toBe(build);
    expect(builds.of(bucketWith([limitWith(9)]).build, build)).toBe(build);
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
    const build = builds.of(BUILD, undefined);
    expect(builds.of(bucket.build, build)).not.toBe(build);
  });

  test("builds are dropped when there are too many, and buckets keep theirs", () => {
    const builds = new SharedBuilds();
    const first = builds.of(BUILD, undefined);
    for (let version = 2; version < 1100; version += 1) {
      builds.of(bucketWith([limitWith(1)], { version }).build, undefined);
    }
    const equal = bucketWith([limitWith(1)]).build;
    expect(builds.of(equal, undefined)).toBe(equal);
    expect(builds.of(equal, first)).toBe(first);
  });

  test.each([
    ["its own limits", ["a:10/min"], true],
    ["another rate", ["a:20/min"], false],
    ["another name", ["b:10/min"], false],
    ["more limits", ["a:10/min", "b:10/min"], false],
  ])("a build is compared with a config that has %s", (_, texts, expected) => {
    expect(BUILD.isOf(configOf(texts))).toBe(expected);
  });

  test("a build says the rate of a limit, and the names of all", () => {
    expect(BUILD.rateOf("a")).toMatchObject({ capacityMilli: 10_000 });
    expect(BUILD.rateOf("b")).toBeUndefined();
    expect([...BUILD.limitNames()]).toEqual(["a"]);
  });
});
