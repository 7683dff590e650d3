import { consumptionOf } from "@zae-limiter/aws/aggregator/consumption.ts";
import { planSnapshot } from "@zae-limiter/aws/aggregator/snapshot-writer.ts";
import { generationOf, orderOf } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { foldUsage, type SnapshotTally } from "@zae-limiter/aws/aggregator/usage-fold.ts";
import { parseWindows } from "@zae-limiter/aws/aggregator/window-list.ts";
import {
  isoSeconds,
  type WindowType,
  windowEndMs,
  windowStartMs,
} from "@zae-limiter/limiter/core/windows.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { applyChange } from "@zae-limiter/limiter/storage/evaluate.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describe, expect, test } from "vitest";
import { AT, bucketItem, change } from "./changes.ts";

const HOURLY: readonly WindowType[] = ["hourly"];

function written(tally: SnapshotTally, stored?: Item): Item | undefined {
  const write = planSnapshot(tally, stored, 90);
  return write === undefined ? stored : applyChange(write.key, stored, write.change);
}

function snapshotsOf(
  changes: Parameters<typeof foldUsage>[0],
  windows: readonly WindowType[] = HOURLY,
): Item[] {
  return foldUsage(changes, windows).tallies.flatMap((tally) => written(tally) ?? []);
}

describe("what a change consumed", () => {
  test("tc 0 to 5,000,000 is one delta, dated by the change and not by rf (op 61)", () => {
    const rf = AT - 3 * 3_600_000;
    const found = consumptionOf(
      change(bucketItem({ tc: { tpm: 0 }, rf }), bucketItem({ tc: { tpm: 5_000_000 }, rf })),
    );
    expect(found).toMatchObject({ amountsMilli: [["tpm", 5_000_000]], events: 1, atMs: AT });
  });

  test("a refund counts down (op 62)", () => {
    const found = consumptionOf(
      change(bucketItem({ tc: { tpm: 10_000_000 } }), bucketItem({ tc: { tpm: 5_000_000 } })),
    );
    expect(found?.amountsMilli).toEqual([["tpm", -5_000_000]]);
  });

  test("every limit but wcu gives a delta, and together they are one event (op 63)", () => {
    const found = consumptionOf(
      change(
        bucketItem({ tc: { rpm: 0, tpm: 0, wcu: 0 } }),
        bucketItem({ tc: { rpm: 1000, tpm: 7000, wcu: 1000 } }),
      ),
    );
    expect(found).toMatchObject({
      amountsMilli: [
        ["rpm", 1000],
        ["tpm", 7000],
      ],
      events: 1,
    });
  });

  test("unchanged counters, other items and removals give no delta; creations do (op 64)", () => {
    const bucket = bucketItem({ tc: { tpm: 3000 } });
    expect(consumptionOf(change(bucket, { ...bucket, ttl: 5 }))).toBeUndefined();
    expect(consumptionOf(change(undefined, { ...bucket, SK: "#META" }))).toBeUndefined();
    expect(consumptionOf(change(bucket, undefined))).toBeUndefined();
    const { b_tpm_tc: _, ...uncounted } = bucket;
    expect(consumptionOf(change(bucket, uncounted as Item))).toBeUndefined();
    expect(consumptionOf(change(undefined, bucket))?.amountsMilli).toEqual([["tpm", 3000]]);
    // A limit that a bucket gets later begins at nothing.
    expect(consumptionOf(change(uncounted as Item, bucket))?.amountsMilli).toEqual([["tpm", 3000]]);
  });

  test("a shard that comes of a split has consumed nothing", () => {
    const half = bucketItem({ shard: 1, shards: 2, tc: { tpm: 0 }, tk: { tpm: 5000 } });
    expect(consumptionOf(change(undefined, half))).toBeUndefined();
  });

  test("totals beyond 2^53 lose no milli-token", () => {
    const large = 9_007_199_254_740_993n;
    const found = consumptionOf(
      change(bucketItem({ tc: { tpm: large } }), bucketItem({ tc: { tpm: large + 1000n } })),
    );
    expect(found?.amountsMilli.map(([, milli]) => Number(milli))).toEqual([1000]);
  });

  test("acquires are counted where the item says how many there were", () => {
    const before = bucketItem({ tc: { tpm: 5000 }, acquires: 4 });
    const adjusted = bucketItem({ tc: { tpm: 9000 }, acquires: 4, more: { wm: 1 } });
    const acquired = bucketItem({ tc: { tpm: 9000 }, acquires: 5 });
    expect(consumptionOf(change(before, adjusted))?.events).toBe(0);
    expect(consumptionOf(change(before, acquired))?.events).toBe(1);
    expect(consumptionOf(change(undefined, before))?.events).toBe(4);
    // A shard that came of a split has not been acquired from yet, but it is ours.
    const half = (tpm: number, wm: number) =>
      bucketItem({ tc: { tpm }, more: { cs: "system", wm } });
    expect(consumptionOf(change(half(0, 1), half(5000, 2)))?.events).toBe(0);
  });

  test("an adjustment on a store of this library alone, whose items have no meter, is no acquire", () => {
    const item = (tpm: number, more = {}) =>
      bucketItem({ tc: { tpm }, acquires: 4, more: { cs: "system", ...more } });
    expect(consumptionOf(change(item(5000), item(9000)))?.events).toBe(0);
    // On a table it is a write of the Python library, which counts no acquires.
    const pythonMeter = { b_wcu_tc: 0 };
    const written = change(item(5000, pythonMeter), item(9000, pythonMeter));
    expect(consumptionOf(written)?.events).toBe(1);
  });
});

