import {
  balanceMilli,
  type EmbeddedBucket,
  type EmbeddedLimit,
  withTaken,
} from "@zae-limiter/limiter/buckets/embedded/embedded-bucket.ts";
import {
  type FastConfig,
  PackedBucket,
} from "@zae-limiter/limiter/buckets/embedded/packed-bucket.ts";
import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/shared-builds.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

const CONFIG = configOf(["a:10/min", "b:10/min"]);
const FAST: FastConfig = {
  ...{ config: CONFIG, given: undefined, generation: 1 },
  ...{ expires: false, keepSeconds: -1 },
};
const REQUEST = { entityId: "e", resource: "r" };

function packed(bucket: EmbeddedBucket, fast: FastConfig | null = FAST, untilMs = 0) {
  const made = new PackedBucket(bucket, new SharedBuilds().of(bucket, undefined));
  if (fast !== null) made.remember(fast, untilMs);
  return made;
}

function both(a: number, b: number, more: Partial<EmbeddedBucket> = {}): EmbeddedBucket {
  return bucketWith([limitWith(a), limitWith(b, { name: "b" })], more);
}

function heldIn(bucket: PackedBucket, nowMs = NOW): readonly number[] {
  return bucket.unpacked().limits.map((limit) => balanceMilli(limit, nowMs));
}

describe("a consume on the fast path", () => {
  test("a consume on the fast path takes from all limits, counts one acquire, and says what is left", () => {
    const bucket = packed(both(4000, 7000));
    const result = bucket.consume({ ...REQUEST, consume: { a: 1, b: 2 } }, false, NOW);
    expect(result).toMatchObject({ granted: true, balancesMilli: [[3000, 5000]] });
    expect(bucket.unpacked()).toMatchObject({
      events: 1,
      limits: [{ consumedMilli: 1000 }, { consumedMilli: 2000 }],
    });
  });

  test("a consume on the fast path that one limit refuses takes nothing from any", () => {
    const bucket = packed(both(4000, 1000));
    const before = bucket.text();
    const result = bucket.consume({ ...REQUEST, consume: { a: 1, b: 2 } }, false, NOW);
    expect(result).toMatchObject({ granted: false, balancesMilli: [[4000, 1000]] });
    expect(bucket.text()).toBe(before);
  });

  test("a consume on the fast path from a limit that a refund has left beyond full takes from a full one", () => {
    const bucket = packed(both(10_500, 1000));
    const result = bucket.consume({ ...REQUEST, consume: { a: 1 } }, false, NOW);
    expect(result).toMatchObject({ granted: true, balancesMilli: [[9000, 1000]] });
    expect(heldIn(bucket)).toEqual([9000, 1000]);
  });

  test("a consume of nothing on the fast path counts no acquire", () => {
    const bucket = packed(both(4000, 1000));
    expect(bucket.consume({ ...REQUEST, consume: {} }, false, NOW)?.granted).toBe(true);
    expect(bucket.unpacked().events).toBe(0);
  });

  const HOUR_MS = 3_600_000;
  const ttl = NOW / 1000 + 100;
  test.each<[string, () => PackedBucket, Record<string, number>, number]>([
    ["nothing is remembered", () => packed(both(4000, 1000), null), { a: 1 }, NOW],
    ["a limit is in debt", () => packed(both(-1, 1000)), { a: 1 }, NOW],
    ["the clock went back", () => packed(both(4000, 1000)), { a: 1 }, NOW - 1],
    ["the hour of usage is over", () => packed(both(4000, 1000)), { a: 1 }, NOW + HOUR_MS],
    ["an amount is no whole number", () => packed(both(4000, 1000)), { a: 0.5 }, NOW],
    ["an amount is below zero", () => packed(both(4000, 1000)), { a: -1 }, NOW],
    ["a name is unknown", () => packed(both(4000, 1000)), { a: 1, c: 1 }, NOW],
    ["the bucket has a time to live", () => packed(both(4000, 1000, { ttl })), { a: 1 }, NOW],
    [
      "the time to live is nearly over",
      () => packed(both(4000, 1000, { ttl }), { ...FAST, keepSeconds: 101 }),
      { a: 1 },
      NOW,
    ],
    [
      "the limits have to be read again",
      () => packed(both(4000, 1000), { ...FAST, expires: true }, NOW),
      { a: 1 },
      NOW,
    ],
    [
      "a total is near the end of the safe integers",
      () =>
        packed(
          bucketWith([
            limitWith(4000, { consumedMilli: Number.MAX_SAFE_INTEGER }),
            limitWith(1000, { name: "b" }),
          ]),
        ),
      { a: 1 },
      NOW,
    ],
  ])(
    "a consume on the fast path is left to the slow path, with nothing done, where %s",
    (_, make, consume, nowMs) => {
      const bucket = make();
      const before = bucket.text();
      expect(bucket.consume({ ...REQUEST, consume }, false, nowMs)).toBeUndefined();
      expect(bucket.text()).toBe(before);
    },
  );

  test("a consume on the fast path passes over names of other limits only where the call says so", () => {
    const bucket = packed(both(4000, 1000));
    const asked = (consume: Record<string, number>, ignoresMissing: boolean) =>
      bucket.look("e", "r", consume, ignoresMissing, NOW)?.amountsMilli;
    expect(asked({ a: 1, c: 1 }, true)).toEqual([1000, 0]);
    expect(asked({ a: 1, c: 1 }, false)).toBeUndefined();
    expect(asked({ a: 1, c: 0.5 }, true)).toBeUndefined();
  });
});

