import { decodeRow, encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import type { EmbeddedBucket } from "@zae-limiter/limiter/buckets/embedded/embedded-bucket.ts";
import { PackedBucket } from "@zae-limiter/limiter/buckets/embedded/packed-bucket.ts";
import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/shared-builds.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const whole = fc.maxSafeInteger();
const rate = fc.record({ capacityMilli: whole, refillMilli: whole, periodMs: whole });
const level = fc.record({ tokensMilli: whole, refilledAtMs: whole, remainder: whole });
const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,20}$/);

function bucketWith(total: fc.Arbitrary<number | bigint>): fc.Arbitrary<EmbeddedBucket> {
  const limit = fc.record({ name, rate, level, consumedMilli: total, countedMilli: total });
  return fc.record({
    link: fc.record({
      cascade: fc.boolean(),
      parentId: fc.option(fc.string(), { nil: undefined }),
    }),
    version: whole,
    source: fc.constantFrom("entity", "entity_default", "resource", "system", "override"),
    ttl: fc.option(whole, { nil: undefined }),
    limits: fc.uniqueArray(limit, { selector: (made) => made.name, maxLength: 4 }),
    usageHour: whole,
    events: whole,
  }) as fc.Arbitrary<EmbeddedBucket>;
}

describe("the row of a bucket", () => {
  test("a row that was written is read as the same bucket, with totals beyond 2^53 too", () => {
    const total = fc.oneof(whole, fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }));
    fc.assert(
      fc.property(bucketWith(total), (bucket) => {
        const read = decodeRow(encodeRow(bucket), bucket.ttl ?? null, "here");
        expect(read).toEqual({ ...bucket, stored: { ttl: bucket.ttl } });
      }),
      { numRuns: 200 },
    );
  });

  test("the fast path and the slow path write the same text", () => {
    fc.assert(
      fc.property(bucketWith(whole), (bucket) => {
        const packed = new PackedBucket(bucket, new SharedBuilds().of(bucket, undefined));
        expect(packed.text()).toBe(encodeRow(bucket));
        expect(encodeRow(bucket)).toBe(JSON.stringify(JSON.parse(encodeRow(bucket))));
      }),
      { numRuns: 200 },
    );
  });

  test("a row that is not ours is refused with its place", () => {
    for (const text of ["", "{}", "[]", '[1,"system",0,null,[["a"]],1,1]', '["1","system"]']) {
      expect(() => decodeRow(text, null, "e1/api")).toThrow(/e1\/api/);
    }
  });
});
