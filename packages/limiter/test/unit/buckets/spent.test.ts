import { spentOf } from "@zae-limiter/limiter/buckets/spent.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

test("only quotas and sessions without a whole token are spent", () => {
  const limits = ["rpm:10", "a:10/day UTC", "b:10/day UTC", "s:10/session:5hour"].map((text) =>
    Limit.parse(text),
  );
  const none = Number.POSITIVE_INFINITY;
  expect(spentOf({ limits }, [0, 999, 1000, -5000])).toEqual([none, 999, none, -5000]);
});
