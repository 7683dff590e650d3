import { refundWarning } from "@zae-limiter/limiter/buckets/bucket-warning.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

test("a warning names what stays consumed, per limit, and leaves out the others", () => {
  const cause = new Error("down");
  const adjustment = {
    ...{ entityId: "e", resource: "r", shard: 3 },
    ...{ config: configOf(["a:10/min", "b:10/min"]), deltasMilli: [-2000, 0] },
  };
  expect(refundWarning(adjustment, cause)).toEqual({
    ...{ kind: "restore_failed", entityId: "e", resource: "r", shard: 3 },
    ...{ amountsMilli: { a: 2000 }, cause },
  });
});
