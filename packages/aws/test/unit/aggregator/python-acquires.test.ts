/** Acquires of the Python library on items that this library has written to as well. */

import { consumptionOf } from "@zae-limiter/aws/aggregator/consumption.ts";
import { decodeUsage, usageChange } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { expect, test } from "vitest";
import { AT, bucketItem, change } from "./changes.ts";

const OURS = { cs: "resource", wm: 5000 };

function item(tpm: number, acquires: number, more: Record<string, number | string> = {}) {
  return bucketItem({ tc: { tpm }, acquires, more: { ...OURS, ...more } });
}

test("an acquire of the Python library counts as one, although it leaves `ac` alone", () => {
  const found = consumptionOf(change(item(1000, 3), item(4000, 3)));
  expect(found).toMatchObject({ amountsMilli: [["tpm", 3000]], events: 1 });
});

test("an adjustment by this library counts as no acquire: it moves the meter of writes", () => {
  const found = consumptionOf(change(item(1000, 3), item(4000, 3, { wm: 5001 })));
  expect(found).toMatchObject({ amountsMilli: [["tpm", 3000]], events: 0 });
});

test("an acquire of this library counts as stored, and a refund of either library as no acquire", () => {
  const ours = change(item(1000, 3), item(4000, 5, { wm: 5001 }));
  expect(consumptionOf(ours)).toMatchObject({ events: 2 });
  expect(consumptionOf(change(item(4000, 3), item(1000, 3)))).toMatchObject({ events: 0 });
  expect(consumptionOf(change(item(4000, 3), item(1000, 2)))).toMatchObject({ events: -1 });
});

test("a snapshot of the Python library shows how often a soft limit was overdrawn", () => {
  const stored = pythonItem("67-usage-snapshot-overdrawn", "ns");
  expect(decodeUsage(stored)).toMatchObject({
    counters: { rpm: 2, tpm: 120 },
    overdrawn: { tpm: 2 },
    totalEvents: 4,
  });
  expect(Object.keys(decodeUsage(stored)?.counters ?? {})).toEqual(["rpm", "tpm"]);
});

test("an acquire of ours is counted under the name that the Python library gives it", () => {
  const subject = { namespaceId: "ns", entityId: "u", resource: "r" };
  const addition = {
    amountsMilli: [
      ["rpm", 2000],
      ["tpm", 120_000],
    ] as const,
    events: 4,
    overdrawn: new Map([["tpm", 2]]),
  };
  const stored = pythonItem("67-usage-snapshot-overdrawn", "ns");
  const { add } = usageChange(subject, "daily", AT, addition, 90);
  expect(add).toEqual({
    rpm: stored.rpm,
    tpm: stored.tpm,
    "tpm#od": stored["tpm#od"],
    total_events: stored.total_events,
  });
});

test("a write of the Python library counts by the stamp of its soft limit", () => {
  const debt = (more: Record<string, number>) =>
    bucketItem({ tc: { tpm: 4000 }, tk: { tpm: -3000 }, more });
  const before = bucketItem({ tc: { tpm: 1000 }, tk: { tpm: 0 } });
  const overdrawn = (more: Record<string, number>) =>
    consumptionOf(change(before, debt(more)))?.overdrawn;
  expect(overdrawn({ b_tpm_soft: AT + 1000 })).toEqual(["tpm"]);
  expect(overdrawn({ b_tpm_soft: AT })).toEqual([]);
  expect(overdrawn({})).toEqual([]);
});
