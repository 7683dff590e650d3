/** Items of Python 0.17 that switches, moves, resets and top-ups leave: read, and left whole. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { decodeVersion, incompatibleIn } from "@zae-limiter/limiter/records/version-record.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { pythonItem, pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { beforeEach, describe, expect, test } from "vitest";

/** Shortly after the items were written. */
const NOW = 1_794_827_880_000;

let items: MemoryItemStore;
let repo: Repository;
let limiter: RateLimiter;

beforeEach(async () => {
  items = new MemoryItemStore({ clock: () => NOW });
  repo = await overTable(items, { clock: () => NOW });
  limiter = new RateLimiter(repo);
});

async function put(...files: string[]): Promise<readonly Item[]> {
  const all = files.flatMap((file) => pythonItems(file, repo.namespaceId));
  for (const item of all) await items.put(item);
  return all;
}

const stored = (item: Item) => items.get(item);

test.each([
  ["44-version-record-after-reset-after", "0.15.0"],
  ["63-version-record-after-top-up", "0.17.0"],
])("the version record %s lets this client in", (file, expected) => {
  const item = pythonItem(file, "ns");
  expect(decodeVersion(item).clientMinVersion).toBe(expected);
  expect(incompatibleIn(item)).toBeUndefined();
});

describe("buckets", () => {
  test("a bucket that is stamped as switched off is refused, and its neighbour is granted", async () => {
    await put("45-config-resource-disabled", "46-config-entity-enabled", "47-buckets-disabled");
    const call = { resource: "dis", consume: { rpm: 1 } };
    const refused = await failureOf(limiter.acquire({ ...call, entityId: "u1" }));
    expect(refused).toBeInstanceOf(ResourceDisabled);
    await limiter.acquire({ ...call, entityId: "u2" });
  });

  test("a bucket under bypass counts what is consumed, and keeps its balance", async () => {
    await repo.limits.setResource("byp", ["rpm:100"]);
    const [, bucket] = await put("48-config-entity-bypass", "49-bucket-bypass");
    const lease = await limiter.acquire({ entityId: "u1", resource: "byp", consume: { rpm: 50 } });
    expect(lease.bypassed).toBe(true);
    expect(await stored(bucket as Item)).toMatchObject({ b_rpm_tc: 58_000, b_rpm_tk: 99_000 });
  });

  test("a bucket that was moved consumes from its new parent", async () => {
    await repo.limits.setResource("casc", ["rpm:100"]);
    await repo.limits.setCascade({ resource: "casc" }, true);
    await repo.entities.create({ id: "org-b" });
    await put("55-entity-meta-after-move", "56-bucket-after-move");
    const { statuses } = await limiter.acquire({
      entityId: "user-1",
      resource: "casc",
      consume: { rpm: 1 },
    });
    expect(statuses.map(({ entityId, available }) => [entityId, available])).toEqual([
      ["user-1", 99],
      ["org-b", 99],
    ]);
  });

  test.each([
    ["42-config-resource-session-quota", "58-bucket-topped-up", "session"],
    ["40-config-resource-schedules", "60-bucket-reset", "sched"],
    ["42-config-resource-session-quota", "61-bucket-session-reset", "session"],
  ])(
    "next to %s, what %s says about quotas survives our acquires",
    async (config, file, resource) => {
      // Just after the items were written, so that no period has ended since.
      const nowMs = 1_794_827_873_000;
      const [store, clock] = [new MemoryItemStore({ clock: () => nowMs }), () => nowMs];
      const then = await overTable(store, { clock });
      const [level] = pythonItems(config, then.namespaceId);
      const [bucket] = pythonItems(file, then.namespaceId);
      for (const item of [level, bucket]) await store.put(item as Item);
      const { limits = [] } = (await then.limits.resolve("u1", resource)) ?? {};
      const rate = limits.find(({ kind }) => kind === "rate");
      const consume = { [rate?.name ?? "none"]: 1 };
      await new RateLimiter(then).acquire({ entityId: "u1", resource, consume });
      const after = (await store.get(bucket as Item)) ?? {};
      const kept = /^(?:rf|vu|sched|rsched|sched_tz|b_(?:session|rpd)_\w+)$/;
      const of = (item: object) => Object.entries(item).filter(([key]) => kept.test(key));
      expect(of(after).length).toBeGreaterThan(5);
      expect(Object.fromEntries(of(after))).toEqual(Object.fromEntries(of(bucket as Item)));
    },
  );
});

test("audit events of Python's new actions are listed", async () => {
  await put("64-audit-events");
  const events = await repo.audit.list("u1");
  expect(events.map(({ action }) => action).sort()).toEqual([
    "bucket_reset",
    "bucket_topped_up",
    "limits_set",
  ]);
});

test("an empty config item that a cleared flag left behind says nothing", async () => {
  await put("73-config-after-clear");
  await repo.limits.setSystem(["rpm:5"]);
  expect(await repo.limits.resolve("e1", "r")).toMatchObject({ source: "system" });
  await limiter.acquire({ entityId: "e1", resource: "r", consume: { rpm: 1 } });
});

test("a shard that Python's aggregator made counts with the one it came from", async () => {
  const nowMs = 1_794_827_928_722;
  const [store, clock] = [new MemoryItemStore({ clock: () => nowMs }), () => nowMs];
  const shared = await overTable(store, { clock });
  await shared.limits.setResource("r", ["rpm:100", "tpm:100 soft"]);
  const shards = pythonItems("68-buckets-aggregator-clone", shared.namespaceId);
  for (const shard of shards) await store.put(shard);
  const client = new RateLimiter(shared);
  const target = { entityId: "u", resource: "r" };
  expect(await client.available(target)).toEqual({ rpm: 100, tpm: -30 });
  const lease = await client.acquire({ ...target, consume: { rpm: 1, tpm: 1 } });
  expect(lease.overdrawn).toEqual(["tpm"]);
  expect(await client.available(target)).toEqual({ rpm: 99, tpm: -31 });
  const after = await Promise.all(shards.map((shard) => store.get(shard)));
  for (const [at, shard] of shards.entries()) {
    const { b_tpm_soft, shard_count, cascade, entity_id } = shard;
    expect(after[at]).toMatchObject({ b_tpm_soft, shard_count, cascade, entity_id });
  }
  const consumed = after.reduce((sum, shard) => sum + Number(shard?.["b_rpm_tc"]), 0);
  expect(consumed).toBe(4000);
});

test("work that Python's provisioner owes stays as it is when limits are written", async () => {
  const [owed] = await put("69-provisioner-pending");
  await repo.limits.setResource("gpt", ["rpm:10"]);
  await repo.limits.disable({ resource: "gpt" });
  await repo.limits.clear({ resource: "gpt" });
  await limiter.acquire({ entityId: "u1", resource: "gpt", consume: { rpm: 1 } });
  expect(await stored(owed as Item)).toEqual(owed);
});
