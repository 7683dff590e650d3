/** Buckets with several shards, where buckets are items: splits, choices, sums. */

import type { LimiterEvent, LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { splitInto, splitShard } from "@zae-limiter/test-support/force-split.ts";
import { failureOf, lines, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, it } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, type LimiterStore, milliOf, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const ONE = { ...USER, consume: { rpm: 1 } };

describeItemStores("a sharded bucket", (store) => {
  const extra = itUnless(store.slow);
  const split = (subject: Subject, count: number, entityId = USER.entityId) =>
    splitInto(itemsOf(store), target(subject, entityId), count, subject.time.nowMs);

  it("a sharded bucket is consumed from on both shards of two (A170)", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await split(subject, 2);
    for (let call = 0; call < 30; call += 1) await subject.limiter.acquire(ONE);
    const shards = await shardsOf(store, subject, 2);
    for (const shard of shards) expect(Number(shard?.b_rpm_tc)).toBeGreaterThan(5000);
    expect(sum(shards, "b_rpm_tc")).toBe(31_000);
    expect(sum(shards, "b_rpm_tk")).toBe(69_000);
  });

  it("a sharded bucket is consumed from where there is enough, with a lease like any other (A171, B3)", async () => {
    const subject = await opened(store, ["rpm:100"]);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await limiter.acquire(ONE);
    await split(subject, 2);
    // The next call has cached shard 0 as full, and finds it drained.
    await drain(store, subject, 0);
    const before = sum(await shardsOf(store, subject, 2), "b_rpm_tc");
    for (let call = 0; call < 4; call += 1) {
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 2 } });
      lease.adjust({ rpm: 3 });
      await lease.commit();
    }
    const shards = await shardsOf(store, subject, 2);
    expect(sum(shards, "b_rpm_tc") - before).toBe(20_000);
    expect(shards[0]).toMatchObject({ b_rpm_tk: 0 });
    expect(await milliOf(subject, "team", RESOURCE, "rpm")).toMatchObject({ consumed: 21_000 });
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 2 } });
    await lease.rollback();
    expect((await shardsOf(store, subject, 2)).map(balance)).toEqual(shards.map(balance));
    expect(sum(await shardsOf(store, subject, 2), "b_rpm_tc") - before).toBe(20_000);
  });

  it("a sharded bucket refuses when all shards are drained, with the sum of what there is (A172)", async () => {
    const subject = await opened(store, ["rpm:10/day", "tpm:100/day"]);
    await split(subject, 4);
    const other = await store.another(subject);
    for (let call = 0; call < 9; call += 1) await subject.limiter.acquire(ONE);
    const refusal = await refusalOf(other.limiter.acquire(ONE));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 1/0!", "user-1/gpt-4 tpm 0/100"]);
    expect(refusal.retryAfterSeconds).toBeGreaterThan(8639);
    expect(refusal.retryAfterSeconds).toBeLessThan(8641);
    subject.time.advance(8_640_000);
    await other.limiter.acquire(ONE);
    await refusalOf(subject.limiter.acquire(ONE));
  });

  it("a bucket with a session is not split, however busy it is: its session is one", async () => {
    const subject = await opened(store, ["rpm:100", "tok:50/session:1hour"]);
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    await subject.limiter.acquire(ONE);
    const shards = await shardsOf(store, subject, 2);
    expect(shards.map((item) => item?.shard_count)).toEqual([1, undefined]);
  });

  it("what is used of a quota is not below zero where not all shards were seen", async () => {
    const subject = await opened(store, ["rpm:1000", "req:1000/day UTC", "tok:10/session:1hour"]);
    await split(subject, 4);
    const other = await store.another(subject);
    for (const client of [subject, other]) {
      const { statuses } = await client.limiter.acquire({ ...USER, consume: { req: 1, tok: 1 } });
      for (const { limitName, limit, available, used } of statuses) {
        if (limitName !== "rpm") expect(used).toBe(limit.capacity - available);
      }
    }
  });

  it("a session of a bucket that has shards is divided among them, odd parts included", async () => {
    const subject = await opened(store, ["rpm:1000"]);
    await split(subject, 4);
    await subject.repo.limits.setResource(RESOURCE, ["rpm:1000", "tok:10/session:1hour"]);
    const call = { ...USER, consume: { tok: 1 } };
    for (const _ of [1, 2]) {
      for (let taken = 0; taken < 10; taken += 1) await subject.limiter.acquire(call);
      await refusalOf(subject.limiter.acquire(call));
      subject.time.advance(3_600_000);
    }
    await subject.limiter.acquire({ ...USER, consume: { tok: 10 } });
    await refusalOf(subject.limiter.acquire(call));
  });

  it("a sharded bucket doubles when its meter of writes is exhausted, and the call succeeds (A173)", async () => {
    const events: LimiterEvent[] = [];
    const subject = await opened(store, ["rpm:100"], { events: (event) => events.push(event) });
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    await subject.limiter.acquire(ONE);
    const shards = await shardsOf(store, subject, 2);
    expect(shards.map((item) => item?.shard_count)).toEqual([2, 2]);
    expect(sum(shards, "b_rpm_tc")).toBe(2000);
    expect(events.filter(({ type }) => type === "split")).toEqual([
      { type: "split", ...USER, shardCount: 2 },
    ]);
    // It knows of the second shard without looking again.
    for (let call = 0; call < 20; call += 1) await subject.limiter.acquire(ONE);
    const used = await shardsOf(store, subject, 2);
    for (const shard of used) expect(Number(shard?.b_rpm_tc)).toBeGreaterThan(2000);
  });

  extra(
    "a sharded bucket stays as it is where splits are not allowed, and the call succeeds",
    async () => {
      const faults = new Faults();
      const subject = await opened(store, ["rpm:100"], { faults });
      subject.time.advance(1000);
      await exhaust(store, subject, 0);
      faults.rule = ({ operation }) => (operation === "transact" ? "denied" : undefined);
      const lease = await subject.limiter.acquire(ONE);
      expect(lease.consumed).toEqual({ rpm: 1 });
      const [item] = await shardsOf(store, subject, 1);
      expect(item).toMatchObject({ shard_count: 1, b_rpm_tc: 2000 });
    },
  );

  it("a sharded bucket learns the real number when others were faster (A174)", async () => {
    const subject = await opened(store, ["rpm:1000"]);
    const others = [await store.another(subject), await store.another(subject)];
    for (const other of others) await other.limiter.acquire(ONE);
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    await Promise.all([subject, ...others].map(({ limiter }) => limiter.acquire(ONE)));
    expect((await shardsOf(store, subject, 4)).map((item) => item?.shard_count)).toEqual([
      2,
      2,
      undefined,
      undefined,
    ]);
    for (const { limiter } of [subject, ...others]) {
      for (let call = 0; call < 8; call += 1) await limiter.acquire(ONE);
    }
    const shards = await shardsOf(store, subject, 2);
    expect(sum(shards, "b_rpm_tc")).toBe(30_000);
    for (const shard of shards) expect(Number(shard?.b_rpm_tc)).toBeGreaterThan(6000);
  });

  extra("a sharded bucket warns at the last doubling, and stays there (A174)", async () => {
    const warnings: LimiterWarning[] = [];
    const onWarning = (warning: LimiterWarning) => warnings.push(warning);
    const subject = await opened(store, ["rpm:100000"], { onWarning });
    await split(subject, 32);
    // It has to know of the shards for a second before it makes more of them.
    await subject.limiter.acquire(ONE);
    subject.time.advance(1000);
    for (const [shard] of (await shardsOf(store, subject, 32)).entries()) {
      await exhaust(store, subject, shard);
    }
    await subject.limiter.acquire(ONE);
    expect(warnings).toEqual([{ kind: "shards_exhausted", ...USER, shardCount: 64 }]);
    subject.time.advance(1000);
    for (const [shard, item] of (await shardsOf(store, subject, 64)).entries()) {
      if (item !== undefined) await exhaust(store, subject, shard);
    }
    for (let call = 0; call < 8; call += 1) await subject.limiter.acquire(ONE);
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ shard_count: 64 });
    expect(warnings).toHaveLength(1);
  });

  it("a split that is throttled fails no acquire, and comes with a later one (A174)", async () => {
    const faults = new Faults();
    const subject = await opened(store, ["rpm:100"], { faults, maxAttempts: 1 });
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    faults.rule = (request) =>
      isBucketOf("user-1", "transact")(request) ? "throttled" : undefined;
    await subject.limiter.acquire(ONE);
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({
      shard_count: 1,
      b_rpm_tc: 2000,
    });
    faults.rule = () => undefined;
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    await subject.limiter.acquire(ONE);
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ shard_count: 2 });
  });

  it("a sharded bucket stays on one shard with 2,000 acquires at one per second (A175)", async () => {
    const subject = await opened(store, ["rps:5/sec"]);
    const request = { ...USER, consume: { rps: 1 } };
    // An engine sees the last of them: a meter that never refilled would have five writes left.
    const calls = store.real ? 30 : 2000;
    if (store.real) await exhaust(store, subject, 0, 5);
    for (let second = 0; second < calls; second += 1) {
      subject.time.advance(1000);
      await subject.limiter.acquire(request);
    }
    const [shard, other] = await shardsOf(store, subject, 2);
    expect(shard).toMatchObject({ shard_count: 1 });
    expect(other).toBeUndefined();
  });

  it("a sharded bucket doubles at most once for one exhaustion (A176)", async () => {
    const subject = await opened(store, ["rpm:1000"]);
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    const others = await Promise.all([1, 2, 3].map(() => store.another(subject)));
    await Promise.all([subject, ...others].map(({ limiter }) => limiter.acquire(ONE)));
    for (let call = 0; call < 10; call += 1) await subject.limiter.acquire(ONE);
    subject.time.advance(5000);
    for (let call = 0; call < 10; call += 1) await subject.limiter.acquire(ONE);
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ shard_count: 2 });
  });

  it("a sharded bucket counts once in the capacity of a resource (A177)", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 29 } });
    await split(subject, 2);
    expect(await subject.repo.buckets.capacity(RESOURCE, "rpm")).toEqual({
      resource: RESOURCE,
      limitName: "rpm",
      totalCapacity: 100,
      totalAvailable: 70,
      utilizationPct: 30,
      entities: [{ entityId: "user-1", capacity: 100, available: 70, utilizationPct: 30 }],
    });
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 70 });
    expect(lines(await subject.limiter.status(USER))).toEqual(["user-1/gpt-4 rpm 0/70"]);
  });

  it("a sharded bucket adds up over entities, sharded or not (A178)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await repo.entities.create({ id: "parent" });
    await repo.entities.create({ id: "child-1", parentId: "parent" });
    await repo.entities.create({ id: "child-2", parentId: "parent" });
    expect(await repo.buckets.capacity(RESOURCE, "rpm")).toMatchObject({
      totalCapacity: 0,
      totalAvailable: 0,
      utilizationPct: 0,
      entities: [],
    });
    for (const [entityId, rpm] of [
      ["parent", 20],
      ["child-1", 50],
      ["child-2", 10],
    ] as const) {
      await limiter.acquire({ entityId, resource: RESOURCE, consume: { rpm } });
    }
    await split(subject, 4, "child-1");
    const all = await repo.buckets.capacity(RESOURCE, "rpm");
    expect(all).toMatchObject({ totalCapacity: 300, totalAvailable: 220 });
    expect(Object.fromEntries(all.entities.map((one) => [one.entityId, one.available]))).toEqual({
      parent: 80,
      "child-1": 50,
      "child-2": 90,
    });
    const parents = await repo.buckets.capacity(RESOURCE, "rpm", { parentsOnly: true });
    expect(parents.entities.map(({ entityId }) => entityId)).toEqual(["parent"]);
  });

  it("a sharded bucket never shows its meter of writes (A179)", async () => {
    const subject = await opened(store, ["rpm:100", "tpm:1000"]);
    await subject.limiter.acquire({ ...ONE, resource: "other" });
    const states = await subject.repo.buckets.list("user-1");
    expect(states.map(({ resource, limitName }) => `${resource} ${limitName}`).sort()).toEqual([
      "gpt-4 rpm",
      "gpt-4 tpm",
      "other rpm",
      "other tpm",
    ]);
    await split(subject, 2);
    const all = await subject.repo.buckets.list("user-1");
    expect(all).toHaveLength(6);
    expect(new Set(all.map(({ limitName }) => limitName))).toEqual(new Set(["rpm", "tpm"]));
  });

  it("a sharded bucket is listed with all its shards, and a split moves half of the tokens (A180)", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 19 } });
    await subject.limiter.acquire({ ...ONE, resource: "other" });
    subject.time.advance(1000);
    await exhaust(store, subject, 0);
    await subject.limiter.acquire(ONE);
    // 80 and a second's refill, less the one that was taken, in halves: nothing is minted.
    const shards = await shardsOf(store, subject, 2);
    expect(shards).toMatchObject([{ shard_count: 2 }, { shard_count: 2, b_rpm_tc: 0 }]);
    const tokens = shards.map((item) => Number(item?.b_rpm_tk));
    expect((tokens[0] as number) + (tokens[1] as number)).toBe(80_000 + 1666 - 1000);
    expect(tokens[1]).toBe(40_333);
    const listed = await subject.repo.buckets.list("user-1");
    expect(listed.map(({ resource, shard }) => `${resource}#${shard}`).sort()).toEqual([
      "gpt-4#0",
      "gpt-4#1",
      "other#0",
    ]);
  });

  describe("forced to four shards", () => {
    it.each([
      [10, 10],
      [3, 3],
    ])(
      "a bucket forced to four shards, of capacity %d, admits exactly %d",
      async (capacity, admitted) => {
        const subject = await store.open();
        await subject.repo.limits.setSystem([`rpm:${capacity}/day`]);
        const first = await subject.limiter.acquire(ONE);
        await first.rollback();
        await split(subject, 4);
        const others = [subject, await store.another(subject)];
        const outcomes = await Promise.all(
          Array.from({ length: capacity + 6 }, (_, call) =>
            (others[call % 2] as Subject).limiter.tryAcquire(ONE),
          ),
        );
        expect(outcomes.filter(({ granted }) => granted)).toHaveLength(admitted);
        expect(sum(await shardsOf(store, subject, 4), "b_rpm_tc")).toBe(admitted * 1000);
      },
    );

    it("a bucket forced to four shards of 100 per hour, split while in use, admits no more", async () => {
      const subject = await store.open();
      await subject.repo.limits.setSystem(["rpm:100/hour"]);
      await subject.limiter.acquire(ONE);
      const others = [subject, await store.another(subject), await store.another(subject)];
      let granted = 1;
      const burst = async (calls: number) => {
        const outcomes = await Promise.all(
          Array.from({ length: calls }, (_, call) =>
            (others[call % 3] as Subject).limiter.tryAcquire(ONE),
          ),
        );
        granted += outcomes.filter((outcome) => outcome.granted).length;
      };
      await burst(20);
      await split(subject, 2);
      const more = Promise.all([burst(30), split4(store, subject)]);
      await more;
      await burst(70);
      expect(granted).toBe(100);
      const shards = await shardsOf(store, subject, 4);
      expect(shards.map((item) => item?.shard_count)).toEqual([4, 4, 4, 4]);
      expect(sum(shards, "b_rpm_tc")).toBe(100_000);
    });
  });

  it("a sharded bucket takes new limits of its entity in every shard at once", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await split(subject, 4);
    await subject.repo.limits.setEntity("user-1", ["rpm:40", "tpm:8"], { resource: RESOURCE });
    for (const item of await shardsOf(store, subject, 4)) {
      expect(item).toMatchObject({
        b_rpm_cp: 40_000,
        b_tpm_cp: 8000,
        b_tpm_tk: 2000,
        cs: "entity",
      });
      expect(item).not.toHaveProperty("ttl");
    }
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 40, tpm: 8 });
  });

  it("a sharded bucket refunds where it consumed, and adjusts there (B8)", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await split(subject, 4);
    const before = await shardsOf(store, subject, 4);
    // More than any shard holds: several give a part.
    const lease = await subject.limiter.acquire({ ...USER, consume: { rpm: 60 } });
    lease.adjust({ rpm: -20 });
    await lease.flush();
    expect(sum(await shardsOf(store, subject, 4), "b_rpm_tc")).toBe(41_000);
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 59 });
    await lease.rollback();
    expect((await shardsOf(store, subject, 4)).map(balance)).toEqual(before.map(balance));
  });

  it("a sharded bucket is deleted with its entity, shard by shard", async () => {
    const subject = await opened(store, ["rpm:100"]);
    await subject.repo.entities.create({ id: "user-1" });
    await split(subject, 4);
    await subject.repo.entities.delete("user-1");
    expect(await shardsOf(store, subject, 4)).toEqual([undefined, undefined, undefined, undefined]);
    // One that still believes in four shards finds a new bucket.
    await subject.limiter.acquire(ONE);
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 99 });
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ shard_count: 1 });
  });

  it("a sharded bucket consumes from a sharded parent, and refunds it when the child refuses", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await limiter.acquire(ONE);
    await split(subject, 4, "team");
    for (let call = 0; call < 12; call += 1) await limiter.acquire(ONE);
    expect(await limiter.available({ entityId: "team", resource: RESOURCE })).toEqual({ rpm: 87 });
    const other = await store.another(subject);
    await other.limiter.acquire({ ...USER, consume: { rpm: 80 } });
    const refusal = await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 8 } }));
    expect(refusal.violations.map(({ entityId }) => entityId)).toEqual(["user-1", "team"]);
    expect(await limiter.available({ entityId: "team", resource: RESOURCE })).toEqual({ rpm: 7 });
  });

  it("a sharded bucket probes other shards while one is throttled, and splits", async () => {
    const faults = new Faults();
    const subject = await opened(store, ["rpm:1000/day"], { faults });
    // 300 writes a second, most of them by other clients: less would be no reason to split.
    for (let tenth = 0; tenth < 5; tenth += 1) {
      subject.time.advance(100);
      await subject.limiter.acquire(ONE);
      const [first] = await shardsOf(store, subject, 1);
      const set = { wm: Number(first?.["wm"] ?? subject.time.nowMs) + 30 };
      await itemsOf(store).update({ PK: String(first?.PK), SK: String(first?.SK) }, { set });
    }
    faults.rule = ({ operation, partition }) =>
      operation === "update" && partition.endsWith(`#${RESOURCE}#0`) ? "hot" : undefined;
    const lease = await subject.limiter.acquire(ONE);
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/993"]);
    const shards = await shardsOf(store, subject, 2);
    expect(shards).toMatchObject([{ shard_count: 2, b_rpm_tc: 6000 }, { b_rpm_tc: 1000 }]);
    // A table that is throttled is no reason to.
    subject.time.advance(1000);
    faults.rule = ({ operation }) => (operation === "update" ? "throttled" : undefined);
    const impatient = await store.another(subject, { faults, maxAttempts: 1 });
    expect(await failureOf(impatient.limiter.acquire(ONE))).toMatchObject({ reason: "throttled" });
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ shard_count: 2 });
  });
});

