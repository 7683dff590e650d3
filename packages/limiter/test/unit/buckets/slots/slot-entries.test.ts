import { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import { decodeRow, encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import {
  entryOf,
  holdersOf,
  movedSlots,
  NO_SLOTS,
} from "@zae-limiter/limiter/buckets/slots/slot-entries.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { NOW } from "../embedded/bucket-of.ts";

const CONFIG = configOf(["parallel:3 concurrent", "rpm:10"]);

function bucketWithSlots(): Bucket {
  const bucket = Bucket.full(CONFIG, UNLINKED, NOW);
  bucket.consume(CONFIG, [2000, 1000], NOW, undefined, "ann.1");
  bucket.consume(CONFIG, [1000, 1000], NOW, undefined, "bob.1");
  return bucket;
}

describe("entries", () => {
  test("an entry begins with the first slot and ends with the last", () => {
    const one = movedSlots(NO_SLOTS, "parallel", "ann.1", 1000) ?? [];
    const two = movedSlots(one, "parallel", "ann.1", 1000) ?? [];
    expect(two).toEqual([{ limitName: "parallel", entry: "ann.1", milli: 2000 }]);
    expect(movedSlots(two, "parallel", "ann.1", -2000)).toEqual([]);
  });

  test("nothing is given back to an entry that is gone, has less or is of another limit", () => {
    const held = movedSlots(NO_SLOTS, "parallel", "ann.1", 1000) ?? [];
    expect(movedSlots(held, "parallel", "ann.1", -2000)).toBeUndefined();
    expect(movedSlots(held, "parallel", "ann.2", -1000)).toBeUndefined();
    expect(movedSlots(held, "other", "ann.1", -1000)).toBeUndefined();
  });

  test("a holder has one entry in a bucket, and its slots are shown by limit", () => {
    const { slots } = bucketWithSlots().rare;
    expect(entryOf(slots, "bob")).toBe("bob.1");
    expect(entryOf(slots, "bo")).toBeUndefined();
    expect(holdersOf(slots, "parallel")).toEqual({ ann: 2, bob: 1 });
    expect(holdersOf(slots, "rpm")).toBeUndefined();
  });
});

describe("a bucket with slots", () => {
  test("what is free and what is held are always all slots", () => {
    const bucket = bucketWithSlots();
    const sum = () =>
      bucket.balanceMilli(0, NOW) + bucket.rare.slots.reduce((held, { milli }) => held + milli, 0);
    expect(sum()).toBe(3000);
    bucket.consume(CONFIG, [-1000, 0], NOW, undefined, "ann.1");
    bucket.consume(CONFIG, [-1000, 0], NOW, undefined, "gone.1");
    expect(bucket.balanceMilli(0, NOW)).toBe(1000);
    expect(sum()).toBe(3000);
    const lower = bucket.withConfig(
      configOf(["parallel:1 concurrent", "rpm:10"], "system", 9),
      NOW,
    );
    expect(lower.balanceMilli(0, NOW)).toBe(-1000);
    expect(holdersOf(lower.rare.slots, "parallel")).toEqual({ ann: 1, bob: 1 });
  });

  test("a bucket of which slots are held does not expire, and comes back from its text", () => {
    const bucket = bucketWithSlots();
    bucket.ttl = 1;
    expect(bucket.isExpired(NOW)).toBe(false);
    const read = decodeRow(encodeRow(bucket), 1, "a bucket");
    expect(read).toEqual(bucket);
    expect(encodeRow(read)).toBe(encodeRow(bucket));
    for (const held of bucket.rare.slots) bucket.giveBack(held);
    expect(bucket.isExpired(NOW)).toBe(true);
    expect(decodeRow(encodeRow(bucket), 1, "a bucket")).toEqual(bucket);
  });

  test("a rate that becomes slots has all of them, whatever was left of it", () => {
    const rates = configOf(["parallel:3/min", "rpm:10"]);
    const bucket = Bucket.full(rates, UNLINKED, NOW);
    bucket.consume(rates, [3000, 0], NOW);
    const slots = bucket.withConfig(configOf(["parallel:3 concurrent"], "system", 9), NOW);
    expect(slots.balanceMilli(0, NOW)).toBe(3000);
  });

  test("slots are not counted as consumption, and no call resets them", () => {
    const bucket = bucketWithSlots();
    expect(bucket.pendingUsage()?.amountsMilli).toEqual([["rpm", 2000]]);
    expect(bucket.add(0, Number.POSITIVE_INFINITY, NOW)).toBe(0);
    expect(bucket.balanceMilli(0, NOW)).toBe(0);
  });
});
