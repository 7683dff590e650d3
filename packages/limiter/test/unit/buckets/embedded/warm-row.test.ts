import { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import {
  applyWarmRow,
  warmRowOf,
  warmTerms,
} from "@zae-limiter/limiter/buckets/embedded/warm-row.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_123_456;
const LIMITS = [Limit.parse("tpm:600"), Limit.parse("rpm:60")];

function bucketOf(limits = LIMITS): Bucket {
  const config = { limits, source: "system", version: 3 } as const;
  return Bucket.full(config, { cascade: true, parentId: "org" }, NOW);
}

test("a row has its limits in the order of their names, whatever the order of the config", () => {
  const row = warmRowOf(bucketOf(), 7);
  const other = warmRowOf(bucketOf(LIMITS.toReversed()), 7);
  expect(row).toEqual(other);
  expect(row.cap).toEqual([60_000, 600_000]);
  expect(row.build).toBe("rpm 60000 60000 60000,tpm 600000 600000 60000");
  const { build } = row;
  const terms = { build, order: [1, 0], isSorted: false, hasSlots: false };
  expect(warmTerms(LIMITS)).toEqual(terms);
});

test("a row is warm until its hour of usage ends, and until its time to live is renewed", () => {
  const bucket = bucketOf();
  const hourEnd = Math.ceil(NOW / 3_600_000) * 3_600_000;
  expect(warmRowOf(bucket, 7).until).toBe(hourEnd);
  bucket.ttl = Math.floor(NOW / 1000) + 1900;
  // Half of an hour, the least time to live, must be left.
  expect(warmRowOf(bucket, 7).until).toBe((bucket.ttl - 1800) * 1000);
});

test("what the server has consumed since is part of the bucket that is read", () => {
  const bucket = bucketOf();
  const row = warmRowOf(bucket, 7);
  const [rpm, tpm] = [row.tok[0] as number, row.tok[1] as number];
  const used = [2000, 2n ** 60n];
  applyWarmRow(bucket, { ...row, tok: [rpm - 2000, tpm - 5000], used, events: 4 });
  expect(bucket.balancesOf({ limits: LIMITS }, NOW)).toEqual([tpm - 5000, rpm - 2000]);
  expect(bucket.pendingUsage()).toMatchObject({
    amountsMilli: [
      ["tpm", 2n ** 60n],
      ["rpm", 2000],
    ],
    events: 4,
  });
});

test("slots that the server has moved are those of the bucket that is read, with their peak", () => {
  const limits = [
    Limit.concurrent("workers", 5),
    Limit.parse("rpm:60"),
    Limit.concurrent("jobs", 9),
  ];
  const config = { limits, source: "system", version: 3 } as const;
  const bucket = bucketOf(limits);
  expect(warmTerms(limits).hasSlots).toBe(true);
  expect(warmRowOf(bucket, 7).held).toBe("");
  bucket.consume(config, [2000, 1000, 1000], NOW, undefined, "one.1");
  const row = warmRowOf(bucket, 7);
  expect(row.held).toBe(";one.1 3 2000;one.1 1 1000;");
  const again = bucketOf(limits);
  // The server has taken four workers in all, and given back three; the jobs are all back.
  const moved = { tok: [9000, 59_000, 4000], used: [1000, 1000, 4000], held: ";two.7 3 1000;" };
  applyWarmRow(again, { ...row, ...moved });
  expect(again.rare.slots).toEqual([{ limitName: "workers", entry: "two.7", milli: 1000 }]);
  expect(again.balancesOf({ limits }, NOW)).toEqual([4000, 59_000, 9000]);
  expect(again.pendingUsage()?.peaks).toEqual(
    new Map([
      ["workers", 4],
      ["jobs", 1],
    ]),
  );
  applyWarmRow(again, { ...row, ...moved, held: "" });
  expect(again.rare.slots).toEqual([]);
});
