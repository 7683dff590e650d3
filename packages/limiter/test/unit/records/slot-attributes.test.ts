import { decodeBucket, encodeBucket } from "@zae-limiter/limiter/records/bucket-item.ts";
import { shapeOf } from "@zae-limiter/limiter/records/bucket-shape.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import {
  decodeMark,
  encodeMark,
  entryAttribute,
  isEntry,
  marksIn,
  SLOTS_MAX,
  slotLimitIn,
} from "@zae-limiter/limiter/records/slot-attributes.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { expect, test } from "vitest";

const KEY = bucketKey("ns", "key-1", "gpt-4", 0);
const ITEM: Item = {
  ...KEY,
  entity_id: "key-1",
  resource: "gpt-4",
  rf: 1000,
  cascade: false,
  shard_count: 1,
  s_parallel_fr: 17,
  s_parallel_cp: 20,
  "s_parallel_h_p7x2k9.4": encodeMark({ sequence: 9, count: 3 }),
};

test("a count and the sequence of its writes are one number, and come out of it", () => {
  for (const sequence of [0, 1, 7, 2 ** 36]) {
    for (const count of [0, 1, SLOTS_MAX]) {
      const mark = { sequence, count };
      expect(decodeMark(encodeMark(mark))).toEqual(mark);
    }
  }
  expect(encodeMark({ sequence: 2, count: 5 })).toBe(2 * 65_536 + 5);
});

test("the name of an entry belongs to one limit, whatever that is called", () => {
  for (const limit of ["parallel", "a_h_b", "a_fr", "x_h_p.1"]) {
    const name = entryAttribute(limit, "p7x2k9.4");
    expect(isEntry(name)).toBe(true);
    expect(slotLimitIn(name)).toBeUndefined();
    const item = { ...KEY, [name]: encodeMark({ sequence: 1, count: 2 }) };
    expect([...marksIn(item, Object.keys(item)).keys()]).toEqual([limit]);
    expect(slotLimitIn(`s_${limit}_fr`)).toBe(limit);
    expect(isEntry(`s_${limit}_fr`)).toBe(false);
  }
});

test("an item with slots is read, and written as it was", () => {
  const bucket = decodeBucket(ITEM);
  const parallel = bucket?.limits.get("parallel");
  expect(parallel).toMatchObject({
    tokensMilli: 17_000,
    rate: { capacityMilli: 20_000, refillMilli: 0 },
  });
  expect([...(parallel?.marks ?? [])]).toEqual([["p7x2k9.4", { sequence: 9, count: 3 }]]);
  if (bucket === undefined) throw new Error("There is a bucket");
  expect(encodeBucket("ns", bucket)).toMatchObject(ITEM);
});

test("slots with numbers that cannot be count as absent", () => {
  for (const broken of [{ s_parallel_fr: 1.5 }, { s_parallel_cp: 0 }, { s_parallel_cp: "20" }]) {
    expect(decodeBucket({ ...ITEM, ...broken })?.limits.has("parallel")).toBe(false);
  }
});

test("items that differ by the entries of slots have one shape", () => {
  const names = Object.keys(ITEM);
  const shape = shapeOf(names);
  expect(shape.slots).toEqual(["parallel"]);
  expect(shapeOf([...names, "s_parallel_h_other.1"])).toBe(shape);
});
