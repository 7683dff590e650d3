/** Cached limits: which are cached, for how long, and what reads cost. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { ConfigCache, type ConfigSlot } from "@zae-limiter/limiter/records/config/config-cache.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { CallCounter, describeStores } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";

async function rpm(repo: Repository, entityId = "user-1", resource = "gpt-4") {
  return (await repo.limits.resolve(entityId, resource))?.limits[0]?.capacity;
}

/** A clock that does not advance until it is moved. */
function standingClock() {
  let now = Date.now();
  return {
    clock: () => now,
    advance: (ms: number) => {
      now += ms;
    },
  };
}

describeStores("the cache of limits", (store) => {
  it("the cache of limits finds out with one request, and then with none (A206)", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    await repo.limits.setSystem(["rpm:1"]);
    expect(await counter.during(() => repo.limits.resolve("user-1", "gpt-4"))).toBe(1);
    expect(repo.limits.cacheStats()).toEqual({ hits: 0, misses: 4, size: 4, ttlSeconds: 60 });
    expect(await counter.during(() => repo.limits.resolve("user-1", "gpt-4"))).toBe(0);
    expect(repo.limits.cacheStats()).toEqual({ hits: 4, misses: 4, size: 4, ttlSeconds: 60 });
  });

  it("the cache of limits asks only for what it does not know (A206)", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    await repo.limits.setSystem(["rpm:1"]);
    await repo.limits.setEntity("user-2", ["rpm:2"]);
    await repo.limits.resolve("user-1", "gpt-4");
    expect(await counter.during(() => repo.limits.resolve("user-2", "gpt-4"))).toBe(1);
    expect(repo.limits.cacheStats()).toMatchObject({ hits: 2, misses: 6, size: 6 });
    expect(await rpm(repo, "user-2")).toBe(2);
    expect(await counter.during(() => repo.limits.resolve("user-2", "gpt-3"))).toBe(1);
    expect(repo.limits.cacheStats()).toMatchObject({ hits: 8, misses: 8, size: 8 });
  });

  it("the cache of limits remembers that there is nothing (A206)", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    expect(await repo.limits.resolve("user-1", "gpt-4")).toBeUndefined();
    const again = () => repo.limits.resolve("user-1", "gpt-4");
    expect(await counter.during(again)).toBe(0);
    expect(repo.limits.cacheStats()).toMatchObject({ hits: 4, misses: 4, size: 4 });
  });

  it("the cache of limits asks again when the time is over, and not before (A206)", async () => {
    const counter = new CallCounter();
    const { clock, advance } = standingClock();
    const options = { onCall: counter.onCall, clock, configCacheTtlSeconds: 5 };
    const repo = await store.open(options);
    const again = () => repo.limits.resolve("user-1", "gpt-4");
    await again();
    advance(5000);
    expect(await counter.during(again)).toBe(0);
    advance(1);
    expect(await counter.during(again)).toBe(1);
    expect(repo.limits.cacheStats()).toEqual({ hits: 4, misses: 8, size: 4, ttlSeconds: 5 });
  });

  it("the cache of limits asks every time when it is turned off (A206)", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall, configCacheTtlSeconds: 0 });
    await repo.limits.setSystem(["rpm:1"]);
    const again = () => repo.limits.resolve("user-1", "gpt-4");
    expect(await counter.during(again)).toBe(1);
    expect(await counter.during(again)).toBe(1);
    expect(repo.limits.cacheStats()).toEqual({ hits: 0, misses: 8, size: 0, ttlSeconds: 0 });
    const other = await store.open({ namespace: repo.namespaceName });
    await other.limits.setSystem(["rpm:2"]);
    expect(await rpm(repo)).toBe(2);
  });

  it("the cache of limits forgets on request and keeps its counters (A206)", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    await repo.limits.resolve("user-1", "gpt-4");
    await repo.limits.resolve("user-1", "gpt-4");
    repo.limits.invalidateCache();
    expect(repo.limits.cacheStats()).toEqual({ hits: 4, misses: 4, size: 0, ttlSeconds: 60 });
    expect(await counter.during(() => repo.limits.resolve("user-1", "gpt-4"))).toBe(1);
  });

  it("the cache of limits shows every change to the process that made it, at once (A136, B17)", async () => {
    const repo = await store.open();
    const { limits } = repo;
    expect(await rpm(repo)).toBeUndefined();
    await limits.setSystem(["rpm:1"]);
    expect(await rpm(repo)).toBe(1);
    await limits.setResource("gpt-4", ["rpm:2"]);
    expect(await rpm(repo)).toBe(2);
    await limits.setEntity("user-1", ["rpm:3"]);
    expect(await rpm(repo)).toBe(3);
    await limits.setEntity("user-1", ["rpm:4"], { resource: "gpt-4" });
    expect(await rpm(repo)).toBe(4);
    await limits.setEntity("user-1", ["rpm:5"], { resource: "gpt-4" });
    expect(await rpm(repo)).toBe(5);
    await limits.deleteEntity("user-1", { resource: "gpt-4" });
    expect(await rpm(repo)).toBe(3);
    await repo.entities.delete("user-1");
    expect(await rpm(repo)).toBe(2);
    await limits.deleteResource("gpt-4");
    expect(await rpm(repo)).toBe(1);
    await limits.deleteSystem();
    expect(await rpm(repo)).toBeUndefined();
  });

  it("the cache of limits keeps what a change of its own did not touch", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    await repo.limits.setSystem(["rpm:1"]);
    await repo.limits.resolve("user-1", "gpt-4");
    await repo.limits.resolve("user-2", "gpt-4");
    const { misses } = repo.limits.cacheStats();
    await repo.limits.setEntity("user-1", ["rpm:2"], { resource: "gpt-4" });
    await repo.limits.resolve("user-2", "gpt-4");
    // Only the record that carries the version was asked for again.
    expect(repo.limits.cacheStats().misses - misses).toBe(1);
  });

  it("the cache of limits shows a change of another process after the time at the latest", async () => {
    const { clock, advance } = standingClock();
    const mine = await store.open({ clock });
    const theirs = await store.open({ namespace: mine.namespaceName });
    await theirs.limits.setEntity("user-1", ["rpm:1"], { resource: "gpt-4" });
    expect(await rpm(mine)).toBe(1);
    await theirs.limits.setEntity("user-1", ["rpm:2"], { resource: "gpt-4" });
    expect(await rpm(mine)).toBe(1);
    advance(60_001);
    expect(await rpm(mine)).toBe(2);
  });

  it("the cache of limits forgets everything older than a version it has seen", async () => {
    const { clock, advance } = standingClock();
    const mine = await store.open({ clock });
    const theirs = await store.open({ namespace: mine.namespaceName });
    await theirs.limits.setEntity("user-2", ["rpm:1"]);
    await mine.limits.resolve("user-1", "gpt-4");
    advance(30_000);
    expect(await rpm(mine, "user-2")).toBe(1);
    await theirs.limits.setEntity("user-2", ["rpm:2"]);
    advance(30_001);
    // What was known of user-2 is fresh for another half minute, but its version is not.
    await mine.limits.resolve("user-1", "gpt-4");
    expect(await rpm(mine, "user-2")).toBe(2);
  });

  it("all repositories of a namespace share one cache of limits, and other namespaces another", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    await repo.limits.setSystem(["rpm:1"]);
    await repo.limits.resolve("user-1", "gpt-4");
    const same = await repo.namespace(repo.namespaceName);
    expect(await counter.during(() => same.limits.resolve("user-1", "gpt-4"))).toBe(0);
    await same.limits.setSystem(["rpm:2"]);
    expect(await rpm(repo)).toBe(2);
    const otherName = `${repo.namespaceName}-b`;
    await repo.namespaces.register(otherName);
    const other = await repo.namespace(otherName);
    expect(other.limits.cacheStats()).toMatchObject({ hits: 0, misses: 0, size: 0 });
    expect(await rpm(other)).toBeUndefined();
  });
});

