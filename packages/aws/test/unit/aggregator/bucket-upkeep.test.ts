import { bucketActivity } from "@zae-limiter/aws/aggregator/bucket-activity.ts";
import { type ShardSplitter, WriteRates } from "@zae-limiter/aws/aggregator/bucket-upkeep.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describe, expect, test } from "vitest";
import { AT, type BucketFields, bucketItem, change } from "./changes.ts";
import { aggregatorOver } from "./setup.ts";

/** Returns a bucket after a batch showed that `consumed` milli-tokens were consumed from it. */
async function refilled(
  fields: BucketFields & { readonly consumed?: number; readonly ageMs?: number },
): Promise<{ item: Item | undefined; refills: number }> {
  const { consumed = 0, ageMs = 5000, tc = { tpm: 0 }, ...rest } = fields;
  const rf = AT - ageMs;
  const totals = Object.fromEntries(Object.keys(tc).map((name) => [name, 100_000_000 + consumed]));
  const after = bucketItem({ ...rest, rf, tc: totals });
  const start = Object.fromEntries(Object.keys(tc).map((name) => [name, 100_000_000]));
  const before = bucketItem({ ...rest, rf, tc: start });
  const { aggregator, store } = aggregatorOver();
  await store.put(after);
  const { counters } = await aggregator.process([change(before, after)]);
  return { item: await store.get(after), refills: counters.refills };
}

describe("fresh balances", () => {
  test("a balance below what was just consumed gets 5 s of refill, and rf is now (op 72)", async () => {
    const { item, refills } = await refilled({ tk: { tpm: 5_000_000 }, consumed: 20_000_000 });
    expect(refills).toBe(1);
    expect(item).toMatchObject({ b_tpm_tk: 5_000_000 + 8_333_333, rf: AT });
    expect(item?.b_tpm_tc).toBe(120_000_000);
  });

  test("nothing is written with enough stored, nothing accrued, a refund or no limits (op 73)", async () => {
    const plenty = { tk: { tpm: 90_000_000 }, consumed: 1_000_000, ageMs: 60_000 };
    expect((await refilled(plenty)).refills).toBe(0);
    const short = { tk: { tpm: 5_000_000 } };
    expect((await refilled({ ...short, consumed: 20_000_000, ageMs: 0 })).refills).toBe(0);
    expect((await refilled({ ...short, consumed: -20_000_000 })).refills).toBe(0);
    expect((await refilled({ tc: {}, consumed: 1000 })).refills).toBe(0);
  });

  test("a bucket that moved on is left alone; another failure is logged and counted (op 74)", async () => {
    const { aggregator, store, lines } = aggregatorOver();
    const rf = AT - 5000;
    const fields = { rf, tk: { tpm: 0 } };
    const after = bucketItem({ ...fields, tc: { tpm: 20_000_000 } });
    const batch = [change(bucketItem({ ...fields, tc: { tpm: 0 } }), after)];
    await store.put({ ...after, rf: AT - 1000 });
    expect((await aggregator.process(batch)).counters).toMatchObject({ refills: 0, failures: 0 });
    await store.close();
    expect((await aggregator.process(batch)).counters).toMatchObject({ refills: 0 });
    expect(lines.some(({ message }) => message === "a bucket could not be refilled")).toBe(true);
  });

  test("a refill rebases all limits together, so none loses accrued tokens (op 75)", async () => {
    const { item, refills } = await refilled({
      tc: { rpm: 0, tpm: 0, rpd: 0 },
      tk: { rpm: 1_000_000, tpm: 5_000_000, rpd: 50_000_000 },
      consumed: 20_000_000,
    });
    expect(refills).toBe(1);
    expect(item).toMatchObject({
      rf: AT,
      b_rpm_tk: 1_000_000 + 8_333_333,
      b_tpm_tk: 5_000_000 + 8_333_333,
      // Enough of it is stored, but the time that brought it more is over now.
      b_rpd_tk: 50_000_000 + 8_333_333,
    });
  });

  test("a shard accrues its share, under its own key (op 76)", async () => {
    const more = { b_tpm_cp: 10_000_000, b_tpm_ra: 10_000_000 };
    const { item } = await refilled({
      shards: 2,
      tk: { tpm: 0 },
      consumed: 4_000_000,
      ageMs: 12_000,
      more,
    });
    expect(item?.PK).toBe("ns1/BUCKET#user-1#gpt-4#0");
    expect(item?.b_tpm_tk).toBe(1_000_000);
  });

  test("the consumption of several changes of a batch counts together (op 79)", async () => {
    const { aggregator, store } = aggregatorOver();
    const fields = { rf: AT - 10_000, tk: { tpm: 0 } };
    const steps = [15, 18, 20].map((tc) => bucketItem({ ...fields, tc: { tpm: tc * 1_000_000 } }));
    await store.put(steps[2] as Item);
    const changes = [change(steps[0], steps[1]), change(steps[1], steps[2])];
    const [activity] = bucketActivity(changes);
    expect(activity?.consumedMilli.get("tpm")).toBe(5_000_000);
    expect((await aggregator.process(changes)).counters.refills).toBe(1);
  });

  test("limits with dots and dashes, or named like attributes, are refilled too", async () => {
    const names = ["x.y-z", "ttl", "resource", "window", "PK", "rf"];
    const { item, refills } = await refilled({
      tc: Object.fromEntries(names.map((name) => [name, 0])),
      tk: Object.fromEntries(names.map((name) => [name, 0])),
      consumed: 1000,
    });
    expect(refills).toBe(1);
    for (const name of names) expect(item?.[`b_${name}_tk`]).toBe(8_333_333);
  });
});

