import {
  accruedUp,
  type BalanceAt,
  balanceAt,
  balanceOf,
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  countAcquires,
  isStampedDisabled,
  leftOf,
  type PlanContext,
  planLimit,
  planTtl,
  requireCovered,
  requireEnabled,
  WritePlan,
} from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import { amountsByName, consumes, exceeds } from "@zae-limiter/limiter/buckets/leg.ts";
import { DEBT_MILLI_MAX } from "@zae-limiter/limiter/core/bucket.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOW, RULES, shardOf } from "../known.ts";
import { itemOf, limitOf, written, writtenItem } from "../written.ts";

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

test("a write passes where the time to live was renewed, set or removed since", () => {
  const times = [NOW / 1000 + 60, NOW / 1000 + 900, undefined];
  for (const seen of times) {
    const plan = planned((one) => one.requireSeen(shardOf(4, { ttl: seen }), NOW));
    for (const ttl of times) expect(written(shardOf(4, { ttl }), plan)).toBeDefined();
  }
});

test("a write needs the count of shards to be absent if it was seen absent, and else the one seen", () => {
  const { shard_count: _, ...item } = itemOf(shardOf(4));
  const uncounted = decoded(item as Item);
  expect(uncounted).toMatchObject({ shardCount: 1, isUncounted: true });
  const plan = planned((one) => one.requireSeen(uncounted as SeenBucket, NOW));
  expect(writtenItem(item as Item, plan)).toBeDefined();
  expect(written(shardOf(4), plan)).toBeUndefined();
  const counted = planned((one) => one.requireSeen(shardOf(4), NOW));
  expect(writtenItem(item as Item, counted)).toBeUndefined();
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

describe("the change of a limit", () => {
  const DAY_MS = 86_400_000;
  const CONTEXT: PlanContext = { nowMs: NOW, rules: RULES, trustFull: () => true };

  function changed(bucket: SeenBucket, amount: number, more: Partial<PlanContext> = {}) {
    const context = { ...CONTEXT, ...more };
    const plan = new WritePlan();
    const balance = balanceAt(bucket, limitOf(bucket), context.nowMs);
    const guess = planLimit(plan, "a", balance, amount, context);
    return { plan, guess, after: written(bucket, plan) };
  }

  test("amounts are found by the names of their limits, and a missing one is 0", () => {
    const config = configOf(["a:1/min", "b:1/min"]);
    expect([...amountsByName(config, [5])]).toEqual([
      ["a", 5],
      ["b", 0],
    ]);
  });

  test.each([
    [[5, 0], [5, -3], false],
    [[6, 0], [5, 9], true],
    [[0, 1], [-5, 1], false],
    [[-7, 0], [-9, 0], false],
  ])("amounts %j exceed balances %j: %s", (amounts, balances, expected) => {
    expect(exceeds(amounts, balances)).toBe(expected);
  });

  test("only an amount above zero is a consume", () => {
    expect([consumes([0, 1]), consumes([0, -1]), consumes([])]).toEqual([true, false, false]);
  });

  test.each<[string, number[], Partial<PlanContext>, number | undefined]>([
    ["a consume", [5], {}, 1],
    ["a consume of nothing", [0], {}, undefined],
    ["an adjustment", [5], { force: true }, undefined],
    ["a write for three calls", [5], { acquires: 3 }, 3],
    ["a refund that makes an acquire void", [-5], { force: true, acquires: -1 }, -1],
  ])("%s counts as so many acquires", (_, amounts, more, expected) => {
    const plan = new WritePlan();
    countAcquires(plan, amounts, { ...CONTEXT, ...more });
    expect(Object.values(plan.change.add ?? {})[0]).toBe(expected);
  });

  describe("one limit", () => {
    test("a low one loses the amount, and its base time stays", () => {
      const { after, guess } = changed(shardOf(4), 1500);
      expect(limitOf(after)).toMatchObject({ tokensMilli: 2500, totalConsumedMilli: 7500 });
      expect(after?.refilledAtMs).toBe(NOW);
      expect(guess).toMatchObject({ full: false, lookedFull: false, tokensMilli: 2500 });
    });

    test("a full one drops the time beyond full", () => {
      const idle = shardOf(4);
      const nowMs = NOW + 3 * DAY_MS;
      const { after } = changed(idle, 1500, { nowMs });
      expect(balanceOf(balanceAt(after as SeenBucket, limitOf(after), nowMs))).toBe(8500);
    });

    test("a limit that only looks full is consumed from like a low one", () => {
      const nowMs = NOW + 3 * DAY_MS;
      const { guess, after } = changed(shardOf(4), 1500, { nowMs, trustFull: () => false });
      expect(guess).toMatchObject({ full: false, lookedFull: true });
      // The write needs a bucket that is not full, and this one is.
      expect(after).toBeUndefined();
    });

    test("a refund needs nothing but the limit, and goes to the stored balance", () => {
      expect(limitOf(changed(shardOf(4), -1000).after)).toMatchObject({
        tokensMilli: 5000,
        totalConsumedMilli: 5000,
      });
      const { plan } = changed(shardOf(4), -1000);
      const { b_a_tk: _, ...without } = itemOf(shardOf(4));
      expect(writtenItem(without as ReturnType<typeof itemOf>, plan)).toBeUndefined();
    });

    test("a bypass counts what was consumed, and leaves the balance as it is", () => {
      const { after } = changed(shardOf(4), 9000, { bypass: true });
      expect(limitOf(after)).toMatchObject({ tokensMilli: 4000, totalConsumedMilli: 15_000 });
    });

    test.each<[string, Partial<PlanContext>, boolean]>([
      ["a consume", {}, false],
      ["an adjustment", { force: true }, true],
      ["a consume from a soft limit", { soft: new Set(["a"]) }, true],
      ["a consume from another soft limit", { soft: new Set(["b"]) }, false],
    ])("%s may make a debt or may not", (_, more, expected) => {
      expect(changed(shardOf(1), 2000, more).after !== undefined).toBe(expected);
    });

    test("a debt stops at the deepest one", () => {
      const bucket = shardOf(0);
      const deep = { ...limitOf(bucket), tokensMilli: -DEBT_MILLI_MAX + 100 };
      const { after } = changed({ ...bucket, limits: new Map([["a", deep]]) }, 500, {
        force: true,
      });
      expect(limitOf(after).tokensMilli).toBe(-DEBT_MILLI_MAX);
    });

    property(
      "after a consume the bucket has the amount less, whatever time has passed",
      [
        fc.integer({ min: -5000, max: 10_000 }),
        fc.nat(2 * DAY_MS),
        fc.integer({ min: 1, max: 500 }),
      ],
      (milli, elapsedMs, amount) => {
        const nowMs = NOW + elapsedMs;
        const bucket = shardOf(milli / 1000);
        const before = balanceOf(balanceAt(bucket, limitOf(bucket), nowMs));
        const { after } = changed(bucket, amount, { nowMs });
        expect(after !== undefined).toBe(before >= amount);
        if (after === undefined) return;
        expect(balanceOf(balanceAt(after, limitOf(after), nowMs))).toBe(before - amount);
        const { remainder } = limitOf(after);
        expect(remainder >= 0 && remainder < DAY_MS).toBe(true);
      },
      1000,
    );
  });

  describe("the time to live", () => {
    const config = configOf(["a:10/day"]);
    const renewed = (bucket: SeenBucket, nowMs = NOW, source = config.source) => {
      const plan = new WritePlan();
      const left = leftOf(new Map([["a", balanceAt(bucket, limitOf(bucket), nowMs)]]), new Map());
      const ttl = planTtl(plan, bucket, { source }, left, { nowMs, rules: RULES });
      return { ttl, change: plan.change };
    };

    test("a time that is good enough stays, and one that is half over is renewed", () => {
      const bucket = shardOf(4);
      expect(renewed(bucket)).toMatchObject({ ttl: bucket.ttl, change: { set: {}, remove: [] } });
      const nowMs = NOW + 4 * DAY_MS;
      const { ttl, change } = renewed(bucket, nowMs);
      expect(ttl).toBe(Math.ceil(nowMs / 1000) + 7 * 86_400 + 1);
      expect(change.set).toEqual({ ttl });
    });

    test("a bucket with several shards, or with limits of its own, has none", () => {
      for (const { ttl, change } of [
        renewed(shardOf(4, { shardCount: 2 })),
        renewed(shardOf(4), NOW, "entity"),
      ]) {
        expect([ttl, change.remove]).toEqual([undefined, ["ttl"]]);
      }
    });

    test("a write that begins a time to live needs balances that the time covers", () => {
      const bucket = shardOf(-3, { ttl: undefined });
      const ttl = NOW / 1000 + 86_400;
      const plan = new WritePlan();
      plan.set("ttl", ttl);
      const balances = new Map([["a", balanceAt(bucket, limitOf(bucket), NOW)]]);
      requireCovered(plan, bucket, balances, new Map(), ttl, CONTEXT);
      // In a day 10 tokens accrue: an empty bucket would be full, one in debt would not.
      expect(written(bucket, plan)).toBeUndefined();
      expect(written(shardOf(0, { ttl: undefined }), plan)).toBeDefined();
    });

    test("a consume that leaves the time as it is needs nothing more", () => {
      const bucket = shardOf(4);
      const plan = new WritePlan();
      const balances = new Map([["a", balanceAt(bucket, limitOf(bucket), NOW)]]);
      requireCovered(plan, bucket, balances, new Map([["a", 5]]), bucket.ttl, CONTEXT);
      expect(plan.condition).toEqual([]);
    });
  });

  test("a bucket that is stamped as switched off meanwhile is not consumed from", () => {
    const bucket = shardOf(4);
    const plan = new WritePlan();
    plan.set("mark", 1);
    requireEnabled(plan, bucket);
    expect(isStampedDisabled(bucket)).toBe(false);
    expect(writtenItem({ ...itemOf(bucket), disabled: true }, plan)).toBeUndefined();
    expect(written(bucket, plan)).toBeDefined();
  });
});
