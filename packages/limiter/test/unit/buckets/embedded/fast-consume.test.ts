import { FastConsume } from "@zae-limiter/limiter/buckets/embedded/fast-consume.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

test("a fast consume has the legs, the outcomes and the balances of the common form", () => {
  const config = configOf(["a:10/min"]);
  const link = { cascade: true, parentId: "team" };
  const consume = new FastConsume(true, "e", "r", config, link, [2000, 3000]);
  expect(consume.granted).toBe(true);
  expect(consume.balancesMilli).toEqual([[3000]]);
  expect(consume.legs).toEqual([
    { entityId: "e", resource: "r", config, amountsMilli: [2000], link, linkIsFresh: false },
  ]);
  expect(consume.outcomes).toEqual([
    { parts: [{ shard: 0, amountsMilli: [2000] }], link, balancesMilli: [3000] },
  ]);
});
