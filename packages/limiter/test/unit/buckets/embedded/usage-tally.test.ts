import { hourOf, hourStartMs } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { asCounted, pendingUsage } from "@zae-limiter/limiter/buckets/embedded/usage-tally.ts";
import { expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

const BEYOND = 2n ** 60n;

test("a bucket of which everything is counted has nothing pending", () => {
  const counted = limitWith(1, { consumedMilli: 5000, countedMilli: 5000 });
  expect(pendingUsage(bucketWith([counted]))).toBeUndefined();
});

test("what is pending belongs to the hour of the bucket, and names the limits that changed", () => {
  const bucket = bucketWith(
    [
      limitWith(1, { consumedMilli: 5000, countedMilli: 2000 }),
      limitWith(1, { name: "b", consumedMilli: 7, countedMilli: 7 }),
      limitWith(1, { name: "c", consumedMilli: 1, countedMilli: 4 }),
    ],
    { events: 2 },
  );
  expect(pendingUsage(bucket)).toEqual({
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
  expect(pendingUsage(bucketWith([even], { events: 1 }))).toMatchObject({
    amountsMilli: [],
    events: 1,
  });
});

test("differences of totals beyond the safe integers are exact", () => {
  const wide = limitWith(1, { consumedMilli: BEYOND + 1n, countedMilli: 3 });
  const [, milli] = pendingUsage(bucketWith([wide]))?.amountsMilli[0] ?? [];
  expect(milli).toBe(BEYOND - 2n);
});

test("a counted bucket begins the hour with nothing pending, and holds what it held", () => {
  const bucket = bucketWith([limitWith(1500, { consumedMilli: 5000, countedMilli: 2000 })], {
    events: 2,
  });
  const counted = asCounted(bucket, hourOf(NOW) + 1);
  expect(pendingUsage(counted)).toBeUndefined();
  expect(counted).toMatchObject({ usageHour: hourOf(NOW) + 1, events: 0 });
  expect(counted.limits[0]).toMatchObject({
    level: { tokensMilli: 1500 },
    consumedMilli: 5000,
    countedMilli: 5000,
  });
});
