import {
  bucketTtl,
  coveredMilli,
  type TtlRule,
  ttlKeptSeconds,
} from "@zae-limiter/limiter/buckets/bucket-ttl.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const NOW_S = 1_800_000_000;
const NOW_MS = NOW_S * 1000;
const RULE: TtlRule = { multiplier: 7, source: "system", isNew: false };
const left = (limit: string, balanceMilli = 0) => {
  const { rate } = Limit.parse(limit);
  return [{ rate, balanceMilli }];
};

test.each<[string, Partial<TtlRule>, string, number | undefined]>([
  ["at least an hour", {}, "rpm:100", 3600],
  ["seven times its time to fill", {}, "rpd:10/day", 7 * 86_400 + 1],
  ["without end with limits of the entity", { source: "entity" }, "rpm:100", undefined],
  ["without end with defaults of the entity", { source: "entity_default" }, "rpm:100", undefined],
  ["without end with the multiplier 0", { multiplier: 0 }, "rpm:100", undefined],
])("a bucket is kept %s", (_, rule, limit, seconds) => {
  const ttl = bucketTtl(undefined, { ...RULE, ...rule }, left(limit), NOW_MS);
  expect(ttl === undefined ? undefined : ttl - NOW_S).toBe(seconds);
});

test("a debt is covered, however short the multiple of the time to fill is", () => {
  const rule = { ...RULE, multiplier: 1 };
  const ttl = bucketTtl(undefined, rule, left("rpd:10/day", -10_000), NOW_MS) as number;
  expect(ttl - NOW_S).toBeGreaterThanOrEqual(2 * 86_400);
});

test("a time that covers filling what is missing, and not filling from empty, is renewed", () => {
  const rule = { ...RULE, multiplier: 1 };
  const half = left("rpd:10/day", 5000);
  const ttl = bucketTtl(NOW_S + 50_000, rule, half, NOW_MS) as number;
  expect(ttl - NOW_S).toBeGreaterThanOrEqual(86_400);
});

test("a time is kept while it is good for half of a new one, and renewed after that", () => {
  const at = (seconds: number) => bucketTtl(NOW_S + seconds, RULE, left("rpm:100"), NOW_MS);
  expect(at(1800)).toBe(NOW_S + 1800);
  expect(at(1799)).toBe(NOW_S + 3600);
});

test("limits of a call decide about a new bucket, and not about one that stays", () => {
  const rule: TtlRule = { ...RULE, source: "override" };
  expect(bucketTtl(undefined, rule, left("rpm:100"), NOW_MS)).toBeUndefined();
  expect(bucketTtl(undefined, { ...rule, isNew: true }, left("rpm:100"), NOW_MS)).toBe(
    NOW_S + 3600,
  );
});

test("the seconds that a time must still be off agree with when it is renewed", () => {
  const rates = [Limit.parse("rpm:100").rate];
  expect(ttlKeptSeconds(rates, 7, "system")).toBe(1800);
  expect(ttlKeptSeconds(rates, 7, "entity")).toBeUndefined();
  expect(ttlKeptSeconds(rates, 0, "system")).toBeUndefined();
});

test("a time covers the balances from which the limit is full when it comes", () => {
  const { rate } = Limit.parse("rpm:60");
  expect(coveredMilli(NOW_S + 90, rate, NOW_MS)).toBe(60_000 - 90_000);
  expect(coveredMilli(NOW_S + 200_000_000_000, rate, NOW_MS)).toBe(Number.NEGATIVE_INFINITY);
});