/** Notes what it is asked for. */
class NotingSplitter implements ShardSplitter {
  readonly asked: string[] = [];

  async split({ entityId, shard }: { entityId: string; shard: number }): Promise<number> {
    this.asked.push(`split ${entityId} ${shard}`);
    return 1;
  }

  async complete(
    { entityId, shard }: { entityId: string; shard: number },
    { shardCount }: { shardCount: number },
  ): Promise<number> {
    this.asked.push(`complete ${entityId} ${shard} to ${shardCount}`);
    return 2;
  }
}

describe("shards", () => {
  test("a bucket is split by its measured writes, not by how many it ever had (op 80)", async () => {
    const splitter = new NotingSplitter();
    const { aggregator } = aggregatorOver({ splitter });
    const writes = (entity: string, count: number, perSecond: number) =>
      Array.from({ length: count }, (_, at) =>
        change(
          bucketItem({ entity, tc: { rpm: at * 1000 } }),
          bucketItem({ entity, tc: { rpm: (at + 1) * 1000 } }),
          { atMs: AT + Math.floor((at * 1000) / perSecond) },
        ),
      );
    const busy = await aggregator.process(writes("busy", 900, 900));
    expect(splitter.asked).toEqual(["split busy 0"]);
    expect(busy.counters.splits).toBe(1);
    for (let round = 0; round < 10; round += 1) await aggregator.process(writes("calm", 500, 100));
    expect(splitter.asked).toEqual(["split busy 0"]);
  });

  test("a number of shards that grew is completed, also when nothing else happened (op 81)", async () => {
    const splitter = new NotingSplitter();
    const { aggregator } = aggregatorOver({ splitter });
    const grew = change(
      bucketItem({ tc: { rpm: 5000 }, shards: 2 }),
      bucketItem({ tc: { rpm: 5000 }, shards: 4 }),
    );
    const { counters } = await aggregator.process([grew]);
    expect(splitter.asked).toEqual(["complete user-1 0 to 4"]);
    expect(counters).toMatchObject({ splits: 2, snapshots: 0 });
    const same = bucketItem({ tc: { rpm: 5000 }, shards: 4 });
    await aggregator.process([change(same, { ...same, ttl: 9 }), change(undefined, same)]);
    expect(splitter.asked).toHaveLength(1);
  });

  test("a split that failed is delivered again", async () => {
    const splitter = new NotingSplitter();
    splitter.complete = async () => {
      throw new Error("no");
    };
    const { aggregator } = aggregatorOver({ splitter });
    const grew = change(bucketItem({ tc: {}, shards: 1 }), bucketItem({ tc: {}, shards: 2 }));
    const { failedIds, counters } = await aggregator.process([grew]);
    expect(failedIds).toEqual([grew.id]);
    expect(counters.failures).toBe(1);
  });

  test("rates are neither fooled by coarse times nor by a reader that catches up", () => {
    const coarse = new WriteRates();
    let perSecond = 0;
    // Stamped with the minute, as DynamoDB Local does, and read as it happens: 50 a second.
    for (let second = 0; second < 40; second += 1) {
      perSecond = coarse.count("item", AT, 50, AT + second * 1000);
    }
    expect(perSecond).toBeLessThan(100);
    const late = new WriteRates();
    for (let second = 0; second < 40; second += 1) {
      perSecond = late.count("item", AT + second * 1000, 50, AT);
    }
    expect(perSecond).toBe(50);
  });
});
