/** Looking without taking: a peek shows exactly what an acquire would find. */

import { invalidityOf, lines } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };

export function readsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a look at the limits shows what is available, with and without a bucket (A128)", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setResource(RESOURCE, ["rpm:100", "tpm:5000"]);
    expect(await limiter.available(USER)).toEqual({ rpm: 100, tpm: 5000 });
    // Looking makes no bucket.
    expect(await repo.buckets.list("user-1")).toEqual([]);
    await limiter.acquire({ ...USER, consume: { rpm: 30 } });
    expect(await limiter.available(USER)).toEqual({ rpm: 70, tpm: 5000 });
  });

  test("a look at the limits is the smallest of the entity and its ancestors (A128)", async () => {
    const { limiter, repo } = await store.open();
    await repo.entities.create({ id: "top" });
    await repo.entities.create({ id: "team", parentId: "top", cascade: true });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await repo.limits.setEntity("user-1", ["rpm:100", "tpm:1000"]);
    await repo.limits.setEntity("team", ["rpm:50", "rpd:10/day"]);
    await repo.limits.setEntity("top", ["tpm:700", "rpm:80"]);
    expect(await limiter.available(USER)).toEqual({ rpm: 50, tpm: 700 });
    await limiter.acquire({ ...USER, consume: { rpm: 40, tpm: 500 } });
    expect(await limiter.available(USER)).toEqual({ rpm: 10, tpm: 200 });
    expect(lines(await limiter.status(USER))).toEqual([
      "user-1/gpt-4 rpm 0/60",
      "user-1/gpt-4 tpm 0/500",
      "team/gpt-4 rpd 0/10",
      "team/gpt-4 rpm 0/10",
      "top/gpt-4 rpm 0/40",
      "top/gpt-4 tpm 0/200",
    ]);
  });

  extra("a look at the limits counts a parent that this process has just made", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rph:10"]);
    await limiter.acquire({ entityId: "team", resource: RESOURCE, consume: { rph: 9 } });
    await limiter.acquire({ ...USER, consume: { rph: 1 } });
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    expect(await limiter.available(USER)).toEqual({ rph: 1 });
    await repo.entities.delete("user-1");
    expect(await limiter.available(USER)).toEqual({ rph: 10 });
  });

  test("a look at the limits tells the time until enough is there, ancestors counted (A129)", async () => {
    const { limiter, repo, time } = await store.open();
    const until = (needed: Record<string, number>) =>
      limiter.timeUntilAvailable({ ...USER, needed });
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("team", ["rpm:60"]);
    expect(await until({ rpm: 60 })).toBe(0);
    // More than the smallest of them can ever hold.
    expect(await until({ rpm: 61 })).toBe(Number.POSITIVE_INFINITY);
    await limiter.acquire({ ...USER, consume: { rpm: 60 } });
    expect(await until({ rpm: 50 })).toBe(50.001);
    expect(await until({ rpm: 0 })).toBe(0);
    expect(await until({})).toBe(0);
    time.advance(50_001);
    expect(await until({ rpm: 50 })).toBe(0);
    await limiter.acquire({ ...USER, consume: { rpm: 50 } });
    const error = await invalidityOf(until({ tpm: 1 }));
    expect(error.field).toBe("needed");
    await invalidityOf(until({ rpm: -1 }));
    await invalidityOf(until({ rpm: 0.5 }));
  });

  test("a look at the limits is right when the time has come, not a moment before (A129)", async () => {
    const { limiter, time } = await store.open();
    const request = { ...USER, limits: ["rpm:7", "rps:3/sec"] };
    await limiter.acquire({ ...request, consume: { rpm: 7 } });
    const seconds = await limiter.timeUntilAvailable({ ...request, needed: { rpm: 2 } });
    time.advance(seconds * 1000 - 2);
    expect((await limiter.tryAcquire({ ...request, consume: { rpm: 2 } })).granted).toBe(false);
    time.advance(2);
    expect((await limiter.tryAcquire({ ...request, consume: { rpm: 2 } })).granted).toBe(true);
  });

  extra("a look at the limits shows debt, and refuses what an acquire would refuse", async () => {
    const { limiter } = await store.open();
    const request = { ...USER, limits: ["rpm:10"] };
    const lease = await limiter.acquire({ ...request, consume: { rpm: 10 } });
    lease.adjust({ rpm: 5 });
    await lease.commit();
    const [status] = await limiter.status(request);
    expect(status).toMatchObject({
      entityId: "user-1",
      resource: RESOURCE,
      limitName: "rpm",
      available: -5,
      requested: 0,
      exceeded: false,
      retryAfterSeconds: 0,
      deficit: 5,
    });
    expect(status?.limit.toString()).toBe("rpm:10/min");
    for (const look of [limiter.status(USER), limiter.available(USER)]) {
      expect((await invalidityOf(look)).field).toBe("limits");
    }
    await invalidityOf(limiter.status({ entityId: "a#b", resource: RESOURCE }));
    await invalidityOf(limiter.available({ entityId: "a", resource: "" }));
  });

  extra("a look at the limits sees what other clients did", async () => {
    const subject = await store.open();
    const request = { ...USER, limits: ["rpm:10"] };
    await subject.limiter.acquire({ ...request, consume: { rpm: 1 } });
    const other = await store.another(subject);
    await other.limiter.acquire({ ...request, consume: { rpm: 4 } });
    // Also when nothing is asked for, and whatever was seen a while ago.
    subject.time.advance(1000);
    const none = await subject.limiter.acquire({ ...request, consume: {} });
    expect(lines(none.statuses)).toEqual(["user-1/gpt-4 rpm 0/5"]);
    expect(await subject.limiter.available(request)).toEqual({ rpm: 5 });
  });
}

