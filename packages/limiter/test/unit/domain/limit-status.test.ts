import { type Level, type Rate, refill, shardRate } from "@zae-limiter/limiter/core/bucket.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  type LimitCheck,
  type LimitStatus,
  statusOf,
} from "@zae-limiter/limiter/domain/limit-status.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { take } from "@zae-limiter/test-support/take.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const RPM = Limit.perMinute("rpm", 100);
const TPM = Limit.perMinute("tpm", 100_000);

function level(tokensMilli: number, refilledAtMs = 0): Level {
  return { tokensMilli, refilledAtMs, remainder: 0 };
}

function limitStatus(
  check: LimitCheck,
  from: Level,
  nowMs: number,
  rate: Rate = check.limit.rate,
): LimitStatus {
  const { tokensMilli, refilledAtMs } = refill(from, rate, nowMs);
  return statusOf(check, tokensMilli, rate, refilledAtMs - nowMs);
}

function status(limit: Limit, requested: number, from: Level, nowMs = 0): LimitStatus {
  return limitStatus({ entityId: "key-1", resource: "gpt-4", limit, requested }, from, nowMs);
}

/** The statuses of the limits that are asked for, as an acquire builds them. */
function statuses(
  buckets: readonly [Limit, Level][],
  consume: Readonly<Record<string, number>>,
  nowMs: number,
): LimitStatus[] {
  return buckets
    .filter(([limit]) => Object.hasOwn(consume, limit.name))
    .map(([limit, from]) => status(limit, consume[limit.name] ?? 0, from, nowMs));
}

describe("available", () => {
  test("999 milli-tokens are no token: exceeded, for a millisecond (A012)", () => {
    expect(status(RPM, 1, level(999))).toEqual({
      entityId: "key-1",
      resource: "gpt-4",
      limitName: "rpm",
      limit: RPM,
      kind: "rate",
      available: 0,
      requested: 1,
      exceeded: true,
      retryAfterSeconds: 0.001,
      fullAfterSeconds: 59.4,
      deficit: 1,
    });
  });

  test("the time until the bucket is full counts down with every milli-token", () => {
    const hourly = Limit.perHour("rph", 1);
    expect(status(hourly, 0, level(0)).fullAfterSeconds).toBe(3600);
    expect(status(hourly, 0, level(0), 20_000)).toMatchObject({
      available: 0,
      fullAfterSeconds: 3582,
    });
    expect(status(hourly, 0, level(0), 3_600_000)).toMatchObject({ fullAfterSeconds: 0 });
    expect(status(TPM, 0, level(-100_000_000)).fullAfterSeconds).toBe(120);
  });

  test("half a token of debt shows as one: toward minus infinity (A013)", () => {
    expect(status(RPM, 0, level(-500)).available).toBe(-1);
  });

  test("the wait in seconds (A014)", () => {
    expect(status(TPM, 10_000, level(0)).retryAfterSeconds).toBe(6.001);
    expect(status(TPM, 100_000, level(0)).retryAfterSeconds).toBe(60.001);
    expect(status(TPM, 10_000, level(100_000_000)).retryAfterSeconds).toBe(0);
  });

  test("half of a debt is paid after half a minute (A016)", () => {
    expect(status(TPM, 0, level(-100_000_000), 30_000).available).toBe(-50_000);
  });
});

describe("enough after the refill?", () => {
  test("ten of fifty fit; a hundred after a second do not (A017)", () => {
    const fits = statuses([[RPM, level(0)]], { rpm: 10 }, 30_000);
    expect(fits).toMatchObject([{ exceeded: false, available: 50, retryAfterSeconds: 0 }]);
    const [refused] = statuses([[RPM, level(0)]], { rpm: 100 }, 1000);
    expect(refused?.exceeded).toBe(true);
    expect(refused?.retryAfterSeconds).toBe(59.001);
  });

  test("one of two limits that has too little is enough to refuse (A018)", () => {
    const found = statuses(
      [
        [RPM, level(100_000)],
        [TPM, level(0)],
      ],
      { rpm: 1, tpm: 500 },
      0,
    );
    expect(found.map((each) => each.exceeded)).toEqual([false, true]);
  });

  test("names that no bucket has give no status here; the limiter refuses them before (A019)", () => {
    expect(statuses([[RPM, level(0)]], { other: 5 }, 0)).toEqual([]);
    expect(statuses([], { rpm: 5 }, 0)).toEqual([]);
  });

  test("only a request above zero can be exceeded, whatever the debt (B14)", () => {
    expect(status(RPM, 0, level(-5000))).toMatchObject({ exceeded: false, retryAfterSeconds: 0 });
  });

  test("more than the capacity never fits (B30)", () => {
    expect(status(RPM, 101, level(0)).retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
  });

  test("a wait behind a clock that ran backwards includes catching up", () => {
    expect(status(RPM, 1, level(0, 10_000), 4000).retryAfterSeconds).toBe(6.601);
  });

  test("a shard answers for its share, but shows the whole limit", () => {
    const check = { entityId: "key-1", resource: "gpt-4", limit: RPM, requested: 30 };
    const found = limitStatus(check, level(10_000), 0, shardRate(RPM.rate, 0, 2));
    expect(found).toMatchObject({ limit: RPM, available: 10, retryAfterSeconds: 24.001 });
    expect(statusOf(check, 60_000, RPM.rate).exceeded).toBe(false);
  });
});

test.each([
  [30, 50, 20],
  [-10, 5, 15],
  [100, 50, 0],
])("available %d, requested %d: %d are missing (A037)", (available, requested, deficit) => {
  expect(status(RPM, requested, level(available * 1000)).deficit).toBe(deficit);
});

property(
  "a status says exactly what a take would do",
  [
    fc.integer({ min: -1_000_000, max: 200_000 }),
    fc.integer({ min: -60_000, max: 120_000 }),
    fc.integer({ min: 0, max: 120 }),
  ],
  (tokensMilli, elapsedMs, requested) => {
    const nowMs = 1_000_000 + elapsedMs;
    const from = level(tokensMilli, 1_000_000);
    const taken = take(from, RPM.rate, requested * 1000, nowMs);
    const peeked = status(RPM, requested, from, nowMs);
    expect(peeked.exceeded).toBe(!taken.taken);
    expect(peeked.retryAfterSeconds).toBe(taken.retryAfterMs / 1000);
    expect(peeked.available).toBe(Math.floor(taken.availableMilli / 1000));
  },
);
