import {
  accruedMilli,
  DEBT_MILLI_MAX,
  forceTake,
  fullLevel,
  type Level,
  type Rate,
  refill,
  retryAfterMs,
  waitMs,
} from "@zae-limiter/limiter/core/bucket.ts";
import { take } from "@zae-limiter/test-support/take.ts";
import { describe, expect, test } from "vitest";

/** 100,000 tokens a minute, and as many at once. */
const RATE: Rate = { capacityMilli: 100_000_000, refillMilli: 100_000_000, periodMs: 60_000 };
/** 100 tokens a minute. */
const SMALL: Rate = { capacityMilli: 100_000, refillMilli: 100_000, periodMs: 60_000 };

function level(tokensMilli: number, refilledAtMs = 0, remainder = 0): Level {
  return { tokensMilli, refilledAtMs, remainder };
}

describe("refill", () => {
  test("a bucket does not change while no time passes (A001)", () => {
    expect(refill(level(50_000_000, 1000), RATE, 1000)).toEqual(level(50_000_000, 1000));
  });

  test("half a period gives half the amount (A002)", () => {
    expect(refill(level(0), RATE, 30_000)).toEqual(level(50_000_000, 30_000));
  });

  test("a bucket never holds more than its capacity (A003)", () => {
    expect(refill(level(0), RATE, 120_000)).toEqual(level(100_000_000, 120_000));
  });

  test("a debt is paid off first (A004)", () => {
    expect(refill(level(-50_000_000), RATE, 30_000)).toEqual(level(0, 30_000));
  });

  test("a clock that ran backwards changes nothing (A005)", () => {
    expect(refill(level(50_000_000, 1000), RATE, 500)).toEqual(level(50_000_000, 1000));
  });

  test("a part of a milli-token is kept for later, and the time always moves on (A006)", () => {
    const perMinute: Rate = { capacityMilli: 1000, refillMilli: 1000, periodMs: 60_000 };
    const early = refill(level(0), perMinute, 59);
    expect(early).toEqual(level(0, 59, 59_000));
    expect(refill(early, perMinute, 60)).toEqual(level(1, 60));
    expect(refill(level(0), perMinute, 60)).toEqual(level(1, 60));
  });

  test("tokens beyond the capacity are cut, whether time passed or not (A007)", () => {
    expect(refill(level(150_000), SMALL, 60_000)).toEqual(level(100_000, 60_000));
    expect(refill(level(150_000), SMALL, 0)).toEqual(level(100_000, 0));
    expect(refill(level(150_000, 1000), SMALL, 500)).toEqual(level(100_000, 1000));
  });

  test("a full bucket keeps no part of the next milli-token", () => {
    expect(refill(level(100_000, 0, 59_999), SMALL, 0)).toEqual(level(100_000));
    expect(refill(level(100_000, 0, 59_999), SMALL, 1)).toEqual(level(100_000, 1));
  });

  test("a full bucket at rest stays the same object: nothing to write", () => {
    const full = fullLevel(SMALL, 5);
    expect(refill(full, SMALL, 5)).toBe(full);
  });

  test("100 a minute, stepped every millisecond for a minute, is 100 and not 179.998 (B26)", () => {
    const deep: Rate = { ...SMALL, capacityMilli: 10_000_000 };
    let stepped = level(0);
    for (let nowMs = 1; nowMs <= 60_000; nowMs += 1) stepped = refill(stepped, deep, nowMs);
    expect(stepped).toEqual(level(100_000, 60_000));
  });

  test("5 a day next to frequent calls: every 10 s for 5.5 hours adds up (B4)", () => {
    const perDay: Rate = { capacityMilli: 5000, refillMilli: 5000, periodMs: 86_400_000 };
    let stepped = level(0);
    for (let nowMs = 10_000; nowMs <= 19_800_000; nowMs += 10_000) {
      stepped = refill(stepped, perDay, nowMs);
    }
    expect(stepped.tokensMilli).toBe(1145);
    expect(stepped).toEqual(refill(level(0), perDay, 19_800_000));
  });

  test("a month idle at 10^9 tokens a second gives every milli-token of it", () => {
    const rate: Rate = {
      capacityMilli: 1_000_000_000_000_000,
      refillMilli: 1_000_000_000_000,
      periodMs: 1000,
    };
    const monthMs = 30 * 86_400_000;
    expect(refill(level(0), rate, monthMs)).toEqual(fullLevel(rate, monthMs));
    // The deepest debt, at about a thousandth of that rate with an odd remainder. By hand:
    // 2,592,000,000 ms * 1,000,000,000,007 / 1,000,003 ms, far past 2^53.
    const slow: Rate = { ...rate, refillMilli: 1_000_000_000_007, periodMs: 1_000_003 };
    expect(refill(level(-DEBT_MILLI_MAX), slow, monthMs)).toEqual(
      level(-5_415_207_030_699_520, monthMs, 875_587),
    );
  });
});

