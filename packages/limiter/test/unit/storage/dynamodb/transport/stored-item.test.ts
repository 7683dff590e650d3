/** Answers that are read in one pass say what `JSON.parse` finds in them. */

import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import {
  ItemBlanks,
  storedAnswerIn,
} from "@zae-limiter/limiter/storage/dynamodb/transport/stored-item.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

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
  const read = storedAnswerIn(text);
  if (read === undefined) return;
  expect(read.Attributes.item).toEqual(decodeItem(JSON.parse(text).Attributes));
});

/** Names that many items share, in one of few orders, so that an order is expected and not met. */
const similar = fc
  .subarray(["PK", "rf", "b_rpm_tk", "b_rpm_tc", "b_rpm"], { minLength: 1 })
  .chain((names) => fc.tuple(fc.constant(names), fc.boolean(), fc.maxSafeInteger()))
  .map(([names, isReversed, value]) => {
    const fields = (isReversed ? [...names].reverse() : names).map((name) => [name, { N: value }]);
    return JSON.stringify({ Attributes: Object.fromEntries(fields) }).replace(/:(-?\d+)/g, ':"$1"');
  });

property(
  "an answer is read right whatever the answers before it have listed",
  [fc.array(fc.tuple(similar, fc.integer({ min: 1, max: 4 })), { maxLength: 20 })],
  (answers) => {
    for (const [text, times] of answers) {
      for (let time = 0; time < times; time += 1) {
        const read = storedAnswerIn(text);
        if (read === undefined) continue;
        expect(read.Attributes.item).toStrictEqual(decodeItem(JSON.parse(text).Attributes));
      }
    }
  },
);

test("an answer in the order of those before it is read, and so is one that breaks it", () => {
  const itemOf = (names: readonly string[]) => {
    const Attributes = Object.fromEntries(names.map((name, at) => [name, { N: String(at) }]));
    return storedAnswerIn(JSON.stringify({ Attributes }))?.Attributes.item;
  };
  for (let time = 0; time < 3; time += 1) itemOf(["one", "two", "three"]);
  expect(itemOf(["one", "two", "three"])).toEqual({ one: 0, two: 1, three: 2 });
  expect(itemOf(["one", "two"])).toEqual({ one: 0, two: 1 });
  expect(itemOf(["one", "two", "three", "four"])).toEqual({ one: 0, two: 1, three: 2, four: 3 });
  expect(itemOf(["one", "twofold", "three"])).toEqual({ one: 0, twofold: 1, three: 2 });
  expect(itemOf(["three", "two", "one"])).toEqual({ three: 0, two: 1, one: 2 });
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
  const read = storedAnswerIn(JSON.stringify({ Attributes }));
  expect(read?.Attributes.item).toEqual(decodeItem(Attributes));
});

test("the price behind an item is read with it", () => {
  const Attributes = { a: { N: "1" }, b: { S: "x" } };
  const ConsumedCapacity = { TableName: "t", CapacityUnits: 2, Table: { CapacityUnits: 1 } };
  const read = storedAnswerIn(JSON.stringify({ Attributes, ConsumedCapacity }));
  expect(read?.Attributes.item).toEqual({ a: 1, b: "x" });
  expect(read?.ConsumedCapacity).toEqual(ConsumedCapacity);
});

test.each([
  ['{"Attributes":{}}', "no attribute"],
  ['{"Attributes":{"a":{"N":"1"}},"ItemCollectionMetrics":{}}', "more than an item"],
  ['{"Attributes":{"a":{"N":"1"}},"ConsumedCapacity":{},"b":1}', "more than a price"],
  ['{"Attributes":{"a":{"N":"1"}},"ConsumedCapacity":{}', "a price that was cut"],
  ['{"Item":{"a":{"N":"1"}}}', "another answer"],
  ['{"Attributes":{"a":{"N":"1234567890123456"}}}', "a long number"],
  ['{"Attributes":{"a":{"N":"1.5"}}}', "a decimal"],
  ['{"Attributes":{"a":{"N":"-"}}}', "no digit"],
  ['{"Attributes":{"a":{"S":"\\""}}}', "an escape"],
  ['{"Attributes":{"a":{"S":"1","N":"1"}}}', "two types"],
  ['{"Attributes":{"__proto__":{"S":"1"}}}', "a name that means something"],
])("%s is left to others: %s", (text) => {
  expect(storedAnswerIn(text)).toBeUndefined();
});

test("nothing that was cut or is no JSON is read", () => {
  const text = '{"Attributes":{"a":{"S":"x"},"b":{"N":"12"},"c":{"BOOL":true}}}';
  expect(storedAnswerIn(text)).toBeDefined();
  for (let end = 0; end < text.length; end += 1) {
    expect(storedAnswerIn(text.slice(0, end))).toBeUndefined();
    const damaged = `${text.slice(0, end)}~${text.slice(end + 1)}`;
    const read = storedAnswerIn(damaged);
    if (read === undefined) continue;
    expect(read.Attributes.item).toEqual(decodeItem(JSON.parse(damaged).Attributes));
  }
});

describe("blanks", () => {
  const filled = (blanks: ItemBlanks, item: Record<string, number>) =>
    expect(blanks.fill(Object.keys(item), Object.values(item))).toStrictEqual(item);
  const named = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`attribute-${at}`, at]));

  test("blanks make an item of its attributes in any order, whatever others have", () => {
    const blanks = new ItemBlanks();
    filled(blanks, { a: 1, b: 2 });
    filled(blanks, { b: 3, a: 4 });
    filled(blanks, { c: 5 });
    filled(blanks, { a: 6, c: 7 });
    filled(blanks, { a: 8 });
  });

  test("blanks take no two sets for the same, up to the last name they know", () => {
    const blanks = new ItemBlanks();
    const whole = named(60);
    filled(blanks, whole);
    for (const name of Object.keys(whole)) {
      const { [name]: _, ...rest } = whole;
      filled(blanks, rest);
    }
  });

  test("blanks make items of other names as well, and learn them in time", () => {
    const blanks = new ItemBlanks();
    filled(blanks, named(60));
    for (let item = 0; item < 1100; item += 1) filled(blanks, { x: item, "attribute-0": 1 });
    filled(blanks, named(61));
  });

  test("blanks stay few, however many sets there are", () => {
    const blanks = new ItemBlanks();
    for (let set = 1; set < 1024; set += 1) {
      const bits = Array.from({ length: 10 }, (_, bit) => bit).filter((bit) => set & (1 << bit));
      filled(blanks, Object.fromEntries(bits.map((bit) => [`n${bit}`, set])));
    }
  });
});
