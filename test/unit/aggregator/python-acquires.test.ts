/** Acquires of the Python library on items that this library has written to as well. */

import { expect, test } from "vitest";
import { consumptionOf } from "../../../src/aggregator/consumption.ts";
import { decodeUsage } from "../../../src/records/usage-item.ts";
import { pythonItem } from "../../contract/python/golden-items.ts";
import { bucketItem, change } from "./changes.ts";

const OURS = { cs: "resource", wm: 5000 };

function item(tpm: number, acquires: number, more: Record<string, number | string> = {}) {
  return bucketItem({ tc: { tpm }, acquires, more: { ...OURS, ...more } });
}

test("an acquire of the Python library counts as one, although it leaves `ac` alone", () => {
  const found = consumptionOf(change(item(1000, 3), item(4000, 3)));
  expect(found).toMatchObject({ amountsMilli: [["tpm", 3000]], events: 1 });
});

test("an adjustment of ours counts as none: it moves the meter of writes", () => {
  const found = consumptionOf(change(item(1000, 3), item(4000, 3, { wm: 5001 })));
  expect(found).toMatchObject({ amountsMilli: [["tpm", 3000]], events: 0 });
});

test("an acquire of ours counts what it says, and a refund of either library counts as none", () => {
  const ours = change(item(1000, 3), item(4000, 5, { wm: 5001 }));
  expect(consumptionOf(ours)).toMatchObject({ events: 2 });
  expect(consumptionOf(change(item(4000, 3), item(1000, 3)))).toMatchObject({ events: 0 });
  expect(consumptionOf(change(item(4000, 3), item(1000, 2)))).toMatchObject({ events: -1 });
});

test("how often a soft limit was overdrawn is no counter of its own", () => {
  const stored = pythonItem("67-usage-snapshot-overdrawn", "ns");
  expect(Object.keys(stored).some((name) => name.endsWith("#od"))).toBe(true);
  const counters = Object.keys(decodeUsage(stored)?.counters ?? {});
  expect(counters.length).toBeGreaterThan(0);
  expect(counters.filter((name) => name.includes("#"))).toEqual([]);
});