test("limits are remembered for one generation, and for the very list of a call", () => {
  const bucket = packed(both(1, 1));
  expect([bucket.isFastFor(undefined, 1), bucket.isFastFor(undefined, 2)]).toEqual([true, false]);
  expect(bucket.isFastFor(CONFIG.limits, 1)).toBe(false);
  expect(bucket.isFastAbove(CONFIG.limits, 1)).toBe(true);
  const config: BucketConfig = { ...CONFIG, source: "override" };
  const called = packed(both(1, 1), { ...FAST, config, given: CONFIG.limits });
  expect(called.isFastFor(CONFIG.limits, 1)).toBe(true);
  expect(called.isFastFor([...CONFIG.limits], 1)).toBe(false);
  expect([called.isFastFor(undefined, 1), called.isFastAbove(undefined, 1)]).toEqual([
    false,
    false,
  ]);
  expect(called.isFastAbove(CONFIG.limits, 1)).toBe(true);
});

test("a correction consumes more or refunds, and leaves a debt to the slow path", () => {
  const bucket = packed(both(4000, 1000));
  expect(bucket.adjust(CONFIG.limits, [1500, -500], -1, NOW)).toBe(true);
  expect(heldIn(bucket)).toEqual([2500, 1500]);
  expect(bucket.unpacked()).toMatchObject({
    events: -1,
    limits: [{ consumedMilli: 1500 }, { consumedMilli: -500 }],
  });
  const before = bucket.text();
  expect(bucket.adjust(CONFIG.limits, [2501, 0], 0, NOW)).toBe(false);
  expect(bucket.adjust([...CONFIG.limits], [1, 0], 0, NOW)).toBe(false);
  expect(bucket.text()).toBe(before);
});

test("a bucket is full when a new one would hold as much, and idle since its last consume", () => {
  const bucket = packed(both(9000, 10_000));
  expect([bucket.isFull(NOW), bucket.isFull(NOW + 6000)]).toEqual([false, true]);
  expect(bucket.idleMs(NOW + 700)).toBe(700);
});

test("a limit that becomes full to the milli-token keeps no part of the next one", () => {
  const config = configOf(["a:10/min"]);
  const bucket = packed(bucketWith([limitWith(9999)]), { ...FAST, config });
  bucket.consume({ ...REQUEST, consume: { a: 1 } }, false, NOW + 7);
  expect(bucket.unpacked().limits[0]?.level).toMatchObject({ tokensMilli: 9000, remainder: 0 });
});

test("a look at a bucket says what a consume would come to, and changes nothing until it is taken", () => {
  const bucket = packed(both(4000, 1000));
  const outcome = bucket.look("e", "r", { a: 1 }, false, NOW);
  expect(outcome).toMatchObject({ granted: true, balancesMilli: [[4000, 1000]] });
  expect(heldIn(bucket)).toEqual([4000, 1000]);
  if (outcome !== undefined) bucket.take(outcome, NOW);
  expect(outcome?.balancesMilli).toEqual([[3000, 1000]]);
  expect(heldIn(bucket)).toEqual([3000, 1000]);
});

test("totals beyond the safe integers come out as they went in", () => {
  const wide = bucketWith([limitWith(1, { consumedMilli: 2n ** 60n })]);
  expect(packed(wide).unpacked().limits).toEqual(wide.limits);
});

property(
  "a consume on the fast path leaves what the slow path leaves, to the part of a milli-token",
  [
    fc.integer({ min: 0, max: 10_000 }),
    fc.nat(59_999),
    fc.array(fc.tuple(fc.nat(20_000), fc.nat(6)), { minLength: 1, maxLength: 8 }),
  ],
  (tokensMilli, remainder, steps) => {
    const level = { tokensMilli, refilledAtMs: NOW, remainder };
    let slow: EmbeddedLimit = limitWith(0, { level });
    const config = configOf(["a:10/min"]);
    const fast = packed(bucketWith([slow]), { ...FAST, config });
    let nowMs = NOW;
    for (const [passedMs, amount] of steps) {
      nowMs += passedMs;
      const isEnough = balanceMilli(slow, nowMs) >= amount * 1000;
      const result = fast.consume({ ...REQUEST, consume: { a: amount } }, false, nowMs);
      expect(result?.granted).toBe(amount === 0 || isEnough);
      if (isEnough) slow = withTaken(slow, amount * 1000, nowMs);
    }
    expect(fast.unpacked().limits).toEqual([slow]);
  },
  1000,
);
