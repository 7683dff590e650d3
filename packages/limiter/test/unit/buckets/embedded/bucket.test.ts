import { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import { hourOf, hourStartMs } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { bucketWith, heldIn, limitsIn, limitWith, NOW } from "./bucket-of.ts";

test("a new bucket is full, and has the build of its config", () => {
  const bucket = Bucket.full(configOf(["a:10/min", "b:5/min"], "system", 4), UNLINKED, NOW);
  expect(bucket).toMatchObject({ events: 0, ttl: undefined, usageHour: hourOf(NOW) });
  expect(bucket.build).toMatchObject({ version: 4, source: "system", names: ["a", "b"] });
  expect(heldIn(bucket)).toEqual([10_000, 5000]);
});

test("a copy can be changed, and the bucket stays as it was", () => {
  const bucket = bucketWith([limitWith(4000)], { events: 2, ttl: 7 });
  const copy = bucket.copy();
  expect(copy).toEqual(bucket);
  copy.consume(configOf(["a:10/min"]), [1000], NOW);
  expect([heldIn(bucket), heldIn(copy)]).toEqual([[4000], [3000]]);
});

test("a bucket has expired once its time to live is over", () => {
  const bucket = bucketWith([], { ttl: NOW / 1000 });
  expect([bucket.isExpired(NOW - 1), bucket.isExpired(NOW)]).toEqual([false, true]);
  expect(bucketWith([]).isExpired(NOW)).toBe(false);
});

describe("another config", () => {
  test.each([
    ["a larger capacity leaves the balance", 4000, "a:20/min", 4000],
    ["a smaller capacity cuts the balance", 4000, "a:3/min", 3000],
    ["a debt stays a debt", -4000, "a:3/min", -4000],
  ])("%s", (_, tokens, text, expected) => {
    const bucket = bucketWith([limitWith(tokens)]);
    const after = bucket.withConfig(configOf([text], "resource", 2), NOW);
    expect(heldIn(after)).toEqual([expected]);
    expect(heldIn(bucket)).toEqual([Math.min(tokens, 10_000)]);
  });

  test("a config brings new limits full, and takes away those it does not name", () => {
    const bucket = bucketWith([limitWith(4000), limitWith(1, { name: "old" })]);
    const after = bucket.withConfig(configOf(["a:10/min", "new:5/min"], "resource", 2), NOW);
    expect(after.build.names).toEqual(["a", "new"]);
    expect(heldIn(after)).toEqual([4000, 5000]);
  });

  test("limits of a call leave the version and the other limits as they are", () => {
    const old = limitWith(1, { name: "old", consumedMilli: 5 });
    const bucket = bucketWith([limitWith(4000), old], { events: 3 });
    const after = bucket.withConfig(configOf(["a:20/min"], "override", 9), NOW);
    expect(after.build).toMatchObject({ version: 1, source: "override", names: ["a", "old"] });
    expect(limitsIn(after)[1]).toEqual(old);
    expect(after.events).toBe(3);
  });
});

describe("a consume without a check", () => {
  const CONFIG = configOf(["b:10/min", "a:10/min"]);
  const both = () => bucketWith([limitWith(4000), limitWith(7000, { name: "b" })]);

  test("amounts go to limits by name; a negative one is refunded", () => {
    const bucket = both();
    bucket.consume(CONFIG, [9000, -1500], NOW);
    expect(heldIn(bucket)).toEqual([5500, -2000]);
    expect(limitsIn(bucket).map(({ consumedMilli }) => consumedMilli)).toEqual([-1500, 9000]);
  });

  test("under bypass amounts are counted, and balances stay", () => {
    const bucket = both();
    bucket.consume({ ...CONFIG, bypass: true }, [9000, -1500], NOW);
    expect(heldIn(bucket)).toEqual([4000, 7000]);
    expect(limitsIn(bucket).map(({ consumedMilli }) => consumedMilli)).toEqual([-1500, 9000]);
  });

  test("an amount of zero leaves the base time, and a limit that is not there is left out", () => {
    const bucket = both();
    bucket.consume(configOf(["a:10/min", "c:10/min"]), [0, 5000], NOW + 1000);
    expect(bucket).toEqual(both());
  });
});

describe("usage that is not in the snapshots yet", () => {
  test("a bucket of which everything is counted has nothing pending", () => {
    const counted = limitWith(1, { consumedMilli: 5000, countedMilli: 5000 });
    expect(bucketWith([counted]).pendingUsage()).toBeUndefined();
  });

  test("what is pending belongs to the hour of the bucket, and names the limits that changed", () => {
    const limits = [
      limitWith(1, { consumedMilli: 5000, countedMilli: 2000 }),
      limitWith(1, { name: "b", consumedMilli: 7, countedMilli: 7 }),
      limitWith(1, { name: "c", consumedMilli: 1, countedMilli: 4 }),
    ];
    expect(bucketWith(limits, { events: 2 }).pendingUsage()).toEqual({
      atMs: hourStartMs(hourOf(NOW)),
      amountsMilli: [
        ["a", 3000],
        ["c", -3],
      ],
      events: 2,
    });
  });

  test("acquires that consumed nothing more than was refunded are pending as well", () => {
    const even = limitWith(1, { consumedMilli: 5000, countedMilli: 5000 });
    const usage = bucketWith([even], { events: 1 }).pendingUsage();
    expect(usage).toMatchObject({ amountsMilli: [], events: 1 });
  });

  test("a counted bucket begins the hour with nothing pending, and holds what it held", () => {
    const limit = limitWith(1500, { consumedMilli: 5000, countedMilli: 2000 });
    const bucket = bucketWith([limit], { events: 2 });
    bucket.markCounted(hourOf(NOW) + 1);
    expect(bucket.pendingUsage()).toBeUndefined();
    expect(bucket).toMatchObject({ usageHour: hourOf(NOW) + 1, events: 0 });
    expect(limitsIn(bucket)).toEqual([{ ...limit, countedMilli: 5000 }]);
  });

  test.each([
    [0, 0],
    [3_599_999, 0],
    [3_600_000, 1],
    [-1, -1],
  ])("%d ms after 1970 lie in the hour %d", (nowMs, hour) => {
    expect(hourOf(nowMs)).toBe(hour);
    expect(hourOf(hourStartMs(hour))).toBe(hour);
  });
});

test("a bucket is full when a new one would hold as much, and idle since its last consume", () => {
  const bucket = bucketWith([limitWith(9000), limitWith(10_000, { name: "b" })]);
  expect([bucket.isFull(NOW), bucket.isFull(NOW + 6000)]).toEqual([false, true]);
  expect(bucket.idleMs(NOW + 700)).toBe(700);
});

test("a time to live is chosen by what is left of every limit", () => {
  const limit = limitWith(-4000);
  expect(bucketWith([limit]).left(NOW)).toEqual([{ rate: limit.rate, balanceMilli: -4000 }]);
});
