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
  expect(warmTerms(LIMITS)).toEqual({ build: row.build, order: [1, 0], isSorted: false });
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
