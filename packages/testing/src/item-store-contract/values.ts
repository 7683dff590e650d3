/** Values: what comes back is what was stored, by put and by update. */

import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import { attribute, itemWith, type Subject } from "./subject.ts";

const SAME: readonly (readonly [what: string, value: Value])[] = [
  ["text", "text"],
  ["empty text", ""],
  ["text of all kinds", "Größe 数 \u{1f600} \u0000 \n \uffff '\"\\"],
  ["text that looks like a value", '{"S":"x"}'],
  ["zero", 0],
  ["an integer", 42],
  ["a negative integer", -42],
  ["the largest number", Number.MAX_SAFE_INTEGER],
  ["the smallest number", Number.MIN_SAFE_INTEGER],
  ["a decimal", 1.5],
  ["a decimal of many digits", 0.1234567890123456],
  ["a negative decimal", -0.1],
  ["a small decimal", 1e-7],
  ["a very small decimal", 1.5e-100],
  ["an integer at 2^53", 2n ** 53n],
  ["an integer beyond 2^53", 2n ** 53n + 1n],
  ["a negative integer beyond 2^53", -(2n ** 53n) - 1n],
  ["an integer of 38 digits", 10n ** 38n - 1n],
  ["true", true],
  ["false", false],
  ["null", null],
  ["a set", new Set(["b", "a", "Größe"])],
  ["a set of one", new Set(["a"])],
  ["a set with empty text", new Set([""])],
  ["a list", [1, "two", false, null]],
  ["an empty list", []],
  ["a list of lists", [[], [[]], [[1]]]],
  ["a map", { one: 1, two: "two" }],
  ["an empty map", {}],
  ["a map with an empty name's neighbour", { " ": 1 }],
  [
    "all of it, nested",
    { list: [{ map: { set: new Set(["a"]), big: 2n ** 60n, none: null } }, ["", {}, []]] },
  ],
];

/** Numbers that are read in another form than written: one form per value. */
const NORMALIZED: readonly (readonly [what: string, value: Value, read: Value])[] = [
  ["a small bigint", 5n, 5],
  ["a bigint at the border", BigInt(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER],
  ["minus zero", -0, 0],
  ["nested", { list: [5n, -0] }, { list: [5, 0] }],
];

export function valuesContract(subject: Subject): void {
  const { expect, test, testEach } = subject.cases;
  const expectRead = async (value: Value, read: Value): Promise<void> => {
    const item = await subject.stored(attribute("value", value));
    const expected = itemWith(item, attribute("value", read));
    expect(await subject.read(item)).toStrictEqual(expected);
    expect(await subject.store.delete(item)).toStrictEqual({ ok: true, item: expected });
    const set = await subject.store.update(item, { set: attribute("value", value) });
    expect(set).toStrictEqual({ ok: true, item: expected });
    expect(await subject.read(item)).toStrictEqual(expected);
    const absent = await subject.store.update(item, { setIfAbsent: { other: value } });
    expect(absent.item).toStrictEqual({ ...expected, other: read });
  };

  testEach(SAME)("a value is read as it was written: %s", async (_, value) => {
    await expectRead(value, value);
  });

  testEach(NORMALIZED)("%s is read in its one form", async (_, value, read) => {
    await expectRead(value, read);
  });

  test("an attribute that is undefined is not there", async () => {
    const key = subject.key();
    // The types forbid it; JavaScript and spreads of optional options do not.
    const loose = { a: 1, b: undefined } as unknown as Record<string, Value>;
    await subject.store.put(itemWith(key, loose));
    expect(await subject.read(key)).toStrictEqual({ ...key, a: 1 });
    const { item } = await subject.store.update(key, { setIfAbsent: { b: 2 } });
    expect(item).toStrictEqual({ ...key, a: 1, b: 2 });
  });

  test("an item near the size limit of DynamoDB is stored", async () => {
    const item = await subject.stored({ text: "x".repeat(390_000) });
    expect(await subject.read(item)).toStrictEqual(item);
  });

  test("a deeply nested value is stored", async () => {
    let value: Value = "bottom";
    for (let depth = 0; depth < 25; depth += 1) value = depth % 2 === 0 ? [value] : { in: value };
    const item = await subject.stored({ value });
    expect(await subject.read(item)).toStrictEqual(item);
  });

  test("the store keeps what it was given, not the object", async () => {
    const key = subject.key();
    const list = [1];
    const item: Record<string, Value> = { ...key, list, size: 1 };
    await subject.store.put(item as typeof key & Record<string, Value>);
    list.push(2);
    item.size = 2;
    expect(await subject.read(key)).toStrictEqual({ ...key, list: [1], size: 1 });
  });
}