describe("snapshots", () => {
  test("a key without a namespace is named as malformed, and the rest is counted (op 65)", () => {
    const odd = { ...bucketItem({ tc: { tpm: 1000 } }), PK: "BUCKET#user-1#gpt-4#0" };
    const { tallies, malformed } = foldUsage(
      [change(undefined, odd), change(undefined, bucketItem({ tc: { tpm: 1000 } }))],
      HOURLY,
    );
    expect(malformed.map(({ key }) => key.PK)).toEqual([odd.PK]);
    expect(tallies).toHaveLength(1);
  });

  test("windows begin on the hour, at midnight, on the first; others are refused (op 66)", () => {
    const start = (type: WindowType, at: string) => isoSeconds(windowStartMs(type, Date.parse(at)));
    expect(start("hourly", "2024-01-01T14:35:22Z")).toBe("2024-01-01T14:00:00Z");
    expect(start("daily", "2024-01-15T23:59:59Z")).toBe("2024-01-15T00:00:00Z");
    expect(start("monthly", "2024-03-25T08:00:00Z")).toBe("2024-03-01T00:00:00Z");
    expect(parseWindows(" daily, hourly,daily")).toEqual(["hourly", "daily"]);
    expect(() => parseWindows("weekly")).toThrow(/expected some of hourly, daily, monthly/);
    expect(() => parseWindows("")).toThrow(/expected some of/);
  });

  test("months end on their last day, also in February and December (op 67)", () => {
    const end = (at: string) => isoSeconds(windowEndMs("monthly", Date.parse(at)) - 1000);
    expect(end("2024-02-10T00:00:00Z")).toBe("2024-02-29T23:59:59Z");
    expect(end("2024-12-31T23:00:00Z")).toBe("2024-12-31T23:59:59Z");
  });

  test("a snapshot is kept for 90 days after its window (op 68)", () => {
    const tally = foldUsage([change(undefined, bucketItem({ tc: { tpm: 1000 } }))], ["monthly"]);
    const item = written(tally.tallies[0] as SnapshotTally);
    expect(item?.ttl).toBeGreaterThanOrEqual(AT / 1000 + 7_776_000);
    expect(item?.ttl).toBe(Date.parse("2024-02-01T00:00:00Z") / 1000 + 7_776_000);
  });

  test("a snapshot has its keys, counters and events (op 69)", () => {
    const [item] = snapshotsOf([change(undefined, bucketItem({ tc: { tpm: 5_000_000 } }))]);
    expect(item).toMatchObject({
      PK: "ns1/ENTITY#user-1",
      SK: "#USAGE#gpt-4#hourly#2024-01-01T14:00:00Z",
      GSI2PK: "ns1/RESOURCE#gpt-4",
      GSI2SK: "USAGE#hourly#2024-01-01T14:00:00Z#user-1",
      GSI4PK: "ns1",
      GSI4SK: "ns1/ENTITY#user-1",
      entity_id: "user-1",
      resource: "gpt-4",
      window: "hourly",
      window_start: "2024-01-01T14:00:00Z",
      tpm: 5000,
      total_events: 1,
    });
  });

  test("a snapshot adds 5000 at 14:30, more and less, from batch to batch (A197)", () => {
    const at = { atMs: Date.parse("2024-01-01T14:30:00Z") };
    const first = bucketItem({ tc: { tpm: 5_000_000 } });
    const more = bucketItem({ tc: { tpm: 7_000_000 } });
    const [one, two] = [change(undefined, first, at), change(first, more, at)];
    const [opened] = foldUsage([one], HOURLY).tallies;
    let item = written(opened as SnapshotTally);
    expect(decodeUsage(item as Item)).toMatchObject({ counters: { tpm: 5000 }, totalEvents: 1 });
    expect(item?.window_start).toBe("2024-01-01T14:00:00Z");
    const [added] = foldUsage([two], HOURLY).tallies;
    item = written(added as SnapshotTally, item);
    expect(decodeUsage(item as Item)).toMatchObject({ counters: { tpm: 7000 }, totalEvents: 2 });
    const [, refund] = [
      change(undefined, first, at),
      change(first, bucketItem({ tc: { tpm: 3_000_000 } }), at),
    ];
    const [given] = foldUsage([change(undefined, first, at), refund], HOURLY).tallies;
    item = written(given as SnapshotTally);
    expect(decodeUsage(item as Item)).toMatchObject({ counters: { tpm: 3000 }, totalEvents: 2 });
  });

  test("creations count, removals do not, one snapshot per window (op 70)", () => {
    const made = bucketItem({ tc: { tpm: 1000 } });
    const changes = [change(undefined, made), change(made, undefined)];
    expect(snapshotsOf(changes, ["hourly", "daily"])).toHaveLength(2);
    expect(snapshotsOf([change(made, undefined)])).toEqual([]);
  });

  test("hourly 00:00, daily and monthly of the first never meet (A198)", () => {
    const atMs = Date.parse("2024-01-01T00:10:00Z");
    const items = snapshotsOf(
      [change(undefined, bucketItem({ tc: { tpm: 10_000 } }), { atMs })],
      ["hourly", "daily", "monthly"],
    );
    expect(new Set(items.map(({ window_start }) => window_start)).size).toBe(1);
    expect(new Set(items.map(({ SK }) => SK)).size).toBe(3);
    expect(new Set(items.map(({ GSI2SK }) => GSI2SK)).size).toBe(3);
    expect(items.map(({ tpm }) => tpm)).toEqual([10, 10, 10]);
  });

  test("milli-tokens are summed before they are rounded, also across batches", () => {
    const steps = [0, 500, 1000, 1500].map((tpm) => bucketItem({ tc: { tpm } }));
    const changes = steps.slice(1).map((after, at) => change(steps[at], after));
    let item: Item | undefined;
    for (const one of changes) {
      item = written(foldUsage([one], HOURLY).tallies[0] as SnapshotTally, item);
    }
    expect(decodeUsage(item as Item)?.counters).toEqual({ tpm: 1 });
    const back = change(steps[3], steps[2]);
    item = written(foldUsage([back], HOURLY).tallies[0] as SnapshotTally, item);
    expect(item?.tpm).toBe(1);
    const [refund] = snapshotsOf([change(steps[1], steps[0])]);
    expect(decodeUsage(refund as Item)?.counters).toEqual({ tpm: 0 });
  });

  test("limits named like attributes of the record harm nothing", () => {
    const names = [
      ...["ttl", "resource", "window", "window_start", "entity_id", "total_events"],
      ...["PK", "SK", "GSI2PK", "GSI4SK", "LSI1SK", "constructor", "a_tc", "x.y-z"],
    ];
    const tc = Object.fromEntries(names.map((name, at) => [name, (at + 1) * 1000]));
    const [item] = snapshotsOf([change(undefined, bucketItem({ tc }))]);
    expect(item).toMatchObject({
      PK: "ns1/ENTITY#user-1",
      resource: "gpt-4",
      window: "hourly",
      entity_id: "user-1",
      total_events: 1,
    });
    expect(decodeUsage(item as Item)?.counters).toEqual(
      Object.fromEntries(names.map((name, at) => [name, at + 1])),
    );
  });

  test("a snapshot is one write per batch, however many changes and shards there are", () => {
    const changes = Array.from({ length: 100 }, (_, at) => {
      const fields = { shard: at % 4, shards: 4 };
      const total = Math.floor(at / 4) * 1000;
      return change(
        bucketItem({ ...fields, tc: { rpm: total, tpm: total * 7 } }),
        bucketItem({ ...fields, tc: { rpm: total + 1000, tpm: (total + 1000) * 7 } }),
      );
    });
    const items = snapshotsOf(changes, ["hourly", "daily", "monthly"]);
    expect(items).toHaveLength(3);
    for (const item of items) expect(item).toMatchObject({ rpm: 100, tpm: 700, total_events: 100 });
  });

  test("a batch over midnight is divided by the time of each change", () => {
    const steps = [0, 1000, 3000].map((tpm) => bucketItem({ tc: { tpm } }));
    const items = snapshotsOf(
      [
        change(steps[0], steps[1], { atMs: Date.parse("2024-01-31T23:59:59Z") }),
        change(steps[1], steps[2], { atMs: Date.parse("2024-02-01T00:00:00Z") }),
      ],
      ["hourly", "daily", "monthly"],
    );
    expect(items.map(({ window, tpm }) => [window, tpm])).toEqual([
      ["hourly", 1],
      ["hourly", 2],
      ["daily", 1],
      ["daily", 2],
      ["monthly", 1],
      ["monthly", 2],
    ]);
  });

  test("a record that is twice in a batch, or out of order, counts once", () => {
    const steps = [0, 1000, 3000].map((tpm) => bucketItem({ tc: { tpm } }));
    const first = change(steps[0], steps[1]);
    const second = change(steps[1], steps[2]);
    const [item] = snapshotsOf([second, first, second, first]);
    expect(item).toMatchObject({ tpm: 3, total_events: 2, "@0": second.order });
  });
});

describe("the order of changes", () => {
  test("numbers sort by value, whatever their length", () => {
    const numbers = ["9", "10", "000000000000000000414", "4421584500000000017450439091"];
    const orders = numbers.map((sequence) => orderOf("", sequence));
    expect(orders.toSorted()).toEqual(orders);
    expect(orderOf("", "0010")).toBe(orderOf("", "10"));
  });

  test("a new stream comes after the old one, whatever its numbers are", () => {
    const arn = (label: string) => `arn:aws:dynamodb:eu-west-1:1:table/t/stream/${label}`;
    const old = generationOf(arn("2024-06-27T00:48:05.899"));
    const fresh = generationOf(arn("2026-11-15T18:32:29.519"));
    expect(orderOf(old, "9999") < orderOf(fresh, "1")).toBe(true);
    expect(generationOf("arn:without-a-label")).toBe("");
  });
});
