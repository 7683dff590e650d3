/** Conditions: each test on its own, what absence and other types do, and several together. */

import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import {
  type Comparable,
  type Condition,
  ITEM_ABSENT,
  ITEM_EXISTS,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { attribute, type Subject, show } from "./subject.ts";

const OPERATORS = ["=", "<", "<=", ">", ">="] as const;
type Operator = (typeof OPERATORS)[number];
/** Which operators pass when the stored value is below, at or above the given one. */
const PASSING: Readonly<Record<"below" | "equal" | "above", readonly Operator[]>> = {
  below: ["<", "<="],
  equal: ["=", "<=", ">="],
  above: [">", ">="],
};

const TWO_53 = 2n ** 53n;

/** The stored value, the given one, and how the stored one compares. */
const ORDERED: readonly (readonly [Comparable, Comparable, keyof typeof PASSING])[] = [
  [5, 6, "below"],
  [5, 5, "equal"],
  [6, 5, "above"],
  [-1, 0, "below"],
  [-1, -2, "above"],
  [9, 10, "below"],
  [1.25, 1.5, "below"],
  [1.5, 1.5, "equal"],
  [1.5, 1, "above"],
  [7, 7n, "equal"],
  [7n, 7, "equal"],
  // These would be one number for a double.
  [TWO_53 + 1n, TWO_53 + 2n, "below"],
  [TWO_53 + 1n, TWO_53 + 1n, "equal"],
  [TWO_53 + 1n, TWO_53, "above"],
  [TWO_53 + 1n, 5, "above"],
  [-TWO_53 - 1n, 5, "below"],
  ["a", "b", "below"],
  ["a", "a", "equal"],
  ["b", "a", "above"],
  ["a", "aa", "below"],
  ["10", "9", "below"],
  ["Z", "a", "below"],
  ["", "a", "below"],
  ["", "", "equal"],
  // Text is compared by its UTF-8 bytes; as UTF-16 the emoji would come first.
  ["\uff5e", "\u{1f600}", "below"],
  ["\u{1f600}", "\uff5e", "above"],
];

const OTHER_TYPES: readonly (readonly [stored: Value, given: Comparable])[] = [
  [5, "5"],
  ["5", 5],
  ["5", 5n],
  [true, "true"],
  [1, true],
  ["true", true],
  [null, "null"],
  [null, 0],
  [new Set(["a"]), "a"],
  [["a"], "a"],
  [{ a: 1 }, "a"],
];

export function conditionsContract(subject: Subject): void {
  const { expect, test, testEach } = subject.cases;
  /** Whether an update of an item with this attribute goes through. */
  const passes = async (stored: Value | undefined, condition: Condition): Promise<boolean> => {
    const item = await subject.stored(stored === undefined ? {} : attribute("seen", stored));
    return (await subject.store.update(item, { add: { hits: 1 } }, condition)).ok;
  };

  for (const [stored, given, where] of ORDERED) {
    test(`${show(stored)} is ${where} ${show(given)}`, async () => {
      const passing: Operator[] = [];
      for (const is of OPERATORS) {
        if (await passes(stored, [{ is, name: "seen", value: given }])) passing.push(is);
      }
      expect(passing).toStrictEqual(PASSING[where]);
    });
  }

  test("booleans are equal or not", async () => {
    const is = "=";
    expect(await passes(true, [{ is, name: "seen", value: true }])).toBe(true);
    expect(await passes(false, [{ is, name: "seen", value: false }])).toBe(true);
    expect(await passes(true, [{ is, name: "seen", value: false }])).toBe(false);
    expect(await passes(false, [{ is, name: "seen", value: true }])).toBe(false);
  });

  test("another type is not absent", async () => {
    for (const [stored, value] of OTHER_TYPES) {
      const test = { is: "=", name: "seen", value, orAbsent: true } as const;
      const what = `${show(stored)} = ${show(value)}`;
      expect([what, await passes(stored, [test])]).toStrictEqual([what, false]);
    }
  });

  testEach(OPERATORS)("another type fails: %s", async (is) => {
    for (const [stored, value] of OTHER_TYPES) {
      // Only numbers and text have an order.
      if (typeof value === "boolean" && is !== "=") continue;
      const what = `${show(stored)} ${is} ${show(value)}`;
      const passed = await passes(stored, [{ is, name: "seen", value }]);
      expect([what, passed]).toStrictEqual([what, false]);
    }
  });

  testEach(OPERATORS)(
    "an absent attribute fails, or passes where that is wanted: %s",
    async (is) => {
      for (const value of [0, ""] as const) {
        expect(await passes(undefined, [{ is, name: "seen", value }])).toBe(false);
        expect(await passes(undefined, [{ is, name: "seen", value, orAbsent: false }])).toBe(false);
        expect(await passes(undefined, [{ is, name: "seen", value, orAbsent: true }])).toBe(true);
      }
    },
  );

  testEach(OPERATORS)("an item that is not there has no attributes: %s", async (is) => {
    const { store } = subject;
    const compared = { is, name: "seen", value: 0 } as const;
    const change = { set: { seen: 1 } };
    expect((await store.update(subject.key(), change, [compared])).ok).toBe(false);
    const orAbsent = { ...compared, orAbsent: true };
    expect((await store.update(subject.key(), change, [orAbsent])).ok).toBe(true);
  });

  test("a test with `orAbsent` still compares what is there", async () => {
    const test = (value: number) => ({ is: ">", name: "seen", value, orAbsent: true }) as const;
    expect(await passes(5, [test(4)])).toBe(true);
    expect(await passes(5, [test(5)])).toBe(false);
  });

  testEach([
    ["a number", 0],
    ["text", "a"],
    ["no text", ""],
    ["false", false],
    ["null", null],
    ["a set", new Set(["a"])],
    ["an empty list", []],
    ["an empty map", {}],
  ] as [string, Value][])("an attribute with %s exists", async (_, stored) => {
    expect(await passes(stored, [{ is: "exists", name: "seen" }])).toBe(true);
    expect(await passes(stored, [{ is: "absent", name: "seen" }])).toBe(false);
  });

  test("what is not there is absent", async () => {
    expect(await passes(undefined, [{ is: "exists", name: "seen" }])).toBe(false);
    expect(await passes(undefined, [{ is: "absent", name: "seen" }])).toBe(true);
  });

  test("the item is there, or it is not", async () => {
    const { store } = subject;
    expect(await passes(1, [ITEM_EXISTS])).toBe(true);
    expect(await passes(1, [ITEM_ABSENT])).toBe(false);
    expect((await store.update(subject.key(), {}, [ITEM_EXISTS])).ok).toBe(false);
    expect((await store.update(subject.key(), {}, [ITEM_ABSENT])).ok).toBe(true);
  });

  test("the key can be compared", async () => {
    const item = await subject.stored();
    const update = (condition: Condition) => subject.store.update(item, {}, condition);
    expect((await update([{ is: "=", name: "SK", value: item.SK }])).ok).toBe(true);
    expect((await update([{ is: "=", name: "SK", value: "other" }])).ok).toBe(false);
  });

  test("no tests always pass", async () => {
    expect(await passes(1, [])).toBe(true);
    const item = { ...subject.key(), size: 1 };
    expect(await subject.store.put(item, [])).toStrictEqual({ ok: true, item: undefined });
    expect(await subject.store.delete(item, [])).toStrictEqual({ ok: true, item });
  });

  test("all tests must pass", async () => {
    const yes = { is: ">=", name: "seen", value: 5 } as const;
    const no = { is: "<", name: "seen", value: 5 } as const;
    expect(await passes(5, [yes, { is: "<=", name: "seen", value: 5 }, ITEM_EXISTS])).toBe(true);
    expect(await passes(5, [yes, no])).toBe(false);
    expect(await passes(5, [no, yes])).toBe(false);
    expect(await passes(5, [yes, yes, yes, { is: "exists", name: "other" }])).toBe(false);
    expect(await passes(5, [ITEM_ABSENT, yes])).toBe(false);
  });

  test("a test with `orAbsent` is not an or with its neighbours", async () => {
    const orAbsent = { is: "=", name: "other", value: 1, orAbsent: true } as const;
    const no = { is: "<", name: "seen", value: 5 } as const;
    expect(await passes(5, [orAbsent, no])).toBe(false);
    expect(await passes(5, [no, orAbsent])).toBe(false);
    expect(await passes(4, [orAbsent, no, orAbsent])).toBe(true);
  });

  test("conditions see the item before the change", async () => {
    const item = await subject.stored({ tokens: 5 });
    const take = () =>
      subject.store.update(item, { add: { tokens: -3 } }, [{ is: ">=", name: "tokens", value: 3 }]);
    expect(await take()).toStrictEqual({ ok: true, item: { ...item, tokens: 2 } });
    expect(await take()).toStrictEqual({ ok: false, item: { ...item, tokens: 2 } });
  });
}
