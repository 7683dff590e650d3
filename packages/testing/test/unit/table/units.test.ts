import { type AttributeValue, encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import { judge } from "@zae-limiter/limiter/storage/dynamodb/errors.ts";
import { dollarsOf, ON_DEMAND_PRICES } from "@zae-limiter/limiter/storage/dynamodb/prices.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import { failureOf, unavailable } from "@zae-limiter/testing/table/failure.ts";
import { indexWrites, readUnits, sizeOf, writeUnits } from "@zae-limiter/testing/table/units.ts";
import { noUsage } from "@zae-limiter/testing/table/usage.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const KEY = { PK: "ns/BUCKET#e#api#0", SK: "#STATE" };

const item = (attributes: Record<string, Value> = {}): Item => ({ ...KEY, ...attributes });

/** Returns the size of an item in the form in which it is sent. */
const sentSize = (attributes: Readonly<Record<string, AttributeValue>>): number =>
  Object.entries(attributes).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + sentValueSize(value),
    0,
  );

function sentValueSize(value: AttributeValue): number {
  if ("S" in value) return Buffer.byteLength(value.S);
  if ("N" in value) {
    const digits = value.N.replace(/[^0-9]/g, "").replace(/^0+|0+$/g, "");
    return Math.ceil(digits.length / 2) + (value.N.startsWith("-") ? 2 : 1);
  }
  if ("SS" in value) return value.SS.reduce((sum, member) => sum + Buffer.byteLength(member), 0);
  if ("L" in value) return value.L.reduce((sum, member) => sum + 1 + sentValueSize(member), 3);
  return "M" in value ? 3 + Object.keys(value.M).length + sentSize(value.M) : 1;
}

describe("sizes and units", () => {
  test("sizes are those of the form in which items are sent", () => {
    const value: fc.Arbitrary<Value> = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.maxSafeInteger(),
      fc.boolean(),
      fc.constant(null),
      fc.bigInt({ min: 2n ** 60n, max: 2n ** 80n }),
      fc.array(fc.oneof(fc.string(), fc.integer())),
      fc.dictionary(fc.string({ minLength: 1 }), fc.integer(), { noNullPrototype: true }),
      fc.uniqueArray(fc.string(), { minLength: 1 }).map((members) => new Set(members)),
    );
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ minLength: 1 }), value, { noNullPrototype: true }),
        (attributes) => {
          const { PK: _, SK: __, ...others } = attributes as Record<string, Value>;
          expect(sizeOf(item(others))).toBe(sentSize(encodeItem(item(others))));
        },
      ),
      { seed: 4, numRuns: 300 },
    );
  });

  test("a write costs one unit per started kilobyte of the larger image", () => {
    const large = item({ text: "x".repeat(1500) });
    expect(writeUnits(undefined, item())).toBe(1);
    expect(writeUnits(large, item())).toBe(2);
    expect(writeUnits(item(), large)).toBe(2);
    expect(writeUnits(undefined, undefined)).toBe(1);
  });

  test("a read costs half when it need not be the newest", () => {
    expect([readUnits(0, true), readUnits(0, false)]).toEqual([1, 0.5]);
    expect([readUnits(4097, true), readUnits(4097, false)]).toEqual([2, 1]);
  });

  test("an index costs only when its entry changes", () => {
    const indexed = { GSI2PK: "ns/RESOURCE#api", GSI2SK: "BUCKET#e#0" };
    const units = (before: Item | undefined, after: Item | undefined) =>
      indexWrites(before, after).map(({ index, units: cost }) => `${index.name} ${cost}`);
    expect(units(undefined, item(indexed))).toEqual(["GSI2 1"]);
    expect(units(item(indexed), item({ ...indexed, b_rpm_tk: 5 }))).toEqual([]);
    expect(units(item(indexed), item({ ...indexed, GSI2SK: "BUCKET#e#1" }))).toEqual([
      "GSI2 1",
      "GSI2 1",
    ]);
    expect(units(item(indexed), undefined)).toEqual(["GSI2 1"]);
    // This one copies everything.
    const child = { GSI1PK: "ns/PARENT#p", GSI1SK: "CHILD#c" };
    expect(units(item(child), item({ ...child, name: "new" }))).toEqual(["GSI1 1"]);
  });

  test("a million writes cost what the price list says", () => {
    const usage = { ...noUsage(), writeUnits: 1_000_000, readUnits: 2_000_000 };
    expect(dollarsOf(usage, ON_DEMAND_PRICES)).toBeCloseTo(0.625 + 0.25, 10);
  });
});

describe("failures", () => {
  const kinds = [
    "hotWrite",
    "hotRead",
    "hotIndex",
    "throttledTable",
    "conflict",
    "cancelled",
    "cancelledHot",
    "inProgress",
    "server",
    "refused",
  ] as const;
  for (const kind of kinds) {
    test(`${kind}: the adapter for DynamoDB judges the same error in the same way`, () => {
      const failure = failureOf(kind);
      const progress = kind === "refused" ? "connecting" : "sent";
      const verdict = judge(failure.cause, "UpdateItem", "simulated", progress);
      expect(verdict).toMatchObject({
        kind: "failed",
        reason: failure.reason,
        nothingWritten: failure.nothingWritten,
        keyRange: failure.keyRange,
      });
    });
  }

  test("only a hot key of the table is one that another shard helps against", () => {
    const hot = kinds.filter((kind) => unavailable(failureOf(kind), "UpdateItem", true).keyRange);
    expect(hot).toEqual(["hotWrite", "hotRead"]);
  });
});