describe("take", () => {
  test("a take of less than there is succeeds (A008)", () => {
    expect(take(level(100_000_000), RATE, 50_000_000, 0)).toEqual({
      taken: true,
      level: level(50_000_000),
      availableMilli: 100_000_000,
      retryAfterMs: 0,
    });
  });

  test("a take of exactly what there is succeeds (A009)", () => {
    const taken = take(level(100_000_000), RATE, 100_000_000, 0);
    expect(taken.taken).toBe(true);
    expect(taken.level.tokensMilli).toBe(0);
  });

  test("a take of too much takes nothing; more than the capacity never fits (A010)", () => {
    expect(take(level(100_000_000), RATE, 150_000_000, 0)).toEqual({
      taken: false,
      level: level(100_000_000),
      availableMilli: 100_000_000,
      retryAfterMs: Number.POSITIVE_INFINITY,
    });
    const refused = take(level(50_000_000), RATE, 80_000_000, 0);
    expect(refused).toMatchObject({ taken: false, availableMilli: 50_000_000 });
    expect(refused.retryAfterMs).toBe(18_001);
  });

  test("a take counts what has accrued since (A011)", () => {
    const taken = take(level(0), RATE, 30_000_000, 30_000);
    expect(taken).toMatchObject({ taken: true, availableMilli: 50_000_000 });
    expect(taken.level).toEqual(level(20_000_000, 30_000));
  });

  test("999 of 1000 milli-tokens are not a token (A012)", () => {
    expect(take(level(999), SMALL, 1000, 0)).toMatchObject({ taken: false, retryAfterMs: 1 });
  });

  test("a request of zero is never refused, not even in debt (B14)", () => {
    expect(take(level(-5000), SMALL, 0, 0)).toMatchObject({ taken: true, availableMilli: -5000 });
  });

  test("a refusal leaves the refilled level, so that nothing accrued is lost", () => {
    const refused = take(level(0), SMALL, 100_000, 1);
    expect(refused.level).toEqual(refill(level(0), SMALL, 1));
  });

  test("take behind a clock that ran backwards, the wait includes catching up", () => {
    const refused = take(level(0, 10_000), SMALL, 1000, 4000);
    expect(refused).toMatchObject({ taken: false, retryAfterMs: 6000 + 601 });
    expect(take(refused.level, SMALL, 1000, 4000 + refused.retryAfterMs).taken).toBe(true);
  });
});

describe("accruedMilli", () => {
  test("accruedMilli counts the remainder, has no cap, and is negative where time ran backwards", () => {
    expect(accruedMilli(SMALL, 60_000, 0)).toBe(100_000);
    expect(accruedMilli(SMALL, 3_600_000, 0)).toBe(6_000_000);
    expect(accruedMilli(SMALL, 1, 19_999)).toBe(1);
    expect(accruedMilli(SMALL, 1, 20_000)).toBe(2);
    expect(accruedMilli(SMALL, -1, 0)).toBe(-2);
  });
});

describe("waiting", () => {
  test("no deficit, no wait; otherwise past the millisecond in which it is covered (A014)", () => {
    expect(retryAfterMs(0, RATE)).toBe(0);
    expect(retryAfterMs(-1, RATE)).toBe(0);
    expect(retryAfterMs(10_000_000, RATE)).toBe(6001);
    expect(retryAfterMs(100_000_000, RATE)).toBe(60_001);
  });

  test("an amount that never fits waits forever, and one that is available does not wait (B30)", () => {
    expect(waitMs(100_001, 0, SMALL)).toBe(Number.POSITIVE_INFINITY);
    expect(waitMs(100_000, 100_000, SMALL)).toBe(0);
    expect(waitMs(100_000, -100_000, SMALL)).toBe(120_001);
  });
});

describe("forceTake", () => {
  test("forceTake never asks: it may go into debt, and a refund may pass the capacity (A015)", () => {
    const full = level(100_000_000);
    expect(forceTake(full, RATE, 50_000_000, 0)).toEqual(level(50_000_000));
    expect(forceTake(full, RATE, 150_000_000, 0)).toEqual(level(-50_000_000));
    expect(forceTake(full, RATE, -50_000_000, 0)).toEqual(level(150_000_000));
  });

  test("a debt of 100,000 tokens is half paid after half a minute (A016)", () => {
    expect(refill(level(-100_000_000), RATE, 30_000).tokensMilli).toBe(-50_000_000);
  });

  test("a debt stops where a number would lose digits, and is still paid back exactly", () => {
    let debt = level(0);
    for (let times = 0; times < 12; times += 1) {
      debt = forceTake(debt, RATE, 1_000_000_000_000_000, 0);
    }
    expect(debt).toEqual(level(-DEBT_MILLI_MAX));
    expect(refill(debt, RATE, 1)).toEqual(level(-DEBT_MILLI_MAX + 1666, 1, 40_000));
  });
});
