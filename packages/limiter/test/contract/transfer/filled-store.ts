/** Stores with generated contents: every kind of record, and buckets in every state. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";

export const RESOURCES = ["api", "gpt-4", "o1/mini"] as const;
const DEBTS = { every: "month", timeZone: "Europe/Berlin", carry: "debt" } as const;
const RESTS = { every: "day", carry: "both", carryMax: 30 } as const;
const LIMITS = [
  ["rpm:60", Limit.quota("units", 40, DEBTS)],
  ["rpm:7/min", "units:1000/13s", Limit.quota("tpd", 90, RESTS)],
  ["tpd:5000/day", "calls:3/7s", "burst:9/session:1hour"],
] as const;

/** A clock that a test moves. */
export class MovedClock {
  nowMs = Date.now();
  readonly clock = () => this.nowMs;
}

export interface FillOptions {
  readonly seed: number;
  readonly time: MovedClock;
  /** The items underneath, where buckets are items: some are split. */
  readonly items?: ItemStore | undefined;
  readonly calls?: number;
}

/** Fills a namespace; returns the ids of its entities. */
export async function fill(
  repo: Repository,
  { seed, time, items, calls = 60 }: FillOptions,
): Promise<string[]> {
  const random = seededRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  const one = <T>(of: readonly T[]): T => of[below(of.length)] as T;
  const ids = await createEntities(repo, one, below);
  await setLimits(repo, ids, one);
  const limiter = new RateLimiter(repo);
  for (let call = 0; call < calls; call += 1) {
    time.nowMs += below(900);
    const request = { entityId: one([...ids, "anyone"]), resource: one(RESOURCES) };
    const decision = await limiter.tryAcquire({
      ...request,
      consume: { [one(["rpm", "calls", "units", "tpd", "burst"])]: 1 + below(5) },
      missingLimits: "ignore",
    });
    if (!decision.granted) continue;
    const kind = below(6);
    const [limit = "rpm"] = Object.keys(decision.lease.consumed);
    if (kind === 0) await decision.lease.rollback();
    else if (kind === 1) decision.lease.adjust({ [limit]: below(40) });
    if (kind > 0) await decision.lease.commit();
  }
  for (const resource of RESOURCES) {
    const [state] = await repo[INTERNALS].buckets.list(ids[0] as string, resource);
    if (state === undefined) continue;
    const bucket = { entityId: ids[0] as string, resource };
    const amounts = { [state.limitName]: 1 + below(3) };
    await repo.buckets.topUp({ ...bucket, amounts, idempotencyKey: `order-${below(9)}` });
  }
  await stopQuota(repo);
  await repo.limits.disable({ entityId: one(ids), resource: "o1/mini" });
  await repo.prices.set("gpt-4", { input: `${2 + below(5)}.5`, output: "10" });
  await repo[INTERNALS].notes.set("seen", { seed });
  if (items !== undefined) await splitSome(repo, items, ids, time, below);
  return [...ids, "anyone"];
}

const STOPPED = { entityId: "stopped", resource: "api" };

/** Removes a quota inside of its period: its balance waits in the bucket. */
async function stopQuota(repo: Repository): Promise<void> {
  const limiter = new RateLimiter(repo);
  await resumeQuota(repo);
  await limiter.acquire({ ...STOPPED, consume: { units: 7 } });
  await repo.limits.setEntity(STOPPED.entityId, ["rpm:60"], { resource: STOPPED.resource });
  await limiter.acquire({ ...STOPPED, consume: { rpm: 1 } });
}

/** Brings the quota back; returns what a call finds in it. */
export async function resumeQuota(repo: Repository): Promise<number | undefined> {
  const limits = ["rpm:60", Limit.quota("units", 40, DEBTS)];
  await repo.limits.setEntity(STOPPED.entityId, limits, { resource: STOPPED.resource });
  await new RateLimiter(repo).acquire({ ...STOPPED, consume: { units: 1 } });
  const states = await repo[INTERNALS].buckets.list(STOPPED.entityId, STOPPED.resource);
  return states.find(({ limitName }) => limitName === "units")?.balanceMilli;
}

async function createEntities(
  repo: Repository,
  one: <T>(of: readonly T[]) => T,
  below: (count: number) => number,
): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < 5; at += 1) {
    const id = `e-${at}-${below(100)}`;
    const parent = at > 0 && below(3) > 0 ? { parentId: one(ids), cascade: below(2) === 0 } : {};
    await repo.entities.create({ id, metadata: { plan: one(["a", "b"]), at }, ...parent });
    ids.push(id);
  }
  return ids;
}

async function setLimits(
  repo: Repository,
  ids: readonly string[],
  one: <T>(of: readonly T[]) => T,
): Promise<void> {
  const { limits } = repo;
  await limits.setSystem([...one(LIMITS), "extra:900/day"], { onUnavailable: "allow" });
  await limits.setResource("gpt-4", [...one(LIMITS)], { principal: "ops" });
  await limits.setEntity(one(ids), [...one(LIMITS)], { resource: "gpt-4" });
  await limits.setEntity(one(ids), [...one(LIMITS)]);
  await limits.setEntity(one(ids), ["rpm:500"], { resource: "@all" });
  await limits.setChildren(ids[0] as string, [...one(LIMITS)]);
  await limits.setResource("gone", ["rpm:1"]);
  await limits.deleteResource("gone");
  await limits.bypass({ entityId: one(ids), resource: "api" });
}

/** Splits every other bucket of an item store, so that shards have to be joined. */
async function splitSome(
  repo: Repository,
  items: ItemStore,
  ids: readonly string[],
  time: MovedClock,
  below: (count: number) => number,
): Promise<void> {
  const { namespaceId } = repo;
  for (const entityId of ids) {
    for (const resource of RESOURCES) {
      const [state] = await repo[INTERNALS].buckets.list(entityId, resource);
      if (state === undefined || below(2) === 0) continue;
      await splitInto(items, { namespaceId, entityId, resource }, 4, time.nowMs);
    }
  }
}