export function resourceBucketsContract(store: StoreUnderTest): void {
  const { expect, test } = store.cases;

  test("the buckets of a resource are one for an entity, however it is stored (A177)", async () => {
    const { limiter, repo } = await store.open();
    await limiter.acquire({ ...USER, limits: ["rpm:100"], consume: { rpm: 30 } });
    const capacity = await repo.buckets.capacity(RESOURCE, "rpm");
    expect(capacity).toMatchObject({ totalCapacity: 100, totalAvailable: 70, utilizationPct: 30 });
    expect(capacity.entities).toHaveLength(1);
  });

  test("the buckets of a resource are summed over all entities, or over those without a parent (A178)", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rpm:100"]);
    await repo.entities.create({ id: "a" });
    await repo.entities.create({ id: "b", parentId: "a" });
    await repo.entities.create({ id: "c" });
    for (const [entityId, rpm] of [
      ["a", 20],
      ["b", 50],
      ["c", 10],
    ] as const) {
      await limiter.acquire({ entityId, resource: RESOURCE, consume: { rpm } });
    }
    await limiter.acquire({ entityId: "a", resource: "other", consume: { rpm: 90 } });
    const all = await repo.buckets.capacity(RESOURCE, "rpm");
    expect(all).toMatchObject({ totalCapacity: 300, totalAvailable: 220 });
    const each = all.entities.map(({ entityId, available, utilizationPct }) => [
      entityId,
      available,
      utilizationPct,
    ]);
    expect(each.sort()).toEqual([
      ["a", 80, 20],
      ["b", 50, 50],
      ["c", 90, 10],
    ]);
    const parents = await repo.buckets.capacity(RESOURCE, "rpm", { parentsOnly: true });
    expect(parents).toMatchObject({ totalCapacity: 200, totalAvailable: 170 });
    const none = await repo.buckets.capacity("unknown", "rpm");
    expect(none).toMatchObject({ totalCapacity: 0, totalAvailable: 0, utilizationPct: 0 });
    expect(none.entities).toEqual([]);
  });

  test("the buckets of a resource are listed limit by limit, without the meter of writes (A179)", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
    for (const resource of ["gpt-4", "gpt-4o"]) {
      await limiter.acquire({ ...USER, resource, consume: { rpm: 1, tpm: 10 } });
    }
    const states = await repo.buckets.list("user-1");
    expect(states.map(({ resource, limitName }) => `${resource} ${limitName}`).sort()).toEqual([
      "gpt-4 rpm",
      "gpt-4 tpm",
      "gpt-4o rpm",
      "gpt-4o tpm",
    ]);
    const one = await repo.buckets.list("user-1", { resource: "gpt-4" });
    expect(one).toHaveLength(2);
    expect(one.find(({ limitName }) => limitName === "tpm")).toMatchObject({
      entityId: "user-1",
      tokens: 990,
      capacity: 1000,
      totalConsumed: 10,
      shard: 0,
      shardCount: 1,
    });
    expect(await repo.buckets.list("unknown")).toEqual([]);
  });
}
