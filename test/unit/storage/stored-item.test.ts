/** Answers that are read in one pass say what `JSON.parse` finds in them. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeItem } from "../../../src/storage/attribute-value.ts";
import { storedItemIn } from "../../../src/storage/dynamodb/stored-item.ts";
import { property } from "../property.ts";

const attribute = fc.oneof(
  fc.record({ S: fc.string({ unit: "binary" }) }),
  fc.record({ N: fc.maxSafeInteger().map(String) }),
  fc.record({ N: fc.bigInt().map(String) }),
  fc.record({ N: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) }),
  fc.record({ BOOL: fc.boolean() }),
  fc.record({ SS: fc.array(fc.string(), { minLength: 1 }) }),
  fc.record({ NULL: fc.constant(true) }),
);
const answer = fc
  .dictionary(fc.oneof(fc.string(), fc.constantFrom("PK", "b_rpm_tk", "__proto__")), attribute)
  .map((Attributes) => JSON.stringify({ Attributes }));

property("an answer that is read is read right", [answer], (text) => {
  const read = storedItemIn(text);
  if (read === undefined) return;
  expect(read.item).toEqual(decodeItem(JSON.parse(text).Attributes));
});

test("what buckets are made of is read", () => {
  const Attributes = {
    PK: { S: "ns/BUCKET#schlüssel#api#0" },
    b_rpm_tk: { N: "-999999999999999" },
    rf: { N: "1794801152651" },
    zero: { N: "0" },
    cascade: { BOOL: false },
    on: { BOOL: true },
    empty: { S: "" },
  };
  const read = storedItemIn(JSON.stringify({ Attributes }));
  expect(read?.item).toEqual(decodeItem(Attributes));
});

test("a name that means something elsewhere is a name", () => {
  const read = storedItemIn('{"Attributes":{"__proto__":{"S":"1"},"constructor":{"N":"2"}}}');
  expect(Object.entries(read?.item ?? {})).toEqual([
    ["__proto__", "1"],
    ["constructor", 2],
  ]);
});

test.each([
  ['{"Attributes":{}}', "no attribute"],
  ['{"Attributes":{"a":{"N":"1"}},"ConsumedCapacity":{}}', "more than an item"],
  ['{"Item":{"a":{"N":"1"}}}', "another answer"],
  ['{"Attributes":{"a":{"N":"1234567890123456"}}}', "a long number"],
  ['{"Attributes":{"a":{"N":"1.5"}}}', "a decimal"],
  ['{"Attributes":{"a":{"N":"-"}}}', "no digit"],
  ['{"Attributes":{"a":{"S":"\\""}}}', "an escape"],
  ['{"Attributes":{"a":{"S":"1","N":"1"}}}', "two types"],
])("%s is left to others: %s", (text) => {
  expect(storedItemIn(text)).toBeUndefined();
});

test("nothing that was cut or is no JSON is read", () => {
  const text = '{"Attributes":{"a":{"S":"x"},"b":{"N":"12"},"c":{"BOOL":true}}}';
  expect(storedItemIn(text)).toBeDefined();
  for (let end = 0; end < text.length; end += 1) {
    expect(storedItemIn(text.slice(0, end))).toBeUndefined();
    const damaged = `${text.slice(0, end)}~${text.slice(end + 1)}`;
    const read = storedItemIn(damaged);
    if (read !== undefined) expect(read.item).toEqual(decodeItem(JSON.parse(damaged).Attributes));
  }
});
