/**
 * Buckets and usage as items: what is written is read back, and what others wrote is understood.
 */

import {
  decodeBucket,
  encodeBucket,
  type StoredBucket,
  type StoredLimit,
  WRITES_RATE,
} from "@zae-limiter/limiter/records/bucket-item.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { decodeItem, encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

const NOW_MS = Date.now();
const RATE = { capacityMilli: 100_000, refillMilli: 100_000, periodMs: 60_000 };

function limit(fields: Partial<StoredLimit> = {}): StoredLimit {
  return { tokensMilli: 0, rate: RATE, totalConsumedMilli: 0, remainder: 0, ...fields };
}

function bucket(fields: Partial<StoredBucket> = {}): StoredBucket {
  return {
    entityId: "key-1",
    resource: "openai/gpt-4",
    shard: 0,
    shardCount: 1,
    refilledAtMs: NOW_MS,
    cascade: false,
    parentId: undefined,
    ttl: undefined,
    configVersion: 0,
    configSource: undefined,
    limits: new Map(),
    writes: undefined,
    meterMs: undefined,
    ...fields,
  };
}

describeStores("a bucket as an item", (store) => {
  it("a bucket as an item comes back from the store as it was written, with the oddest of limits", async () => {
    const { namespaceId } = await store.open();
    const written = bucket({
      shard: 13,
      shardCount: 64,
      cascade: true,
      parentId: "project-1",
      ttl: Math.floor(NOW_MS / 1000) + 3600,
      configVersion: 42,
      configSource: "entity_default",
      writes: limit({ tokensMilli: 999_000, rate: WRITES_RATE }),
      limits: new Map([
        ["rpm", limit({ tokensMilli: -1, remainder: 59_999 })],
        ["tokens_tk", limit({ tokensMilli: 1 })],
        ["tokens", limit({ tokensMilli: 2 })],
        ["constructor", limit({ tokensMilli: 3 })],
        ["gpt-3.5_rr", limit({ totalConsumedMilli: 123_456_789_012_345_678_901n })],
      ]),
    });
    await store.items.put(encodeBucket(namespaceId, written));
    const key = bucketKey(namespaceId, "key-1", "openai/gpt-4", 13);
    const item = await store.items.get(key, { consistent: true });
    expect(decodeBucket(item as Item)).toEqual(written);
  });
});

describe("a bucket of others", () => {
  const stub = { PK: "ns/BUCKET#key-1#gpt-4#0", SK: "#STATE" };

  it("an item that lacks what every bucket has is not a bucket", () => {
    expect(decodeBucket({ ...stub, b_rpm_tk: -5000, b_rpm_tc: 5000 })).toBeUndefined();
    const { rf, ...timeless } = encodeBucket("ns", bucket());
    expect(rf).toBe(NOW_MS);
    expect(decodeBucket(timeless as Item)).toBeUndefined();
  });

  it("a bucket of others is without the limits whose parameters are incomplete", () => {
    const item = encodeBucket("ns", bucket({ limits: new Map([["rpm", limit()]]) }));
    for (const missing of ["tk", "cp", "ra", "rp"]) {
      const incomplete = Object.fromEntries(
        Object.entries(item).filter(([name]) => name !== `b_rpm_${missing}`),
      );
      expect(decodeBucket(incomplete as Item)?.limits.size, missing).toBe(0);
    }
    const { b_rpm_tc: _, ...uncounted } = item;
    const read = decodeBucket(uncounted as Item);
    expect(read?.limits.get("rpm")?.totalConsumedMilli).toBeUndefined();
    expect(decodeBucket({ ...item, b_rpm_rp: 0 })?.limits.size).toBe(0);
  });
});

describe("a bucket as people look at it", () => {
  const look = async (stored: StoredLimit) => {
    const items = new MemoryItemStore();
    const repo = await Repository.over(items, { clock: () => NOW_MS });
    const limits = new Map([["rpm", stored]]);
    const writes = limit({ rate: WRITES_RATE, tokensMilli: 1_000_000 });
    await items.put(encodeBucket(repo.namespaceId, bucket({ limits, writes })));
    return repo.buckets.list("key-1");
  };

  it("a listed bucket has the limit that its parameters make (A025)", async () => {
    const [state, ...others] = await look(limit({ tokensMilli: 100_000 }));
    expect(others).toEqual([]);
    expect(state?.limit.toJSON()).toEqual({
      name: "rpm",
      capacity: 100,
      refill_amount: 100,
      refill_period_seconds: 60,
    });
  });

  it.each([
    [150_500, 150],
    [999, 0],
    [0, 0],
    [-1, -1],
    [-500, -1],
    [-1000, -1],
  ])("a bucket of %i milli-tokens has %i tokens (A036)", async (tokensMilli, tokens) => {
    const rate = { ...RATE, capacityMilli: 200_000 };
    const [state] = await look(limit({ tokensMilli, rate }));
    expect(state).toMatchObject({ tokens, capacity: 200, limitName: "rpm" });
  });
});

describe("usage as an item", () => {
  const item: Item = {
    PK: "ns/ENTITY#key-1",
    SK: "#USAGE#gpt-4#hourly#2024-02-29T10:00:00Z",
    entity_id: "key-1",
    resource: "gpt-4",
    window: "hourly",
    window_start: "2024-02-29T10:00:00Z",
    rpm: 3,
    tpm: -2,
    total_events: 5,
    ttl: 2_000_000_000,
  };

  it("usage as an item counts every number that is not its own", () => {
    expect(decodeUsage(item)).toEqual({
      entityId: "key-1",
      resource: "gpt-4",
      windowType: "hourly",
      windowStart: "2024-02-29T10:00:00Z",
      windowEnd: "2024-02-29T10:59:59Z",
      counters: { rpm: 3, tpm: -2 },
      totalEvents: 5,
    });
    const odd = decodeUsage({ ...item, constructor: 7, toString: 8 });
    expect(odd?.counters).toEqual({ rpm: 3, tpm: -2, constructor: 7, toString: 8 });
  });

  it("an incomplete usage item is not a snapshot", () => {
    for (const missing of ["entity_id", "resource", "window_start"]) {
      const rest = Object.entries(item).filter(([name]) => name !== missing);
      expect(decodeUsage(Object.fromEntries(rest) as Item), missing).toBeUndefined();
    }
  });

  it("usage as an item survives the way through DynamoDB's JSON", () => {
    expect(decodeUsage(decodeItem(encodeItem(item)))).toEqual(decodeUsage(item));
  });
});
