import fc from "fast-check";
import { expect, test } from "vitest";
import {
  accruedUp,
  type BalanceAt,
  balanceAt,
  balanceOf,
} from "../../../../src/buckets/distributed/balance-at.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import { asSeen, WritePlan } from "../../../../src/buckets/distributed/write-plan.ts";
import { property } from "../../../support/property.ts";
import { NOW, shardOf } from "./known.ts";
import { limitOf, written } from "./written.ts";

/** 10 tokens a day: a milli-token each 8,640 ms. */
const MILLI_MS = 8640;
const DAY_MS = 86_400_000;

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

interface Case {
  readonly seenMilli: number;
  readonly seenRest: number;
  readonly storedMilli: number;
  readonly storedRest: number;
  readonly elapsedMs: number;
  readonly bound: number;
}

/** A state that was seen, the one that is stored by now, and a bound near both. */
const cases = fc.record<Case>({
  seenMilli: fc.integer({ min: -20, max: 20 }),
  seenRest: fc.oneof(fc.constant(0), fc.nat(DAY_MS - 1)),
  storedMilli: fc.integer({ min: -20, max: 20 }),
  storedRest: fc.oneof(fc.constant(0), fc.nat(DAY_MS - 1)),
  elapsedMs: fc.nat(3 * MILLI_MS),
  bound: fc.integer({ min: 1, max: 15 }),
});

/** Returns the stored limit at the time of the write if the write passes there. */
function passing(
  one: Case,
  fill: (plan: WritePlan, balance: BalanceAt) => void,
): BalanceAt | undefined {
  const nowMs = NOW + one.elapsedMs;
  const seen = holding(one.seenMilli, one.seenRest);
  const stored = holding(one.storedMilli, one.storedRest);
  const plan = planned((made) => fill(made, balanceAt(seen, limitOf(seen), nowMs)));
  return written(stored, plan) && balanceAt(stored, limitOf(stored), nowMs);
}

property(
  "a write that needs enough never passes where the balance is below the amount",
  [cases],
  (one) => {
    const at = passing(one, (plan, seen) => plan.requireEnough("a", seen, one.bound));
    if (at !== undefined) expect(balanceOf(at)).toBeGreaterThanOrEqual(one.bound);
  },
  3000,
);

property(
  "a write that needs enough passes where nothing has changed and there is enough",
  [cases],
  (one) => {
    const same = { ...one, storedMilli: one.seenMilli, storedRest: one.seenRest };
    const stored = holding(one.seenMilli, one.seenRest);
    const enough = balanceOf(balanceAt(stored, limitOf(stored), NOW + one.elapsedMs)) >= one.bound;
    const at = passing(same, (plan, seen) => plan.requireEnough("a", seen, one.bound));
    expect(at !== undefined).toBe(enough);
  },
  1000,
);

property(
  "a write that needs a limit below full never passes where it is beyond full",
  [cases],
  (one) => {
    const at = passing(one, (plan, seen) => plan.requireLow("a", seen, one.bound));
    if (at !== undefined) expect(one.storedMilli + accruedUp(at)).toBeLessThanOrEqual(one.bound);
  },
  3000,
);

property(
  "a write that needs a full limit never passes where it is below full",
  [cases],
  (one) => {
    const at = passing(one, (plan, seen) => plan.requireFull("a", seen, one.bound));
    if (at !== undefined)
      expect(one.storedMilli + at.accruedMilli).toBeGreaterThanOrEqual(one.bound);
  },
  3000,
);
