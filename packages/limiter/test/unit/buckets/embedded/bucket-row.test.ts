import { decodeRow, encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import { DamagedRecordError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketWith, limitsIn, limitWith, NOW } from "./bucket-of.ts";

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
  expect(limitsIn(decodeRow(encodeRow(bucket), null, "e r"))).toEqual([
    limitWith(1, { consumedMilli: total, countedMilli: 7 }),
  ]);
});

test.each([
  "",
  "{}",
  "[]",
  "[1]",
  '["1","system"]',
  '[1.5,"resource",0,null,[],0,0]',
  '[1,"system",0,null,[["a"]],1,1]',
  '[1,"resource",0,null,[["a",1,1,1,0.5,0,0,0,0]],0,0]',
  '[1,"resource",0,null,[["a",1,1,1,1,0,0,0]],0,0]',
  '[1,"resource",0,null,[[7,1,1,1,1,0,0,0,0]],0,0]',
  '[1,"resource",0,null,[["a",1,1,1,1,0,0,"x",0]],0,0]',
])("the row %j was written by no version, and is refused with its place", (text) => {
  expect(() => decodeRow(text, null, "bucket of e for r")).toThrow(DamagedRecordError);
  expect(() => decodeRow(text, null, "bucket of e for r")).toThrow(/bucket of e for r/);
});

const whole = fc.maxSafeInteger();
/** Without a refill a limit has periods, and a rule. */
const positive = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const total = fc.oneof(whole, fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }));
const limits = fc.uniqueArray(
  fc.record({
    name: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,20}$/),
    rate: fc.record({ capacityMilli: whole, refillMilli: positive, periodMs: whole }),
    level: fc.record({ tokensMilli: whole, refilledAtMs: whole, remainder: whole }),
    consumedMilli: total,
    countedMilli: total,
  }),
  { selector: ({ name }) => name, maxLength: 4 },
);
const facts = fc.record({
  link: fc.record({ cascade: fc.boolean(), parentId: fc.option(fc.string(), { nil: undefined }) }),
  version: whole,
  source: fc.constantFrom("entity", "entity_default", "resource", "system", "override"),
  ttl: fc.option(whole, { nil: undefined }),
  usageHour: whole,
  events: whole,
});

property(
  "a row that is written and read again is the same bucket, and its text is that of JSON",
  [limits, facts],
  (drawn, more) => {
    const bucket = bucketWith(drawn, more);
    const text = encodeRow(bucket);
    expect(decodeRow(text, bucket.ttl ?? null, "e r")).toEqual(bucket);
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
  },
  500,
);
