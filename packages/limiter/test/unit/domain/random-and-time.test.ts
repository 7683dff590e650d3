import {
  fractionOf,
  randomBytes,
  randomInteger,
  randomToken,
  systemRandom,
} from "@zae-limiter/limiter/base/random.ts";
import { systemClock, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { wholeClock } from "@zae-limiter/limiter/repository/backend.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

/** The largest number below one: where rounding up would leave the range. */
const ALMOST_ONE = 1 - 2 ** -53;

describe("random numbers", () => {
  test("random numbers are drawn from [0, 1), and not the same twice, however many are drawn", () => {
    const drawn = Array.from({ length: 1000 }, systemRandom);
    expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new Set(drawn).size).toBe(1000);
    expect(drawn.some((number) => number < 0.5) && drawn.some((number) => number >= 0.5)).toBe(
      true,
    );
  });

  test.each([
    [0, 0, 0],
    [0, 1, 2 ** -53],
    [0, 2 ** 21 + 3, 3 * 2 ** -53],
    [2 ** 31, 0, 0.5],
    [2 ** 32 - 1, 2 ** 32 - 1, ALMOST_ONE],
  ])("two words of 32 bits, %d and %d, are 53 bits of %d", (high, low, expected) => {
    expect(fractionOf(high, low)).toBe(expected);
  });

  property(
    "a whole number is below its bound, however close to one the draw",
    [
      fc.oneof(fc.constant(ALMOST_ONE), fc.double({ min: 0, max: ALMOST_ONE, noNaN: true })),
      fc.integer({ min: 1, max: 2 ** 53 - 1 }),
    ],
    (draw, below) => {
      const number = randomInteger(() => draw, below);
      expect(number).toBeGreaterThanOrEqual(0);
      expect(number).toBeLessThan(below);
      expect(Number.isSafeInteger(number)).toBe(true);
    },
  );

  test("bytes are drawn one by one from the given source", () => {
    const draws = [0, 0.5, ALMOST_ONE];
    expect([...randomBytes(() => draws.shift() ?? 0, 3)]).toEqual([0, 128, 255]);
  });
});

describe("time", () => {
  test("the clock of this machine is in whole milliseconds", () => {
    expect(Number.isSafeInteger(systemClock())).toBe(true);
    expect(systemClock()).toBeGreaterThan(Date.UTC(2024, 0, 1));
  });

  test("a clock of a user is made whole, and refused when it shows no time", () => {
    expect(wholeClock(() => 1_767_225_600_000.75)()).toBe(1_767_225_600_000);
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(refusal(wholeClock(() => value)).field).toBe("clock");
    }
  });
});

describe("the timer of this machine", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Whether a sleep of a second is over `afterMs` milliseconds later. */
  async function isOver(afterMs: number, signal?: AbortSignal): Promise<boolean> {
    let over = false;
    const sleep = systemTimer.sleep(1000, signal).then(() => {
      over = true;
    });
    await vi.advanceTimersByTimeAsync(afterMs);
    const result = over;
    await vi.advanceTimersByTimeAsync(1000);
    await sleep;
    return result;
  }

  test("the timer of this machine sleeps as long as it is asked to", async () => {
    const startMs = systemTimer.nowMs();
    expect(await isOver(999)).toBe(false);
    expect(await isOver(1000)).toBe(true);
    expect(systemTimer.nowMs()).toBeGreaterThan(startMs);
  });

  test("the timer of this machine wakes up early when aborted, without an error and without a timer left", async () => {
    expect(await isOver(0, AbortSignal.abort())).toBe(true);
    const controller = new AbortController();
    const sleep = systemTimer.sleep(1000, controller.signal);
    expect(vi.getTimerCount()).toBe(1);
    controller.abort();
    await sleep;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a token of a transaction", () => {
  test("a token is text that DynamoDB accepts, and differs from the one before", () => {
    const random = seededRandom(1);
    const tokens = new Set(Array.from({ length: 100 }, () => randomToken(random)));
    expect(tokens.size).toBe(100);
    for (const token of tokens) expect(token).toMatch(/^[\w-]{32}$/);
  });
});
