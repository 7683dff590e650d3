import type { BalanceOperation } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import type { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import { operateRow, type StepItems } from "@zae-limiter/limiter/buckets/embedded/row-operation.ts";
import { encodeOperation } from "@zae-limiter/limiter/records/operation-record.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { expect, test } from "vitest";
import { bucketWith, heldIn, limitsIn, limitWith, NOW } from "./bucket-of.ts";

function operationOf(
  kind: BalanceOperation["kind"],
  additionOf: BalanceOperation["additionOf"],
): BalanceOperation {
  const named = { entityId: "e", resource: "r", kind, key: "k" };
  return {
    ...named,
    additionOf,
    recordsOf: (result, made) => [encodeOperation("ns", named, result, { ...made, writer: "w" })],
  };
}

/** Items in a map, and the rows that were written. */
function stepItems() {
  const stored = new Map<string, Item>();
  const items: StepItems = {
    read: ({ PK, SK }) => stored.get(`${PK} ${SK}`),
    update: ({ PK, SK }, { set = {} }) => {
      stored.set(`${PK} ${SK}`, { PK, SK, ...set } as Item);
    },
  };
  return { items, rows: [] as Bucket[] };
}

function operated(
  { items, rows }: ReturnType<typeof stepItems>,
  operation: BalanceOperation,
  row: Bucket | undefined,
  nowMs = NOW,
) {
  return operateRow(items, "ns", operation, row, nowMs, (bucket) => rows.push(bucket));
}

test.each([
  ["to full, and not beyond", 4000, 50_000, 6, 10_000],
  ["by what is asked for", 4000, 2000, 2, 6000],
  ["out of a debt", -4000, 5000, 5, 1000],
  ["by nothing where it is full", 10_000, 5000, 0, 10_000],
])("a top-up fills a limit %s", (_, tokens, addition, added, expected) => {
  const step = stepItems();
  const operation = operationOf("top_up", () => addition);
  const result = operated(step, operation, bucketWith([limitWith(tokens)]));
  expect(result).toEqual({ shards: 1, amounts: { a: added } });
  expect(heldIn(step.rows[0] as Bucket)).toEqual([expected]);
});

test("a top-up adds and reports what is missing now, not what was missing at the last write", () => {
  const step = stepItems();
  const operation = operationOf("top_up", () => 50_000);
  const halfMinute = NOW + 30_000;
  const result = operated(step, operation, bucketWith([limitWith(2000)]), halfMinute);
  expect(result).toEqual({ shards: 1, amounts: { a: 3 } });
  expect(heldIn(step.rows[0] as Bucket, halfMinute)).toEqual([10_000]);
});

test("limits that the operation does not name stay as they are", () => {
  const step = stepItems();
  const other = limitWith(1000, { name: "b" });
  const operation = operationOf("reset", (name) => (name === "a" ? 100_000 : undefined));
  expect(operated(step, operation, bucketWith([limitWith(4000), other])).amounts).toEqual({ a: 6 });
  expect(limitsIn(step.rows[0] as Bucket)[1]).toEqual(other);
});

test("the same key makes an operation once, and returns what came of it", () => {
  const step = stepItems();
  const operation = operationOf("top_up", () => 2000);
  const row = bucketWith([limitWith(4000)]);
  const first = operated(step, operation, row);
  expect(operated(step, operation, row, NOW + 1000)).toEqual(first);
  expect(step.rows).toHaveLength(1);
});

test("a key that was used for the other kind is refused", () => {
  const step = stepItems();
  operated(
    step,
    operationOf("top_up", () => 2000),
    bucketWith([limitWith(4000)]),
  );
  expect(() =>
    operated(
      step,
      operationOf("reset", () => 1),
      bucketWith([]),
    ),
  ).toThrow(/was used for a top_up/);
});

test("an operation on a bucket that does not exist is recorded, and writes no row", () => {
  const step = stepItems();
  const operation = operationOf("top_up", () => 2000);
  expect(operated(step, operation, undefined)).toEqual({ shards: 0, amounts: {} });
  expect(operated(step, operation, bucketWith([limitWith(1)]))).toEqual({ shards: 0, amounts: {} });
  expect(step.rows).toEqual([]);
});
