/** How much a write has consumed, and whether it took a soft limit into debt. */

import { consumptionOf, overdrawnBy } from "@zae-limiter/aws/aggregator/consumption.ts";
import { expect, test } from "vitest";
import { AT, bucketItem, change } from "./changes.ts";

/** The item after a write: 100,000 tokens accrue in a minute from its base time on. */
const after = (tk: number, more: Record<string, number> = {}) =>
  bucketItem({ tc: { tpm: 1000 }, tk: { tpm: tk }, more });

test.each([
  ["an acquire leaves debt", -2_000_000_000, 0, {}, true, ["tpm"]],
  ["a balance of zero is no debt", 0, 5, {}, true, []],
  [
    "what has accrued since the base time covers the debt",
    -100_000_000,
    0,
    { rf: AT - 60_000 },
    true,
    [],
  ],
  ["the time of a record is up to a second late", -1_000_000, 0, {}, true, []],
  ["an adjustment leaves debt", -2_000_000_000, 0, {}, false, []],
  ["a stamp in force tells that the limit is soft", -1, 0, { b_tpm_soft: AT + 1 }, false, ["tpm"]],
  ["a stamp that is over tells nothing", -1, 0, { b_tpm_soft: AT }, false, []],
  ["a bypass leaves the balance alone", -2_000_000_000, -2_000_000_000, {}, true, []],
] as const)("%s", (_, tk, tkBefore, more, isAcquire, expected) => {
  const write = { before: after(tkBefore, more), after: after(tk, more), atMs: AT, isAcquire };
  expect(overdrawnBy(write, ["tpm"])).toEqual(expected);
});

test("a bucket that is created in debt is overdrawn, and other names are not", () => {
  const write = { before: undefined, after: after(-2_000_000_000), atMs: AT, isAcquire: true };
  expect(overdrawnBy(write, ["tpm", "rpm"])).toEqual(["tpm"]);
});

test("an item that is damaged has no overdrawn limits, and no error stops the count", () => {
  const damaged = after(-2_000_000_000, { shard_count: 3 });
  const write = { before: undefined, after: damaged, atMs: AT, isAcquire: true };
  expect(overdrawnBy(write, ["tpm"])).toEqual([]);
});

test("totals that a copy of another store brings are no consumption, and the next acquire is", () => {
  const copied = (mv: string, tpm: number) =>
    bucketItem({ tc: { tpm }, more: { mv, cs: "system" } });
  const [first, again] = [copied("run-1", 5000), copied("run-2", 8000)];
  expect(consumptionOf(change(undefined, first))).toBeUndefined();
  expect(consumptionOf(change(first, again))).toBeUndefined();
  const acquired = consumptionOf(change(again, copied("run-2", 9000)));
  expect(acquired?.amountsMilli).toEqual([["tpm", 1000]]);
  // A bucket that expired and was created again by an acquire has no mark of the copy.
  const created = consumptionOf(change(undefined, bucketItem({ tc: { tpm: 1000 } })));
  expect(created?.amountsMilli).toEqual([["tpm", 1000]]);
});
