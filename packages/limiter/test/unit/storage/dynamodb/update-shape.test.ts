/** Updates whose expressions were written before: the same as if they were built from scratch. */

import { encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import { Expressions } from "@zae-limiter/limiter/storage/dynamodb/expression.ts";
import { UpdateShapes } from "@zae-limiter/limiter/storage/dynamodb/update-shape.ts";
import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import type { Change, Condition } from "@zae-limiter/limiter/storage/item-store.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";

const KEY = { PK: "p", SK: "s" };
const FIELDS = { ReturnValues: "ALL_NEW" } as const;

/** As a request would be made without any memory. */
function written(key: typeof KEY, change: Change, condition: Condition): unknown {
  const expressions = new Expressions();
  return {
    TableName: "t",
    Key: encodeItem(key),
    ...expressions.update(change),
    ...expressions.condition(condition),
    ...expressions.attributes(),
    ...FIELDS,
  };
}

/** Few names, so that shapes come again; some look like parts of a shape. */
const name = fc.constantFrom("a", "b", "aa", "S1:a", "1:a", ":a", "__proto__", "ü", "a:", "=");
/** The number 1 is part of a shape, so it comes often. */
const number = fc.oneof(
  fc.constant(1),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
);
const value: fc.Arbitrary<Value> = fc.oneof(
  number,
  fc.string({ unit: "binary" }),
  fc.boolean(),
  fc.constant(null),
  fc.integer().map((eighths) => eighths / 8),
  fc.array(fc.string(), { minLength: 1, maxLength: 3 }).map((members) => new Set(members)),
);
const members = fc.array(fc.string(), { maxLength: 3 });
const comparison = fc.record({
  is: fc.constantFrom("=", "<", "<=", ">", ">=" as const),
  name,
  value: fc.oneof(number, fc.string(), fc.boolean()),
  orAbsent: fc.boolean(),
});
const presence = fc.record({ is: fc.constantFrom("exists", "absent" as const), name });

/** An attribute changes in one way at a time. */
const change = fc
  .uniqueArray(fc.tuple(name, fc.nat(5), value, number, members), {
    selector: ([attribute]) => attribute,
    maxLength: 5,
  })
  .map((parts): Change => {
    const of = (kind: number) => parts.filter((part) => part[1] === kind);
    return {
      set: Object.fromEntries(of(0).map(([attribute, , set]) => [attribute, set])),
      setIfAbsent: Object.fromEntries(of(1).map(([attribute, , set]) => [attribute, set])),
      add: Object.fromEntries(of(2).map(([attribute, , , amount]) => [attribute, amount])),
      remove: of(3).map(([attribute]) => attribute),
      addToSet: Object.fromEntries(of(4).map(([attribute, , , , set]) => [attribute, set])),
      deleteFromSet: Object.fromEntries(of(5).map(([attribute, , , , set]) => [attribute, set])),
    };
  });
const condition = fc.array(fc.oneof(comparison, presence), { maxLength: 4 }) as fc.Arbitrary<
  Condition & unknown[]
>;

describe("an update of a shape", () => {
  const shapes = new UpdateShapes("t", FIELDS);

  property(
    "an update of a shape says the same as one that is built from scratch, in both forms",
    [fc.string({ minLength: 1 }).map((text) => text.replaceAll("\0", "x")), change, condition],
    (text, changed, tests) => {
      const key = { PK: text, SK: "s" };
      const expected = written(key, changed, tests);
      const prepared = shapes.prepare(key, changed, tests);
      expect(JSON.parse(prepared.text())).toStrictEqual(JSON.parse(JSON.stringify(expected)));
      expect(prepared.input()).toStrictEqual(expected);
    },
  );

  it("an update of a shape is refused for what is wrong with it, however often it was right", () => {
    const bounds: Condition = [{ is: "<", name: "n", value: 1 }];
    shapes.prepare(KEY, { add: { n: 1 } }, bounds);
    expect(() => shapes.prepare({ PK: "", SK: "s" }, { add: { n: 1 } }, bounds)).toThrow("PK");
    expect(() => shapes.prepare(KEY, { add: { n: Number.NaN } }, bounds).text()).toThrow("finite");
    expect(() => shapes.prepare(KEY, { add: { n: 2 ** 60 } }, bounds).text()).toThrow("bigint");
    shapes.prepare(KEY, { set: { GSI1PK: "a" } });
    expect(() => shapes.prepare(KEY, { set: { GSI1PK: "" } })).toThrow("GSI1PK");
    expect(() => shapes.prepare(KEY, { set: { a: 1 }, remove: ["a"] })).toThrow("two ways");
    expect(() => shapes.prepare(KEY, { set: { PK: "a" } })).toThrow("part of the key");
  });
});

test("a table with more shapes than are kept works on", () => {
  const shapes = new UpdateShapes("t", FIELDS);
  for (let at = 0; at < 2500; at += 1) {
    const { text } = { text: shapes.prepare(KEY, { add: { [`n${at}`]: at } }).text() };
    expect(JSON.parse(text)).toMatchObject({ ExpressionAttributeNames: { "#n0": `n${at}` } });
  }
});
