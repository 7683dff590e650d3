import { decodeRow, encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import { PackedBucket } from "@zae-limiter/limiter/buckets/embedded/packed-bucket.ts";
import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/shared-builds.ts";
import { DamagedRecordError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

const PARENT = { cascade: true, parentId: 'te"am' };

test("a row is a short array, in the order that every version reads", () => {
  const bucket = bucketWith([limitWith(4000, { consumedMilli: 6000, countedMilli: 1000 })], {
    link: PARENT,
    version: 3,
    events: 2,
  });
  expect(encodeRow(bucket)).toBe(
    `[3,"resource",1,"te\\"am",[["a",10000,10000,60000,4000,${NOW},0,6000,1000]],500000,2]`,
  );
});

test("a total beyond the safe integers is text, and comes back exact", () => {
  const total = 2n ** 60n + 1n;
  const bucket = bucketWith([limitWith(1, { consumedMilli: total, countedMilli: 7 })]);
  expect(encodeRow(bucket)).toContain(`"${total}",7]`);
  expect(decodeRow(encodeRow(bucket), null, "e r").limits[0]).toMatchObject({
    consumedMilli: total,
    countedMilli: 7,
  });
});

test.each([
  "",
  "{}",
  "[1]",
  '[1.5,"resource",0,null,[],0,0]',
  '[1,"resource",0,null,[["a",1,1,1,0.5,0,0,0,0]],0,0]',
  '[1,"resource",0,null,[[7,1,1,1,1,0,0,0,0]],0,0]',
  '[1,"resource",0,null,[["a",1,1,1,1,0,0,"x",0]],0,0]',
])("the row %j was written by no version, and is refused with its place", (text) => {
  expect(() => decodeRow(text, null, "bucket of e for r")).toThrow(DamagedRecordError);
  expect(() => decodeRow(text, null, "bucket of e for r")).toThrow(/bucket of e for r/);
});

const limits = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom("a", "b", "rpm", "tpm"),
    tokens: fc.integer({ min: -(2 ** 52), max: 2 ** 52 }),
    remainder: fc.nat(59_999),
    consumed: fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 70n })),
  }),
  { selector: ({ name }) => name, maxLength: 4 },
);

property(
  "a row that is written and read again is the same bucket",
  [limits, fc.option(fc.string(), { nil: undefined }), fc.boolean(), fc.option(fc.nat())],
  (drawn, parentId, cascade, ttl) => {
    const bucket = bucketWith(
      drawn.map(({ name, tokens, remainder, consumed }) =>
        limitWith(tokens, {
          name,
          level: { tokensMilli: tokens, refilledAtMs: NOW, remainder },
          consumedMilli: consumed,
        }),
      ),
      { link: { cascade, parentId }, ttl: ttl ?? undefined },
    );
    const { stored, ...again } = decodeRow(encodeRow(bucket), ttl, "e r");
    expect(again).toEqual(bucket);
    expect(stored).toEqual({ ttl: ttl ?? undefined });
  },
  500,
);

property(
  "the text of a packed bucket is that of its row, to the byte",
  [limits, fc.option(fc.string(), { nil: undefined })],
  (drawn, parentId) => {
    const bucket = bucketWith(
      drawn.map(({ name, tokens }) => limitWith(tokens, { name })),
      { link: { cascade: true, parentId } },
    );
    const packed = new PackedBucket(bucket, new SharedBuilds().of(bucket, undefined));
    expect(packed.text()).toBe(encodeRow(bucket));
  },
  500,
);