async function opened(
  store: LimiterStore,
  limits: string[],
  options: Parameters<LimiterStore["open"]>[0] = {},
): Promise<Subject> {
  const subject = await store.open(options);
  await subject.repo.limits.setSystem(limits);
  const [name = ""] = (limits[0] ?? "").split(":");
  await subject.limiter.acquire({ ...USER, consume: { [name]: 1 } });
  return subject;
}

function itemsOf(store: LimiterStore) {
  const { items } = store.place;
  if (items === undefined) throw new Error(`Buckets are no items in ${store.name}`);
  return items;
}

function target({ repo }: Subject, entityId: string) {
  return { namespaceId: repo.namespaceId, entityId, resource: RESOURCE };
}

/** From two to four, as often as takes come in between. */
async function split4(store: LimiterStore, subject: Subject): Promise<void> {
  for (const shard of [0, 1]) {
    while (
      !(await splitShard(itemsOf(store), target(subject, "user-1"), shard, subject.time.nowMs))
    );
  }
}

async function shardsOf(
  store: LimiterStore,
  { repo }: Subject,
  count: number,
): Promise<(Item | undefined)[]> {
  const keys = Array.from({ length: count }, (_, shard) =>
    bucketKey(repo.namespaceId, USER.entityId, RESOURCE, shard),
  );
  return itemsOf(store).getMany(keys, { consistent: true });
}

/** As if a thousand writes too many had come within a second. */
async function exhaust(
  store: LimiterStore,
  subject: Subject,
  shard: number,
  leftWrites = 0,
): Promise<void> {
  const key = bucketKey(subject.repo.namespaceId, USER.entityId, RESOURCE, shard);
  await itemsOf(store).update(key, { set: { wm: subject.time.nowMs + 1000 - leftWrites } });
}

async function drain(store: LimiterStore, subject: Subject, shard: number): Promise<void> {
  const key = bucketKey(subject.repo.namespaceId, USER.entityId, RESOURCE, shard);
  await itemsOf(store).update(key, { set: { b_rpm_tk: 0 } });
}

function sum(items: readonly (Item | undefined)[], attribute: string): number {
  return items.reduce((total, item) => total + Number(item?.[attribute] ?? 0), 0);
}

function balance(item: Item | undefined): unknown {
  return [item?.b_rpm_tk, item?.b_rpm_tc];
}
