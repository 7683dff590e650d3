import { expect, test } from "vitest";
import { states } from "../../../../src/buckets/embedded/row-states.ts";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

test("a row shows each of its limits with the balance at a time", () => {
  const bucket = bucketWith([
    limitWith(4000, { consumedMilli: 6000 }),
    limitWith(-1000, { name: "b" }),
  ]);
  const row = { entityId: "e", resource: "r", bucket };
  expect(states(row as Parameters<typeof states>[0], NOW + 6000)).toEqual([
    {
      ...{ entityId: "e", resource: "r", shard: 0, shardCount: 1, limitName: "a" },
      ...{ capacityMilli: 10_000, refillMilli: 10_000, periodMs: 60_000 },
      ...{ balanceMilli: 5000, consumedMilli: 6000, refilledAtMs: NOW },
    },
    expect.objectContaining({ limitName: "b", balanceMilli: 0, consumedMilli: 0 }),
  ]);
});

test("a balance never shows more than the capacity", () => {
  const row = { entityId: "e", resource: "r", bucket: bucketWith([limitWith(9000)]) };
  const [state] = states(row as Parameters<typeof states>[0], NOW + 3_600_000);
  expect(state?.balanceMilli).toBe(10_000);
});