describe("the cache of limits while a read is on its way", () => {
  it("concurrent callers of the same limits share one read (B31)", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    const held = gate.holdNext();
    const asked = Array.from({ length: 50 }, () => repo.limits.resolve("user-1", "gpt-4"));
    held.release();
    await Promise.all(asked);
    expect(gate.reads).toHaveLength(1);
    // Four levels, the state of the namespace, the version of the table, limits for children.
    expect(gate.reads[0]).toHaveLength(7);
  });

  it("each record is read once when different entities are asked for at once (B31)", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    const ids = Array.from({ length: 20 }, (_, number) => `user-${number}`);
    await Promise.all(ids.map((id) => repo.limits.resolve(id, "gpt-4")));
    const keys = gate.reads.flat().map(({ PK, SK }) => `${PK} ${SK}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys).toHaveLength(2 * 20 + 5);
  });

  it("other callers are answered while one read hangs, also those that must read (B31)", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    await repo.limits.setSystem(["rpm:1"]);
    await repo.limits.resolve("user-1", "gpt-4");
    const held = gate.holdNext();
    const slow = repo.limits.resolve("user-2", "gpt-4");
    await held.reached;
    expect(await rpm(repo, "user-1")).toBe(1);
    expect(await rpm(repo, "user-3")).toBe(1);
    await repo.limits.setEntity("user-4", ["rpm:4"]);
    expect(await rpm(repo, "user-4")).toBe(4);
    held.release();
    expect((await slow)?.source).toBe("system");
  });

  it("all callers that shared a failed read fail, and nothing is cached (A126)", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    await repo.limits.setSystem(["rpm:1"]);
    const failure = new RateLimiterUnavailable("The store is down", { reason: "network" });
    gate.failNext(failure);
    const both = [repo.limits.resolve("user-1", "gpt-4"), repo.limits.resolve("user-1", "gpt-4")];
    expect(await Promise.allSettled(both)).toEqual([
      { status: "rejected", reason: failure },
      { status: "rejected", reason: failure },
    ]);
    expect(repo.limits.cacheStats().size).toBe(0);
    expect(await rpm(repo)).toBe(1);
  });

  it("a result that was read before a change is not remembered", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    const held = gate.holdNext();
    const early = rpm(repo);
    await held.reached;
    await repo.limits.setEntity("user-1", ["rpm:2"]);
    const late = rpm(repo);
    held.release();
    expect(await early).toBe(1);
    expect(await late).toBe(2);
    expect(await rpm(repo)).toBe(2);
  });

  it("a client notices a change of another client at its own next change", async () => {
    const gate = new Gate();
    const mine = await Repository.over(gate.store);
    const theirs = await Repository.over(gate.items);
    await theirs.limits.setEntity("user-2", ["rpm:1"]);
    expect(await rpm(mine, "user-2")).toBe(1);
    const held = gate.holdNext();
    const change = mine.limits.setEntity("user-1", ["rpm:1"]);
    await held.reached;
    await theirs.limits.setEntity("user-2", ["rpm:2"]);
    held.release();
    await change;
    expect(await rpm(mine, "user-2")).toBe(2);
  });

  it("a result that was read before the cache was cleared is not cached", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    const held = gate.holdNext();
    const early = repo.limits.resolve("user-1", "gpt-4");
    await held.reached;
    repo.limits.invalidateCache();
    held.release();
    await early;
    expect(repo.limits.cacheStats().size).toBe(0);
  });

  it("an old version is not taken for a new one when its answer comes late", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    await repo.limits.setSystem(["rpm:1"]);
    const held = gate.holdNext();
    const early = repo.limits.resolve("user-1", "gpt-4");
    await held.reached;
    await repo.limits.setSystem(["rpm:2"]);
    await repo.limits.resolve("user-2", "gpt-3");
    const { size } = repo.limits.cacheStats();
    held.release();
    await early;
    expect(repo.limits.cacheStats().size).toBe(size);
  });
});

describe("the room that the cache takes", () => {
  const slot: ConfigSlot = {
    limits: [],
    onUnavailable: undefined,
    auditRetentionDays: undefined,
    parentId: undefined,
    childrenResources: [],
    inactive: undefined,
    incompatible: undefined,
    unsupported: [],
    disabled: undefined,
    cascade: undefined,
    asOf: 0,
    expiresAtMs: Number.POSITIVE_INFINITY,
  };

  it("the room that the cache takes is bounded, and the longest unused go first", async () => {
    const cache = new ConfigCache({ ttlSeconds: 60, clock: () => 0 });
    const fetch = async (names: readonly string[]) => names.map(() => slot);
    const names = Array.from({ length: 50_000 }, (_, number) => `entity#${number}#gpt-4`);
    await cache.load(names, fetch);
    cache.find(names[0] as string);
    await cache.load(["one more"], fetch);
    expect(cache.stats().size).toBe(50_000);
    expect(cache.find(names[0] as string)).toBe(slot);
    expect(cache.find(names[1] as string)).toBeUndefined();
  });

  it("the room that the cache takes is small for few entities, however many namespaces there are", () => {
    const usedBytes = () => {
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = usedBytes();
    const caches = Array.from(
      { length: 200 },
      () => new ConfigCache({ ttlSeconds: 60, clock: () => 0 }),
    );
    // An array for all the slots of each would be a megabyte and more.
    expect((usedBytes() - before) / caches.length).toBeLessThan(100_000);
  });

  it("the cache is not shared with callers: what they do to an answer stays with them", async () => {
    const repo = await Repository.over(new Gate().store);
    await repo.limits.setSystem(["rpm:1"]);
    const { limits } = (await repo.limits.resolve("user-1", "gpt-4")) ?? { limits: [] };
    expect(() => (limits as Limit[]).pop()).toThrow(TypeError);
    expect(await rpm(repo)).toBe(1);
  });
});
