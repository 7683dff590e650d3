/** DynamoDB's JSON: what is encoded is decoded to the same, whatever it holds. */

import { deepStrictEqual } from "node:assert";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  decodeItem,
  decodeValue,
  encodeItem,
  encodeValue,
  storedValue,
} from "@zae-limiter/limiter/storage/attribute-value.ts";
import { type Item, OpaqueValue, type Value } from "@zae-limiter/limiter/storage/item.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const MAX = Number.MAX_SAFE_INTEGER;

/** Pieces of every kind of text, lone surrogates left out: UTF-8 has no place for them. */
const text = fc.string({ unit: "binary", maxLength: 20 });
const name = fc.oneof(
  text,
  fc.constantFrom("__proto__", "constructor", "toString", "b_gpt-3.5_tk", "S", "N", "M", ""),
);
const decimal = fc
  .double({ noNaN: true, min: -1e15, max: 1e15 })
  .filter((number) => number === 0 || Math.abs(number) >= 1e-130);
const scalar: fc.Arbitrary<Value> = fc.oneof(
  text,
  fc.integer(),
  fc.maxSafeInteger(),
  decimal,
  fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }),
  fc.bigInt({ min: BigInt(-MAX) - 3n, max: BigInt(MAX) + 3n }),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(0, -0, MAX, -MAX, 1e-7, 1.5e-100),
  fc.uniqueArray(text, { minLength: 1, maxLength: 5 }).map((members) => new Set(members)),
);
const { value } = fc.letrec<{ value: Value; map: Readonly<Record<string, Value>> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    tie("map"),
  ),
  map: mapOf(tie("value")),
}));
const item = mapOf(value).map((attributes): Item => ({ ...attributes, PK: "pk", SK: "sk" }));

/** An object of entries, since a literal cannot have a property of its own named `__proto__`. */
function mapOf(values: fc.Arbitrary<Value>): fc.Arbitrary<Readonly<Record<string, Value>>> {
  return fc
    .uniqueArray(fc.tuple(name, values), { selector: ([key]) => key, maxLength: 5 })
    .map((entries) => Object.fromEntries(entries));
}

/** The one form in which a value is read, written down without the code under test. */
function asRead(given: Value): Value {
  if (typeof given === "bigint") return given >= -MAX && given <= MAX ? Number(given) : given;
  if (typeof given === "number") return given === 0 ? 0 : given;
  if (given === null || typeof given !== "object" || given instanceof Set) return given;
  if (Array.isArray(given)) return given.map(asRead);
  return Object.fromEntries(Object.entries(given).map(([key, entry]) => [key, asRead(entry)]));
}

describe("values", () => {
  property("values are decoded to what was encoded", [value], (given) => {
    deepStrictEqual(decodeValue(encodeValue(given)), asRead(given));
  });

  property("values survive JSON, as SQLite stores it", [value], (given) => {
    deepStrictEqual(decodeValue(JSON.parse(JSON.stringify(encodeValue(given)))), asRead(given));
  });

  property("values are stored in memory as they would be read from a table", [value], (given) => {
    deepStrictEqual(storedValue(given), asRead(given));
  });

  property("values are encoded the same again", [value], (given) => {
    const encoded = encodeValue(given);
    deepStrictEqual(encodeValue(decodeValue(encoded)), encoded);
  });
});

describe("items", () => {
  property("items are decoded to what was encoded", [item], (given) => {
    deepStrictEqual(decodeItem(encodeItem(given)), asRead(given));
  });

  test("items leave out what is undefined", () => {
    const loose = { PK: "pk", SK: "sk", none: undefined } as unknown as Item;
    expect(encodeItem(loose)).toStrictEqual({ PK: { S: "pk" }, SK: { S: "sk" } });
  });
});

describe("the wire format", () => {
  test.each([
    ["text", { S: "text" }],
    [1.5, { N: "1.5" }],
    [-0, { N: "0" }],
    [2n ** 64n, { N: "18446744073709551616" }],
    [true, { BOOL: true }],
    [null, { NULL: true }],
    [new Set(["b", "a"]), { SS: ["a", "b"] }],
    [[1, ["a"]], { L: [{ N: "1" }, { L: [{ S: "a" }] }] }],
    [{ a: { b: false } }, { M: { a: { M: { b: { BOOL: false } } } } }],
  ] as [Value, object][])(
    "a value is written in the format of the wire: case %#",
    (given, wire) => {
      expect(encodeValue(given)).toStrictEqual(wire);
    },
  );

  test.each([
    // As others may write the same number.
    [{ N: "5.0" }, 5],
    [{ N: "1E2" }, 100],
    [{ N: "9007199254740993" }, 2n ** 53n + 1n],
    [{ N: "-9007199254740993" }, -(2n ** 53n) - 1n],
    // The SDK leaves the other members of its union undefined.
    [{ S: undefined, N: "7" }, 7],
  ] as [object, Value][])("a value is read from the format of the wire: case %#", (wire, read) => {
    expect(decodeValue(wire)).toStrictEqual(read);
  });

  test.each([{ B: new Uint8Array() }, { NS: ["1"] }, {}])(
    "a value of a type that we never write is kept as it came: case %#",
    (wire) => {
      const value = decodeValue(wire);
      expect(value).toBeInstanceOf(OpaqueValue);
      expect(encodeValue(value)).toStrictEqual(wire);
    },
  );
});

describe("what cannot be stored is refused", () => {
  test.each([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    2 ** 53,
    -(2 ** 53),
    1e300,
    1e-131,
    10n ** 38n,
    -(10n ** 38n),
    new Set<string>(),
  ] as Value[])("a value that cannot be stored is refused: case %#", (given) => {
    expect(() => encodeValue(given)).toThrow(ValidationError);
    expect(() => storedValue(given)).toThrow(ValidationError);
    expect(() => storedValue([{ nested: given }])).toThrow(ValidationError);
  });
});
