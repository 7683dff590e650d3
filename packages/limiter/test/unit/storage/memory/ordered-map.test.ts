import { OrderedMap } from "@zae-limiter/limiter/storage/memory/ordered-map.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const keyOf = (number: number) => String(number).padStart(6, "0");

/** Compares every answer with the one that a list of all pairs gives. */
function expectSame(map: OrderedMap<number>, model: ReadonlyMap<string, number>, key: string) {
  const pairs = [...model].sort(([one], [other]) => (one < other ? -1 : 1));
  expect(map.get(key)).toBe(model.get(key));
  expect(map.atOrAbove(key)).toEqual(pairs.find(([at]) => at >= key));
  expect(map.below(key)).toEqual(pairs.findLast(([at]) => at < key));
}

describe("a map in the order of its keys", () => {
  test("an empty map finds nothing, and its first key can be removed again", () => {
    const map = new OrderedMap<number>();
    expectSame(map, new Map(), "a");
    expect([...map.values()]).toEqual([]);
    expect(map.count("", "\uffff")).toBe(0);
    expect(map.delete("a")).toBe(false);
    map.set("a", 1);
    expect(map.delete("a")).toBe(true);
    expectSame(map, new Map(), "a");
  });

  test.each([
    ["upwards", (at: number) => at],
    ["downwards", (at: number) => 9999 - at],
    ["mixed", (at: number) => (at * 7919) % 10_000],
  ])("ten thousand keys that come %s are in order, and are removed again", (_, place) => {
    const map = new OrderedMap<number>();
    for (let at = 0; at < 10_000; at += 1) map.set(keyOf(place(at)), place(at));
    expect([...map.values()]).toEqual(Array.from({ length: 10_000 }, (_value, at) => at));
    expect(map.count(keyOf(250), keyOf(7250))).toBe(7000);
    expect(map.atOrAbove(`${keyOf(255)}0`)).toEqual([keyOf(256), 256]);
    expect(map.below(keyOf(256))).toEqual([keyOf(255), 255]);
    for (let at = 0; at < 10_000; at += 1) {
      if (at % 1000 !== 0) expect(map.delete(keyOf(at))).toBe(true);
    }
    expect([...map.values()]).toEqual([0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
    expect(map.atOrAbove(keyOf(1001))).toEqual([keyOf(2000), 2000]);
    expect(map.below(keyOf(9000))).toEqual([keyOf(8000), 8000]);
  });

  property(
    "the map answers as a list of all pairs does",
    [
      // From few numbers, so that keys are met again; enough steps for several blocks.
      fc.array(fc.tuple(fc.integer({ min: 0, max: 900 }), fc.boolean()), { maxLength: 900 }),
      fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 2, maxLength: 10 }),
    ],
    (steps, asked) => {
      const map = new OrderedMap<number>();
      const model = new Map<string, number>();
      // A block that is cut needs many keys at once.
      for (let at = 0; at < 900; at += 3) {
        map.set(keyOf(at), at);
        model.set(keyOf(at), at);
      }
      for (const [at, [number, isSet]] of steps.entries()) {
        const key = keyOf(number);
        if (isSet) {
          map.set(key, at);
          model.set(key, at);
        } else {
          expect(map.delete(key)).toBe(model.delete(key));
        }
      }
      for (const number of asked) expectSame(map, model, keyOf(number));
      const [low, high] = asked.map(keyOf).sort() as [string, string];
      const inside = [...model.keys()].filter((key) => key >= low && key < high);
      expect(map.count(low, high)).toBe(inside.length);
      expect(map.count(high, low)).toBe(0);
      expect([...map.values()]).toEqual(
        [...model.keys()].sort().map((key) => model.get(key) as number),
      );
    },
    200,
  );
});
