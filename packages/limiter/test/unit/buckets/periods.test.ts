import {
  allowanceOf,
  balanceIn,
  carriedInto,
  levelIn,
  type PeriodLevel,
  refunded,
  startOf,
  toppedUp,
  unusedLevel,
  withAllowance,
} from "@zae-limiter/limiter/buckets/periods.ts";
import type { Carry, PeriodRule } from "@zae-limiter/limiter/core/period-rule.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { Periods } from "@zae-limiter/limiter/domain/periods.ts";
import { describe, expect, test } from "vitest";

const DAY_MS = 86_400_000;
const HOUR_MS = DAY_MS / 24;
/** A midnight of UTC. */
const MIDNIGHT = 20_000 * DAY_MS;

function daily(carry: Carry, carryMax?: number) {
  const bound = carryMax === undefined ? {} : { carryMax };
  return allowanceOf(Limit.quota("req", 10, { every: "day", carry, ...bound }).rate);
}

function level(tokens: number, more: Partial<PeriodLevel> = {}): PeriodLevel {
  const tokensMilli = tokens * 1000;
  return { tokensMilli, endMs: MIDNIGHT, grantedMilli: 10_000, leftMilli: 0, ...more };
}

describe("the first call after the end opens the next period", () => {
  test.each([
    ["nothing is carried", daily("none"), 4, 0, 10],
    ["a debt is forgiven", daily("none"), -3, 0, 10],
    ["a debt is carried", daily("debt"), -3, 0, 7],
    ["a rest is not, where only debts are", daily("debt"), 4, 0, 10],
    ["a rest is carried up to its bound", daily("rest", 3), 4, 0, 13],
    ["a debt is not, where only rests are", daily("rest", 3), -4, 0, 10],
    ["both are carried", daily("both", 3), -4, 0, 6],
    ["idle periods add their allowance to the rest", daily("rest", 20), 4, 2, 30],
    ["a debt is paid by idle periods", daily("debt"), -13, 1, 7],
    ["a debt that was paid adds nothing", daily("debt"), -3, 2, 10],
  ])("%s", (_, allowance, tokens, idleDays, expected) => {
    const nowMs = MIDNIGHT + idleDays * DAY_MS + HOUR_MS;
    const opened = levelIn(level(tokens), allowance, nowMs);
    expect(opened).toMatchObject({ tokensMilli: expected * 1000, grantedMilli: expected * 1000 });
    expect(opened.endMs).toBe(MIDNIGHT + (idleDays + 1) * DAY_MS);
    expect(balanceIn(level(tokens), allowance, nowMs)).toBe(expected * 1000);
    expect(carriedInto(opened, allowance)).toBe((expected - 10) * 1000);
  });

  test("a period is in force until just before its end", () => {
    const before = level(4);
    expect(levelIn(before, daily("none"), MIDNIGHT - 1)).toBe(before);
    expect(balanceIn(before, daily("none"), MIDNIGHT - 1)).toBe(4000);
    expect(balanceIn(before, daily("none"), MIDNIGHT)).toBe(10_000);
  });

  test("a client whose zone has other data does not open a period of an hour", () => {
    const late = new Periods(() => () => -HOUR_MS);
    const rule: PeriodRule = { kind: "quota", cron: "0 0 * * *", timeZone: "Late", carry: "none" };
    const rate = { capacityMilli: 10_000, refillMilli: 0, periodMs: 1000, rule };
    const opened = levelIn(level(0), allowanceOf(rate, 0, 1, late), MIDNIGHT + 1);
    expect(opened.endMs).toBe(MIDNIGHT + DAY_MS + HOUR_MS);
  });
});

describe("a refund", () => {
  const next = levelIn(level(1), daily("rest", 3), MIDNIGHT);

  test("a refund inside the period comes back", () => {
    expect(refunded(level(4), daily("none"), 2000, MIDNIGHT).tokensMilli).toBe(6000);
    expect(refunded(level(4), daily("none"), 2000, undefined).tokensMilli).toBe(6000);
  });

  test("a refund after the reset is dropped without a carry", () => {
    const later = level(4, { endMs: MIDNIGHT + DAY_MS });
    expect(refunded(later, daily("none"), 2000, MIDNIGHT)).toBe(later);
  });

  test("a refund after the reset counts as what it would have added to the rest", () => {
    const once = refunded(next, daily("rest", 3), 1000, MIDNIGHT);
    expect(once).toMatchObject({ tokensMilli: 12_000, grantedMilli: 12_000, leftMilli: 2000 });
    const more = refunded(once, daily("rest", 3), 5000, MIDNIGHT);
    expect(more).toMatchObject({ tokensMilli: 13_000, leftMilli: 3000 });
    expect(refunded(more, daily("rest", 3), 5000, MIDNIGHT)).toBe(more);
  });

  test("a refund after the reset pays a carried debt, and no more", () => {
    const owing = levelIn(level(-3), daily("debt"), MIDNIGHT);
    expect(refunded(owing, daily("debt"), 9000, MIDNIGHT).tokensMilli).toBe(10_000);
  });
});

test("a top-up is beyond the allowance, and a reset fills the allowance", () => {
  const added = toppedUp(level(4), daily("none"), 20_000);
  expect(added).toMatchObject({ tokensMilli: 24_000, grantedMilli: 30_000 });
  const filled = toppedUp(level(4), daily("none"), Number.POSITIVE_INFINITY);
  expect(filled).toMatchObject({ tokensMilli: 10_000, grantedMilli: 10_000 });
  expect(toppedUp(added, daily("none"), Number.POSITIVE_INFINITY).tokensMilli).toBe(24_000);
});

test("a changed amount is felt at once, and a changed rule ends the period at its own edge", () => {
  const monthly = allowanceOf(Limit.quota("req", 15, { every: "month" }).rate);
  const inMonth = level(2, { endMs: MIDNIGHT + 9 * DAY_MS });
  const changed = withAllowance(inMonth, monthly, daily("none"), MIDNIGHT + HOUR_MS);
  expect(changed).toMatchObject({ tokensMilli: -3000, endMs: MIDNIGHT + DAY_MS });
});

test("a session has no period before it is used, and ends its length after that", () => {
  const allowance = allowanceOf(Limit.quota("req", 10, { after: { hours: 5 } }).rate);
  const unused = unusedLevel(allowance, MIDNIGHT);
  expect(unused).toMatchObject({ tokensMilli: 10_000, endMs: 0 });
  const open = levelIn(unused, allowance, MIDNIGHT);
  expect(open.endMs).toBe(MIDNIGHT + 5 * HOUR_MS);
  expect(startOf(allowance.rule, open.endMs)).toBe(MIDNIGHT);
  expect(balanceIn({ ...open, tokensMilli: 1 }, allowance, open.endMs)).toBe(10_000);
});

test("the allowances of shards add up, and so do the bounds of what they carry", () => {
  const { rate } = Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 3 });
  const shards = [0, 1, 2, 3].map((shard) => allowanceOf(rate, shard, 4));
  const sum = (of: (shard: (typeof shards)[number]) => number) =>
    shards.reduce((total, shard) => total + of(shard), 0);
  expect(sum(({ amountMilli }) => amountMilli)).toBe(10_000);
  expect(sum(({ carryMaxMilli }) => carryMaxMilli)).toBe(3000);
});
