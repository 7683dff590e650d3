import {
  appliesAnyway,
  type BuiltFrom,
  matchConfig,
  staleNames,
} from "@zae-limiter/limiter/buckets/config-match.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { UnsupportedLimitError } from "@zae-limiter/limiter/domain/errors/unsupported-limit.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

function built(limits: readonly string[], more: Partial<BuiltFrom> = {}): BuiltFrom {
  const rates = new Map(limits.map(Limit.parse).map(({ name, rate }) => [name, rate]));
  return {
    version: 5,
    source: "system",
    rateOf: (name) => rates.get(name),
    limitNames: () => rates.keys(),
    ...more,
  };
}

function config(limits: readonly string[], more: Partial<BucketConfig> = {}): BucketConfig {
  return { ...configOf(limits), version: 5, source: "system", ...more };
}

const A = ["a:10"];
const FASTER = ["a:20"];
const AB = ["a:10", "b:10"];

describe("a bucket of version 5 with the limit a", () => {
  test.each<[string, readonly string[], Partial<BucketConfig>, string]>([
    ["the same limits", A, {}, "same"],
    ["the same limits of a newer version", A, { version: 6 }, "same"],
    ["the same limits of an older version", A, { version: 4 }, "same"],
    ["other rates of a newer version", FASTER, { version: 6 }, "apply"],
    ["other rates of an older version", FASTER, { version: 4 }, "outdated"],
    ["other rates of the same version", FASTER, {}, "outdated"],
    ["other rates that were just read", FASTER, { version: 4, forced: true }, "apply"],
    ["one more limit", AB, {}, "apply"],
    ["the same rates given with the call", A, { source: "override" }, "same"],
    ["other rates given with the call", FASTER, { source: "override" }, "apply"],
  ])("a bucket of version 5 is compared with %s", (_, limits, more, match) => {
    expect(matchConfig(built(A), config(limits, more))).toBe(match);
  });
});

test("stored limits replace those that a call gave to the bucket", () => {
  expect(matchConfig(built(A, { source: "override" }), config(FASTER))).toBe("apply");
});

test("a limit that only the Python library can enforce is read again, or refused by its name", () => {
  const bucket = built(A, { unsupported: () => "schedule" });
  expect(matchConfig(bucket, config(A))).toBe("outdated");
  expect(() => matchConfig(bucket, config(A, { source: "override" }))).toThrow(
    UnsupportedLimitError,
  );
});

test.each<[string, Partial<BuiltFrom>, Partial<BucketConfig>, string[]]>([
  ["newer stored limits", {}, { version: 6 }, ["b"]],
  ["stored limits that were just read", {}, { forced: true }, ["b"]],
  ["stored limits of the same version", {}, {}, []],
  ["limits of a call", {}, { source: "override", version: 6 }, []],
  ["the first stored limits", { version: 0, source: "override" }, { version: 6 }, []],
])("%s remove what they remove from a bucket with one limit more", (_, bucket, more, names) => {
  expect(staleNames(built(AB, bucket), config(A, more))).toEqual(names);
});

test("a refused call applies stored limits, and its own only where they take nothing away", () => {
  const override = { source: "override" } as const;
  expect(appliesAnyway(built(FASTER), config(A))).toBe(true);
  expect(appliesAnyway(built(FASTER), config(A, override))).toBe(false);
  expect(appliesAnyway(built(A), config(FASTER, override))).toBe(true);
  expect(appliesAnyway(built(A), config(AB, override))).toBe(true);
});
