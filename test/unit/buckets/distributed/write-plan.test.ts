import fc from "fast-check";
import { expect, test } from "vitest";
import { balanceAt, balanceOf } from "../../../../src/buckets/distributed/balance-at.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import { asSeen, WritePlan } from "../../../../src/buckets/distributed/write-plan.ts";
import { property } from "../../../support/property.ts";
import { NOW, shardOf } from "./known.ts";
import { limitOf, written } from "./written.ts";

/** 10 tokens a day: a milli-token each 8,640 ms. */
const MILLI_MS = 8640;

function holding(tokensMilli: number, remainder = 0): SeenBucket {
  const bucket = shardOf(0);
  return {
    ...bucket,
    limits: new Map([["a", { ...limitOf(bucket), tokensMilli, remainder }]]),
  };
}

function planned(fill: (plan: WritePlan) => void): WritePlan {
  const plan = new WritePlan();
  fill(plan);
  // A write that changes nothing is no write.
  plan.set("mark", 1);
  return plan;
}

test("a plan collects what is set, added and removed, and an addition of 0 is none", () => {
  const plan = new WritePlan();
  expect(plan.isEmpty).toBe(true);
  plan.add("b_a_tc", 0);
  expect(plan.isEmpty).toBe(true);
  plan.set("cv", 2);
  plan.add("b_a_tk", -5);
  plan.remove("ttl", "rn");
  expect(plan.change).toEqual({ set: { cv: 2 }, add: { b_a_tk: -5 }, remove: ["ttl", "rn"] });
  expect(plan.isEmpty).toBe(false);
});

test("a plan refuses to add twice to an attribute, and to add anything but safe integers", () => {
  const plan = new WritePlan();
  plan.add("b_a_tk", 1);
  expect(() => plan.add("b_a_tk", 1)).toThrow(/adds to an attribute once/);
  expect(() => plan.add("b_a_tc", 0.5)).toThrow(/safe integers/);
});

test("bounds beyond the safe integers are left out, because no balance is beyond them", () => {
  const plan = new WritePlan();
  plan.atLeast("b_a_tk", -Number.MAX_SAFE_INTEGER);
  plan.atMost("b_a_tk", Number.MAX_SAFE_INTEGER);
  expect(plan.condition).toEqual([]);
});

test.each<[string, Partial<SeenBucket>]>([
  ["another base time", { refilledAtMs: NOW + 1 }],
  ["another rebase to the same base time", { rebases: 1 }],
  ["other limits", { configVersion: 2 }],
  ["another number of shards", { shardCount: 2 }],
])("a write that needs the bucket as seen fails on %s", (_, change) => {
  const bucket = shardOf(4);
  const plan = planned((one) => one.requireSeen(bucket, NOW));
  expect(written(bucket, plan)).toBeDefined();
  expect(written(shardOf(7), plan)).toBeDefined();
  expect(written({ ...bucket, ...change }, plan)).toBeUndefined();
});

test("a bucket whose time to live is over is only written to if it was seen so", () => {
  const over = shardOf(4, { ttl: NOW / 1000 });
  expect(
    written(
      over,
      planned((one) => one.requireSeen(shardOf(4), NOW)),
    ),
  ).toBeUndefined();
  expect(
    written(
      over,
      planned((one) => one.requireSeen(over, NOW)),
    ),
  ).toBeDefined();
});

test("an attribute that is 0 is not stored, and compared as absent", () => {
  expect(asSeen("rn", 0)).toEqual({ is: "absent", name: "rn" });
  expect(asSeen("rn", 2)).toEqual({ is: "=", name: "rn", value: 2 });
});

test("a remainder of 0 is removed, unless the limit never has one", () => {
  const plan = new WritePlan();
  const uneven = holding(0);
  plan.setRemainder("a", balanceAt(uneven, limitOf(uneven), NOW), 0);
  expect(plan.change.remove).toEqual(["b_a_rr"]);
  const even = { ...limitOf(uneven), rate: { ...limitOf(uneven).rate, refillMilli: 86_400_000 } };
  const other = new WritePlan();
  other.setRemainder("a", balanceAt(uneven, even, NOW), 0);
  expect(other.isEmpty).toBe(true);
});

const cases = [
  fc.integer({ min: -20, max: 20 }),
  fc.integer({ min: -20, max: 20 }),
  fc.nat(3 * MILLI_MS),
  fc.integer({ min: 1, max: 15 }),
  fc.nat(86_399_999),
] as [
  fc.Arbitrary<number>,
  fc.Arbitrary<number>,
  fc.Arbitrary<number>,
  fc.Arbitrary<number>,
  fc.Arbitrary<number>,
];

property(
  "a write that needs enough never passes where the balance is below the amount",
  cases,
  (seenMilli, storedMilli, elapsedMs, amount, remainder) => {
    const [seen, stored] = [holding(seenMilli), holding(storedMilli, remainder)];
    const nowMs = NOW + elapsedMs;
    const plan = planned((one) => {
      one.requireEnough("a", balanceAt(seen, limitOf(seen), nowMs), amount);
    });
    const balance = balanceOf(balanceAt(stored, limitOf(stored), nowMs));
    if (written(stored, plan) !== undefined) expect(balance).toBeGreaterThanOrEqual(amount);
    if (seenMilli === storedMilli && remainder === 0 && balance >= amount) {
      expect(written(stored, plan)).toBeDefined();
    }
  },
  2000,
);

property(
  "a write that needs a limit below full never passes where it is beyond full",
  cases,
  (seenMilli, storedMilli, elapsedMs, capacityMilli, remainder) => {
    const [seen, stored] = [holding(seenMilli), holding(storedMilli, remainder)];
    const nowMs = NOW + elapsedMs;
    const at = balanceAt(stored, limitOf(stored), nowMs);
    const plan = planned((one) => {
      one.requireLow("a", balanceAt(seen, limitOf(seen), nowMs), capacityMilli);
    });
    if (written(stored, plan) === undefined) return;
    expect(storedMilli + at.accruedMilli).toBeLessThanOrEqual(capacityMilli);
  },
  2000,
);

property(
  "a write that needs a full limit never passes where it is below full",
  cases,
  (seenMilli, storedMilli, elapsedMs, capacityMilli, remainder) => {
    const [seen, stored] = [holding(seenMilli), holding(storedMilli, remainder)];
    const nowMs = NOW + elapsedMs;
    const at = balanceAt(stored, limitOf(stored), nowMs);
    const plan = planned((one) => {
      one.requireFull("a", balanceAt(seen, limitOf(seen), nowMs), capacityMilli);
    });
    if (written(stored, plan) === undefined) return;
    expect(storedMilli + at.accruedMilli).toBeGreaterThanOrEqual(capacityMilli);
  },
  2000,
);
