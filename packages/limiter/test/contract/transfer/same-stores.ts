/** Compares two namespaces as users see them, and their items one by one. */

import { parseBucketKey, STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { expect } from "vitest";
import { type MovedClock, RESOURCES } from "./filled-store.ts";

const AHEAD_MS = [0, 1, 777, 12_345, 3_600_000];

/** Expects that two namespaces are the same, now and later. */
export async function expectSame(
  from: Repository,
  to: Repository,
  ids: readonly string[],
  time: MovedClock,
): Promise<void> {
  expect(await recordsOf(to)).toEqual(await recordsOf(from));
  expect(await auditOf(to)).toEqual(await auditOf(from));
  const limits = await limitsOf(from, ids);
  expect(await limitsOf(to, ids)).toEqual(limits);
  expect(await usageOf(to)).toEqual(await usageOf(from));
  expect(await to.prices.list()).toEqual(await from.prices.list());
  const begunMs = time.nowMs;
  for (const aheadMs of AHEAD_MS) {
    time.nowMs = begunMs + aheadMs;
    // Shards that are full gain nothing while others do, so only their sum at the copy is kept.
    if (aheadMs > 0 && (await hasShards(from, ids))) break;
    const balances = await balancesOf(from, ids);
    expect(await balancesOf(to, ids)).toEqual(balances);
  }
  time.nowMs = begunMs;
}

/** Returns the milli-tokens and totals of all buckets, shards summed. */
export async function balancesOf(
  repo: Repository,
  ids: readonly string[],
): Promise<Record<string, { balance: number; consumed: bigint }>> {
  const sums: Record<string, { balance: number; consumed: bigint }> = {};
  for (const id of ids) {
    for (const state of await repo[INTERNALS].buckets.list(id)) {
      const name = `${id} ${state.resource} ${state.limitName}`;
      const { balance, consumed } = sums[name] ?? { balance: 0, consumed: 0n };
      sums[name] = {
        balance: balance + state.balanceMilli,
        consumed: consumed + BigInt(state.consumedMilli),
      };
    }
  }
  return sums;
}

async function hasShards(repo: Repository, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) {
    const states = await repo[INTERNALS].buckets.list(id);
    if (states.some(({ shardCount }) => shardCount > 1)) return true;
  }
  return false;
}

/** Returns all items but buckets and events, with their keys under one id. */
async function recordsOf(repo: Repository): Promise<Record<string, Item>> {
  const { namespaceId } = repo;
  const store = repo[INTERNALS].records.store as ItemStore;
  const found: Record<string, Item> = {};
  for await (const { PK, SK } of store.query({ index: "GSI4", partition: namespaceId })) {
    if (SK === STATE_SK && parseBucketKey(PK) !== undefined) continue;
    if (SK.startsWith("#AUDIT#")) continue;
    const item = (await store.get({ PK, SK }, { consistent: true })) as Item;
    const keys = Object.entries(item).map(([name, value]) => [
      name,
      /PK$|SK$/.test(name) ? String(value).replace(namespaceId, "NS") : value,
    ]);
    found[`${PK.replace(namespaceId, "NS")} ${SK}`] = Object.fromEntries(keys);
  }
  return found;
}

async function auditOf(repo: Repository) {
  const events = await repo.audit.listAll({ limit: 10_000 });
  return events.filter(({ action }) => action !== "store_copied");
}

async function limitsOf(repo: Repository, ids: readonly string[]) {
  repo.limits.invalidateCache();
  const found: unknown[] = [];
  for (const id of ids) {
    for (const resource of RESOURCES) {
      const resolved = await repo.limits.resolve(id, resource);
      const state = await repo.limits.state({ entityId: id, resource });
      found.push([id, resource, resolved?.limits.map(String), resolved?.source, state]);
    }
  }
  return found;
}

async function usageOf(repo: Repository) {
  const { snapshots } = await repo.usage.snapshots({ limit: 10_000 });
  const summaries = [];
  for (const resource of RESOURCES) summaries.push(await repo.usage.summary({ resource }));
  return { snapshots, summaries };
}
