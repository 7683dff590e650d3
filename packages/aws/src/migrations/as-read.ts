/** Writes that hold only while an item is as it was read. */

import { type Item, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import type { Condition, Test, Write } from "@zae-limiter/limiter/storage/item-store.ts";

/** DynamoDB takes 300 operators and 4 KB in one expression. */
const TESTS_MAX = 80;

/** Returns the write that deletes the item, if it is as it was read. */
export function removal(item: Item): Write {
  return { delete: keyOf(item), condition: asRead(item) };
}

/** Passes only while the item is as it was read. Numbers first: they are what changes most. */
export function asRead(item: Item): Condition {
  const tests = Object.entries(item).flatMap(([name, value]): Test[] =>
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "bigint" ||
    typeof value === "boolean"
      ? [{ is: "=", name, value }]
      : [],
  );
  const rank = (test: Test) => ("value" in test && typeof test.value === "string" ? 1 : 0);
  return tests.sort((one, other) => rank(one) - rank(other)).slice(0, TESTS_MAX);
}
