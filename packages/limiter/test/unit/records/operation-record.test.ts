import { encodeOperation, madeBefore } from "@zae-limiter/limiter/records/operation-record.ts";
import { expect, test } from "vitest";

const AT = 1_800_000_000_000;
const OPERATION = { entityId: "key-1", resource: "gpt-4", kind: "top_up", key: "order-1" } as const;
const RESULT = { shards: 1, amounts: { tpd: 50 } };
const made = { incarnation: "first", nowMs: AT, writer: "w" };
const record = encodeOperation("ns", OPERATION, RESULT, made);

test("a record of an operation answers for three days, to the entity that it was made for", () => {
  expect(madeBefore(record, OPERATION, "first", AT)).toEqual(RESULT);
  expect(madeBefore(record, OPERATION, "first", AT + 3 * 86_400_000 - 1)).toEqual(RESULT);
  expect(madeBefore(record, OPERATION, "first", AT + 3 * 86_400_000)).toBeUndefined();
  expect(madeBefore(record, OPERATION, "second", AT)).toBeUndefined();
});
