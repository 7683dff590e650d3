import type { PlainRequest } from "@zae-limiter/limiter/buckets/bucket-consumer.ts";
import type { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import { encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import {
  adjustOne,
  agree,
  cascades,
  consumeChain,
  consumeOne,
  isOrdinary,
  OrdinaryOutcome,
  SharedTerms,
  type Terms,
} from "@zae-limiter/limiter/buckets/embedded/ordinary-call.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { ANCESTORS_MAX } from "@zae-limiter/limiter/records/entities/ancestry.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bucketWith, heldIn, limitsIn, limitWith, NOW } from "./bucket-of.ts";

const CONFIG = configOf(["a:10/min", "b:10/min"]);
const GENERATION = 1;
const HOUR_MS = 3_600_000;

function terms(config: BucketConfig = CONFIG, more: Partial<Terms> = {}): Terms {
  const made = {
    config,
    given: undefined,
    generation: GENERATION,
    keepSeconds: -1,
    isTimed: false,
  };
  return { ...made, withoutTotals: false, ...more };
}

function agreed(bucket: Bucket, made = terms(), untilMs = Number.POSITIVE_INFINITY): Bucket {
  agree(bucket, made, untilMs);
  return bucket;
}

function both(a: number, b: number, more: Parameters<typeof bucketWith>[1] = {}): Bucket {
  return bucketWith([limitWith(a), limitWith(b, { name: "b" })], more);
}

function known(generation: number, withoutTotals = false) {
  return { generation, withoutTotals, untilMs: NOW + 5000 };
}

function asked(consume: PlainRequest["consume"]): PlainRequest {
  return { entityId: "e", resource: "r", consume };
}

describe("terms", () => {
  test("limits of a call are bound to the very list; stored limits to none", () => {
    const shared = new SharedTerms(0, true);
    expect(shared.of(CONFIG, known(3))).toEqual(terms(CONFIG, { generation: 3 }));
    const own = configOf(["a:10/min"], "override");
    expect(shared.of(own, known(3))?.given).toBe(own.limits);
  });

  test("calls by the same limits share their terms, in one generation", () => {
    const shared = new SharedTerms(0, true);
    const first = shared.of(CONFIG, known(3));
    expect(shared.of({ ...CONFIG }, known(3))).toBe(first);
    expect(shared.of(CONFIG, known(4))).not.toBe(first);
    expect(shared.of({ ...CONFIG, version: 2 }, known(4))).toEqual(
      terms({ ...CONFIG, version: 2 }, { generation: 4 }),
    );
  });

  test("terms end when limits have to be read again, where other processes may change them", () => {
    const endOf = (isShared: boolean) => {
      const bucket = both(1, 1);
      new SharedTerms(0, isShared).agree(bucket, CONFIG, known(GENERATION), NOW);
      return bucket.ordinaryUntil - NOW / 1000;
    };
    expect([endOf(true), endOf(false)]).toEqual([5, HOUR_MS / 1000]);
  });

  test("a call that counts totals goes by terms of a call that found none", () => {
    const isNow = (withoutTotals: boolean, totals: boolean) => {
      const bucket = both(1, 1);
      new SharedTerms(0, true).agree(bucket, CONFIG, known(GENERATION, withoutTotals), NOW);
      return isOrdinary(bucket, undefined, totals, GENERATION, NOW);
    };
    expect([isNow(false, true), isNow(true, true)]).toEqual([false, true]);
    expect([isNow(false, false), isNow(true, false)]).toEqual([true, true]);
    const shared = new SharedTerms(0, true);
    expect(shared.of(CONFIG, known(1, true))).not.toBe(shared.of(CONFIG, known(1)));
  });

  test("limits that expire with their bucket say how far off its time to live must be", () => {
    const shared = new SharedTerms(7, true);
    expect(shared.of(CONFIG, known(1))?.keepSeconds).toBeGreaterThan(60);
    expect(shared.of({ ...CONFIG, source: "entity" }, known(1))?.keepSeconds).toBe(-1);
  });

  test.each<[string, BucketConfig]>([
    ["soft limits", configOf(["a:10/min", "b:10/min soft"])],
    ["a level that decides about cascading", { ...CONFIG, cascade: true }],
    ["bypassed limits", { ...CONFIG, bypass: true }],
    ["limits that were just read again", { ...CONFIG, forced: true }],
  ])("%s have no terms", (_, config) => {
    const shared = new SharedTerms(7, true);
    shared.of(CONFIG, known(1));
    expect(shared.of(config, known(1))).toBeUndefined();
  });
});

describe("when a call is ordinary", () => {
  const ttl = NOW / 1000 + 100;
  const isNow = (bucket: Bucket, nowMs = NOW) =>
    isOrdinary(bucket, undefined, false, GENERATION, nowMs);

  test.each<[string, Bucket, number, boolean]>([
    ["the slow path has granted a call before", agreed(both(1, 1)), NOW, true],
    ["no call was granted before", both(1, 1), NOW, false],
    ["the hour of usage is over", agreed(both(1, 1)), NOW + HOUR_MS, false],
    ["the clock is before the hour of usage", agreed(both(1, 1)), NOW - HOUR_MS, false],
    ["the bucket has other limits", agreed(bucketWith([limitWith(1)])), NOW, false],
    ["the bucket alone has a time to live", agreed(both(1, 1, { ttl })), NOW, false],
    [
      "the limits alone have a time to live",
      agreed(both(1, 1), terms(CONFIG, { keepSeconds: 5 })),
      NOW,
      false,
    ],
    [
      "the time to live is far off",
      agreed(both(1, 1, { ttl }), terms(CONFIG, { keepSeconds: 99 })),
      NOW,
      true,
    ],
    [
      "the time to live has to be renewed",
      agreed(both(1, 1, { ttl }), terms(CONFIG, { keepSeconds: 100 })),
      NOW,
      false,
    ],
    ["limits have to be read again", agreed(both(1, 1), terms(), NOW + 999), NOW, false],
    ["limits need not be read again yet", agreed(both(1, 1), terms(), NOW + 1000), NOW, true],
  ])("an ordinary call is decided by the bucket where %s", (_, bucket, nowMs, expected) => {
    expect(isNow(bucket, nowMs)).toBe(expected);
  });

  test("an ordinary call is one of the same generation, with the same limits given", () => {
    const bucket = agreed(both(1, 1));
    expect(isOrdinary(bucket, undefined, false, GENERATION + 1, NOW)).toBe(false);
    expect(isOrdinary(bucket, CONFIG.limits, false, GENERATION, NOW)).toBe(false);
    const own = agreed(both(1, 1), terms(CONFIG, { given: CONFIG.limits }));
    expect(isOrdinary(own, CONFIG.limits, false, GENERATION, NOW)).toBe(true);
    expect(isOrdinary(own, [...CONFIG.limits], false, GENERATION, NOW)).toBe(false);
    expect(isNow(own)).toBe(false);
  });

  test("an ordinary call is none after the slow path has written the bucket", () => {
    expect(isNow(agreed(both(1, 1)).copy())).toBe(false);
  });
});

describe("an ordinary consume", () => {
  test("an ordinary call consumes from all limits, counts one acquire, and says what is left", () => {
    const bucket = agreed(both(4000, 7000));
    const outcome = consumeOne(bucket, asked({ a: 1, b: 2 }), false, NOW);
    expect(outcome).toMatchObject({ granted: true, balancesMilli: [[3000, 5000]] });
    expect(bucket.events).toBe(1);
    expect(limitsIn(bucket)).toMatchObject([{ consumedMilli: 1000 }, { consumedMilli: 2000 }]);
  });

  test("an ordinary call consumes nothing where one limit refuses", () => {
    const bucket = agreed(both(4000, 1000));
    const before = encodeRow(bucket);
    const outcome = consumeOne(bucket, asked({ a: 1, b: 2 }), false, NOW);
    expect(outcome).toMatchObject({ granted: false, balancesMilli: [[4000, 1000]] });
    expect(encodeRow(bucket)).toBe(before);
  });

  test("an ordinary call consumes from a full limit where a refund has left more", () => {
    const bucket = agreed(both(10_500, 1000));
    const outcome = consumeOne(bucket, asked({ a: 1 }), false, NOW);
    expect(outcome).toMatchObject({ granted: true, balancesMilli: [[9000, 1000]] });
    expect(heldIn(bucket)).toEqual([9000, 1000]);
  });

  test("an ordinary call counts no acquire where nothing is consumed", () => {
    const bucket = agreed(both(4000, 1000));
    expect(consumeOne(bucket, asked({}), false, NOW)?.granted).toBe(true);
    expect(bucket.events).toBe(0);
  });

  test.each<[string, Bucket, Record<string, number>, number]>([
    ["the bucket has no terms", both(4000, 1000), { a: 1 }, NOW],
    ["a limit is in debt", agreed(both(-1, 1000)), { b: 1 }, NOW],
    ["the clock went back", agreed(both(4000, 1000)), { a: 1 }, NOW - 1],
    ["an amount is not whole", agreed(both(4000, 1000)), { a: 0.5 }, NOW],
    ["an amount is below zero", agreed(both(4000, 1000)), { a: -1 }, NOW],
    ["an amount is too large", agreed(both(4000, 1000)), { a: 1e12 + 1 }, NOW],
    ["a name has no limit", agreed(both(4000, 1000)), { a: 1, c: 1 }, NOW],
    ["the amounts are a list", agreed(both(4000, 1000)), [] as never, NOW],
  ])(
    "an ordinary call is left to the slow path, with nothing done, where %s",
    (_, bucket, consume, nowMs) => {
      const before = encodeRow(bucket);
      expect(consumeOne(bucket, asked(consume), false, nowMs)).toBeUndefined();
      expect(encodeRow(bucket)).toBe(before);
    },
  );

  test("an ordinary call passes over names without a limit only where the call says so", () => {
    const legs = (consume: Record<string, number>, ignores: boolean, made = terms()) =>
      consumeOne(agreed(both(4000, 1000), made), asked(consume), ignores, NOW)?.legs;
    expect(legs({ a: 1, c: 1 }, true)?.[0]?.amountsMilli).toEqual([1000, 0]);
    expect(legs({ a: 1, c: 1 }, false)).toBeUndefined();
    expect(legs({ a: 1, c: 0.5 }, true)).toBeUndefined();
    const unsupported = [{ name: "c", kind: "schedule" }] as const;
    expect(legs({ a: 1, c: 1 }, true, terms({ ...CONFIG, unsupported }))).toBeUndefined();
  });

  test("the outcome of an ordinary call has the legs, the outcomes and the balances of the common form", () => {
    const link = { cascade: true, parentId: "team" };
    const outcome = new OrdinaryOutcome(
      true,
      "e",
      "r",
      CONFIG,
      link,
      [2000, 0, 3000, 5000],
      undefined,
    );
    const amountsMilli = [2000, 0];
    expect(outcome.balancesMilli).toEqual([[3000, 5000]]);
    expect(outcome.legs).toEqual([
      { entityId: "e", resource: "r", config: CONFIG, amountsMilli, link, linkIsFresh: false },
    ]);
    expect(outcome.outcomes).toEqual([
      { parts: [{ shard: 0, amountsMilli }], link, balancesMilli: [3000, 5000] },
    ]);
  });

  property(
    "an ordinary call leaves what a consume without a check leaves, to the part of a milli-token",
    [
      fc.integer({ min: 0, max: 10_000 }),
      fc.nat(59_999),
      fc.array(fc.tuple(fc.nat(20_000), fc.nat(6)), { minLength: 1, maxLength: 8 }),
    ],
    (tokensMilli, remainder, steps) => {
      const level = { tokensMilli, refilledAtMs: NOW, remainder };
      const config = configOf(["a:10/min"]);
      const slow = bucketWith([limitWith(0, { level })]);
      const fast = agreed(slow.copy(), terms(config));
      let nowMs = NOW;
      for (const [passedMs, amount] of steps) {
        nowMs += passedMs;
        const isEnough = slow.balanceMilli(0, nowMs) >= amount * 1000;
        const outcome = consumeOne(fast, asked({ a: amount }), false, nowMs);
        expect(outcome?.granted).toBe(isEnough);
        if (isEnough) slow.consume(config, [amount * 1000], nowMs);
      }
      expect(fast.numbers).toEqual(slow.numbers);
    },
    1000,
  );
});

describe("an ordinary adjustment", () => {
  const adjustment = { entityId: "e", resource: "r", shard: 0, config: CONFIG };

  test("an ordinary call consumes more or refunds, and counts acquires", () => {
    const bucket = agreed(both(4000, 1000));
    const change = { ...adjustment, deltasMilli: [1500, -500], acquires: -1 };
    expect(adjustOne(bucket, change, NOW)).toBe(true);
    expect(heldIn(bucket)).toEqual([2500, 1500]);
    expect(bucket.events).toBe(-1);
    expect(limitsIn(bucket)).toMatchObject([{ consumedMilli: 1500 }, { consumedMilli: -500 }]);
  });

  test.each<[string, readonly number[], Partial<BucketConfig>, number]>([
    ["an ordinary call leaves a debt", [4001, 0], {}, NOW],
    ["it has other limits", [1, 0], { limits: [...CONFIG.limits] }, NOW],
    ["limits are bypassed", [1, 0], { bypass: true }, NOW],
    ["the hour of usage is over", [1, 0], {}, NOW + HOUR_MS],
    ["the clock went back", [1, 0], {}, NOW - 1],
  ])(
    "an ordinary call is left to the slow path, with nothing done, where %s",
    (_, deltasMilli, more, nowMs) => {
      const bucket = agreed(both(4000, 1000));
      const before = encodeRow(bucket);
      const config = { ...CONFIG, ...more };
      expect(adjustOne(bucket, { ...adjustment, config, deltasMilli }, nowMs)).toBe(false);
      expect(encodeRow(bucket)).toBe(before);
    },
  );
});

describe("an ordinary consume from a chain", () => {
  const ONE = configOf(["a:10/min"]);

  function bucketOf(tokens: number, parentId?: string): Bucket {
    const link = { cascade: parentId !== undefined, parentId };
    return agreed(bucketWith([limitWith(tokens * 1000)], { link }), terms(ONE));
  }

  function consumed(tokens: number, first: Bucket, above: Record<string, Bucket>) {
    const request = { entityId: "child", resource: "r", consume: { a: tokens } };
    return consumeChain(first, request, false, NOW, (id) => above[id]);
  }

  function tokensOf(...buckets: readonly Bucket[]): number[] {
    return buckets.flatMap((bucket) => heldIn(bucket).map((held) => held / 1000));
  }

  test("a bucket cascades where its link has a parent and says so", () => {
    expect([cascades(bucketOf(1)), cascades(bucketOf(1, "team"))]).toEqual([false, true]);
    const link = { cascade: false, parentId: "team" };
    expect(cascades(bucketWith([], { link }))).toBe(false);
  });

  test("a chain that has enough is consumed from in every bucket, from the child up", () => {
    const [child, team, org] = [bucketOf(5, "team"), bucketOf(6, "org"), bucketOf(7)];
    const outcome = consumed(2, child, { team, org });
    expect(outcome?.granted).toBe(true);
    expect(outcome?.legs.map(({ entityId }) => entityId)).toEqual(["child", "team", "org"]);
    expect(outcome?.balancesMilli).toEqual([[3000], [4000], [5000]]);
    expect(outcome?.outcomes.map(({ parts }) => parts)).toEqual(
      [0, 1, 2].map(() => [{ shard: 0, amountsMilli: [2000] }]),
    );
    expect(tokensOf(child, team, org)).toEqual([3, 4, 5]);
  });

  test("one ancestor that refuses leaves every bucket of the chain unchanged", () => {
    const [child, team] = [bucketOf(5, "team"), bucketOf(1)];
    const outcome = consumed(2, child, { team });
    expect(outcome).toMatchObject({ granted: false, balancesMilli: [[5000], [1000]] });
    expect(tokensOf(child, team)).toEqual([5, 1]);
  });

  test("an ancestor without a bucket, or one that cannot decide, leaves all to the slow path", () => {
    const child = bucketOf(5, "team");
    expect(consumed(2, child, {})).toBeUndefined();
    expect(consumed(2, child, { team: bucketOf(-1) })).toBeUndefined();
    expect(tokensOf(child)).toEqual([5]);
  });

  test("a circle of ancestors ends on the slow path", () => {
    const child = bucketOf(5, "child");
    expect(consumed(1, child, { child })).toBeUndefined();
    expect(tokensOf(child)).toEqual([5]);
  });

  test("the longest chain that there may be is decided here", () => {
    const above: Record<string, Bucket> = {};
    for (let at = 1; at <= ANCESTORS_MAX; at += 1) {
      above[`e${at}`] = bucketOf(5, at < ANCESTORS_MAX ? `e${at + 1}` : undefined);
    }
    expect(consumed(1, bucketOf(5, "e1"), above)?.legs).toHaveLength(ANCESTORS_MAX + 1);
  });
});
