/** The most slots that were held at once, from the images of bucket items. */

import { consumptionOf } from "@zae-limiter/aws/aggregator/consumption.ts";
import { planSnapshot } from "@zae-limiter/aws/aggregator/snapshot-writer.ts";
import type { StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { foldUsage } from "@zae-limiter/aws/aggregator/usage-fold.ts";
import { slotAttributes } from "@zae-limiter/limiter/records/slot-attributes.ts";
import { decodeUsage, usageKey } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { applyChange, holds } from "@zae-limiter/limiter/storage/evaluate.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { expect, test } from "vitest";
import { AT, bucketItem, change, NAMESPACE } from "./changes.ts";
import { aggregatorOver } from "./setup.ts";

const HOUR_MS = 3_600_000;
const KEY = usageKey(
  { namespaceId: NAMESPACE, entityId: "user-1", resource: "gpt-4" },
  "hourly",
  Math.floor(AT / HOUR_MS) * HOUR_MS,
);

interface Held {
  /** Slots of each entry. */
  readonly held?: readonly number[];
  readonly free?: number;
  readonly capacity?: number;
  readonly shard?: number;
  readonly acquires?: number;
  readonly limit?: string;
}

function slotItem({ held = [], capacity = 20, limit = "parallel", ...fields }: Held): Item {
  const counts = held.map((count, at) => [`p${at}.1`, { sequence: 7, count }] as const);
  const free = fields.free ?? capacity - held.reduce((sum, count) => sum + count, 0);
  const { shard = 0, acquires = 1 } = fields;
  const more = slotAttributes(limit, { free, capacity, marks: new Map(counts) });
  return bucketItem({ shard, shards: 4, acquires, tc: { rpm: 1000 * acquires }, more });
}

/** Shards that are written to one after another. */
class Bucket {
  readonly changes: StreamChange[] = [];
  readonly #items = new Map<number, Item>();
  #acquires = 0;

  write(slots: Held): StreamChange {
    const { shard = 0 } = slots;
    this.#acquires += 1;
    const after = slotItem({ ...slots, acquires: this.#acquires });
    const made = change(this.#items.get(shard), after);
    this.#items.set(shard, after);
    this.changes.push(made);
    return made;
  }
}

/** Counts batches one after another; returns the hourly snapshot. */
async function counted(...batches: (readonly StreamChange[])[]) {
  const { aggregator, store } = aggregatorOver();
  for (const batch of batches) {
    expect((await aggregator.process(batch)).failedIds).toEqual([]);
  }
  const item = store.readNow(KEY);
  return { item, peaks: item && decodeUsage(item)?.peaks, store };
}

test("a change shows the slots that were held before it and after it, of all entries", () => {
  const before = slotItem({ held: [3, 4], acquires: 1 });
  const after = slotItem({ held: [1], acquires: 2 });
  const slots = [{ limitName: "parallel", held: 7, most: 20 }];
  expect(consumptionOf(change(before, after))?.slots).toEqual(slots);
  expect(consumptionOf(change(after, slotItem({ held: [3, 4], acquires: 3 })))?.slots).toEqual(
    slots,
  );
  expect(consumptionOf(change(undefined, slotItem({})))?.slots).toEqual([]);
  expect(consumptionOf(change(undefined, bucketItem({ tc: { rpm: 1000 } })))?.slots).toEqual([]);
});

test("a peak is the highest of all batches, and is kept as on every other store", async () => {
  const bucket = new Bucket();
  const batches = [[2], [5, 7], [], [1], [9]].map((held) => [bucket.write({ held })]);
  const { item, peaks } = await counted(...batches);
  expect(peaks).toEqual({ parallel: 12 });
  expect(item).toMatchObject({ "parallel#pk": "12", "@0.parallel": "12", rpm: 5 });
  // Everything again, in other batches.
  const again = await counted(bucket.changes, ...batches, bucket.changes.slice(2));
  expect(again.item).toMatchObject({ "parallel#pk": "12", rpm: 5, total_events: 5 });
});

test("soft slots may be held beyond those there are, and so may those of a limit lowered", async () => {
  const soft = new Bucket().write({ held: [25] });
  expect((await counted([soft])).peaks).toEqual({ parallel: 25 });
  const lowered = new Bucket().write({ held: [15], capacity: 10 });
  expect((await counted([lowered])).peaks).toEqual({ parallel: 15 });
});

test("several shards count as the sum of their peaks, and as no more than there are", async () => {
  const bucket = new Bucket();
  const batches = [
    [bucket.write({ shard: 0, held: [4], free: 6 })],
    [bucket.write({ shard: 1, held: [5], free: 5 }), bucket.write({ shard: 0, free: 10 })],
  ];
  expect((await counted(...batches)).peaks).toEqual({ parallel: 9 });
  const full = [bucket.write({ shard: 0, held: [17], free: 0 })];
  const { item, peaks } = await counted(...batches, full);
  expect(peaks).toEqual({ parallel: 20 });
  expect(item).toMatchObject({ "@0.parallel": "17", "@1.parallel": "5" });
});

test("limits named like the marks of others have peaks of their own", async () => {
  for (const limit of ["pk", "od", "ttl", "a.parallel", "x_fr", "s_h_p.1"]) {
    const { item, peaks } = await counted([new Bucket().write({ held: [2, 1], limit })]);
    expect(peaks).toEqual({ [limit]: 3 });
    expect(item && decodeUsage(item)?.counters).toEqual({ rpm: 1 });
  }
});

test("a snapshot that another aggregator has raised meanwhile is counted from what it shows", () => {
  const bucket = new Bucket();
  const [first, other] = [3, 8].map((held, shard) => bucket.write({ shard, held: [held] }));
  const plan = (seen: StreamChange | undefined, stored: Item | undefined) => {
    const [tally] = foldUsage(seen === undefined ? [] : [seen], ["hourly"]).tallies;
    const write = tally && planSnapshot(tally, stored, 90);
    if (write === undefined) throw new Error("There is nothing to write");
    return { ...write, onto: (item?: Item) => applyChange(write.key, item, write.change) };
  };
  const late = plan(first, undefined);
  const stored = plan(other, undefined).onto();
  expect(holds(late.condition, stored)).toBe(false);
  const again = plan(first, stored);
  expect(holds(again.condition, stored)).toBe(true);
  expect(decodeUsage(again.onto(stored))?.peaks).toEqual({ parallel: 11 });
});

test("buckets without slots are counted without a read", async () => {
  const store = new MemoryItemStore({ clock: () => AT });
  const reads: string[] = [];
  store.listen(({ operation }) => reads.push(operation));
  const { aggregator } = aggregatorOver({ store });
  await aggregator.process([change(undefined, bucketItem({ tc: { rpm: 1000 } }))]);
  expect(reads.filter((operation) => operation === "get")).toEqual([]);
  await aggregator.process([new Bucket().write({ held: [1] })]);
  expect(reads.filter((operation) => operation === "get")).toHaveLength(3);
});
