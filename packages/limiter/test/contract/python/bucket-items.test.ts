/** Buckets that the Python library 0.17 wrote: what is in them survives, and is not ignored. */

import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, it } from "vitest";
import { describeItemStores, type LimiterStore, type Subject } from "../limiter/limiter-stores.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Just after the golden items were written. */
const WRITTEN_MS = 1_794_827_900_000;
/** Not in the past, where a local DynamoDB would delete what expires. */
const START_MS = afterReset(Math.max(Date.now(), WRITTEN_MS));

/** Quotas reset on the hour: no test begins in the minutes about one. */
function afterReset(nowMs: number): number {
  const intoHourMs = nowMs % HOUR_MS;
  const isNear = intoHourMs < 3 * MINUTE_MS || intoHourMs > 57 * MINUTE_MS;
  return isNear ? nowMs + 6 * MINUTE_MS : nowMs;
}

/** A limiter on a table that has these items, as old as they were then. */
async function opened(store: LimiterStore, ...files: string[]) {
  const time = new VirtualTime(START_MS);
  const subject = await store.open({ time });
  const { namespaceId } = subject.repo;
  const puts = files.flatMap((file) => pythonItems(file, namespaceId)).map(asOldAsThen);
  await itemsOf(store).writeMany({ puts });
  return subject;
}

/** The base time decides whether a write moves it, so it must not depend on the day of the test. */
function asOldAsThen(item: Item): Item {
  const { rf } = item;
  return typeof rf === "number" ? { ...item, rf: rf + START_MS - WRITTEN_MS } : item;
}

function itemsOf({ place }: LimiterStore) {
  if (place.items === undefined) throw new Error("Buckets are no items here");
  return place.items;
}

async function read(store: LimiterStore, subject: Subject, file: string, at = 0): Promise<Item> {
  const { PK, SK } = pythonItems(file, subject.repo.namespaceId)[at] as Item;
  const item = await itemsOf(store).get({ PK, SK }, { consistent: true });
  if (item === undefined) throw new Error(`${PK} is gone`);
  return item;
}

/** Everything but what a consume may change. */
function unchangeable(item: Item, ...limits: string[]): Record<string, unknown> {
  const changes = limits.flatMap((name) => ["tk", "tc", "rr"].map((one) => `b_${name}_${one}`));
  const aside = new Set([...changes, "ac", "wm", "cv", "cs", "b_wcu_tk"]);
  return Object.fromEntries(Object.entries(item).filter(([name]) => !aside.has(name)));
}

/** Makes windows of a form that only a later version of Python may have. */
async function spoil(store: LimiterStore, subject: Subject): Promise<void> {
  const config = await read(store, subject, "40-config-resource-schedules");
  const bucket = await read(store, subject, "41-bucket-schedules");
  await itemsOf(store).update(config, { set: { l_rpm_sched: "2h9s500" } });
  await itemsOf(store).update(bucket, { set: { sched: "2h9s500" } });
}

describeItemStores("a bucket that the Python library wrote", (store) => {
  it("a bucket of Python keeps schedules, base time and ttl until its quota resets (H3, H9, H10)", async () => {
    const files = ["40-config-resource-schedules", "41-bucket-schedules"] as const;
    const subject = await opened(store, ...files);
    await spoil(store, subject);
    const before = await read(store, subject, files[1]);
    const call = { entityId: "u1", resource: "sched" };
    for (const waitMs of [0, 1000, MINUTE_MS, MINUTE_MS]) {
      subject.time.advance(waitMs);
      // The clock of the test is ahead of the one by which the item expires.
      await itemsOf(store).update(before, {
        set: { ttl: Math.floor(subject.time.nowMs / 1000) + 9 },
      });
      const now = await read(store, subject, files[1]);
      const other = await store.another(subject);
      const lease = await other.limiter.acquire({ ...call, consume: { tpm: 10 } });
      lease.adjust({ tpm: 5 });
      await lease.commit();
      const after = await read(store, subject, files[1]);
      expect(unchangeable(after, "tpm")).toEqual(unchangeable(now, "tpm"));
      expect(after.rf).toBe(before.rf);
      const statuses = await other.limiter.status(call);
      const status = statuses.find(({ limitName }) => limitName === "tpm");
      const expected = waitMs < 60_000 ? 49_900 : 49_985;
      expect(status?.available).toBeGreaterThanOrEqual(expected);
    }
    const after = await read(store, subject, files[1]);
    expect(after.b_tpm_tc).toBe(Number(before.b_tpm_tc) + 4 * 15_000);
    const rate = subject.limiter.acquire({ ...call, consume: { rpd: 1 }, limits: ["rpd:5"] });
    expect(await failureOf(rate)).toBeInstanceOf(ValidationError);
    expect(await read(store, subject, files[1])).toEqual(after);
    subject.time.advance(DAY_MS);
    await itemsOf(store).update(before, { remove: ["ttl"] });
    await subject.limiter.acquire({ ...call, consume: { rpd: 1 } });
    const reset = await read(store, subject, files[1]);
    // By the base time the Python library knows that the quota was reset; the schedule stays.
    expect(reset).toMatchObject({ rf: subject.time.clock(), b_rpd_tk: 9_999_000, b_rpd_gc: 1 });
    expect(Number(reset.vu)).toBeGreaterThan(subject.time.nowMs);
    for (const name of ["b_rpm_tk", "b_rpm_sched", "sched", "rsched", "sched_tz"]) {
      expect(reset[name]).toEqual(before[name]);
    }
  });

  it("a bucket of Python takes a changed limit without moving the base time of a quota (H10)", async () => {
    const subject = await opened(store, "40-config-resource-schedules", "41-bucket-schedules");
    const { limiter, repo, time } = subject;
    await spoil(store, subject);
    const before = await read(store, subject, "41-bucket-schedules");
    const call = { entityId: "u1", resource: "sched" };
    await repo.limits.setResource("sched", ["tpm:600", "rpd:10000/day America/New_York"]);
    time.advance(10_000);
    await limiter.acquire({ ...call, consume: { tpm: 100 } });
    const after = await read(store, subject, "41-bucket-schedules");
    expect(after).toMatchObject({ rf: before.rf, b_tpm_cp: 600_000, b_tpm_ra: 600_000 });
    const own = new Set(["rn", "vu", "b_rpd_pe"]);
    const ours = (name: string) => name.startsWith("b_tpm_") || own.has(name);
    const others = (item: Item) =>
      Object.fromEntries(Object.entries(unchangeable(item)).filter(([name]) => !ours(name)));
    expect(others(after)).toEqual(others(before));
    const tpm = (statuses: readonly LimitStatus[]) =>
      statuses.find(({ limitName }) => limitName === "tpm");
    expect(tpm(await limiter.status(call))).toMatchObject({ available: 500 });
    time.advance(6000);
    const other = await store.another(subject);
    expect(tpm(await other.limiter.status(call))).toMatchObject({ available: 560 });
  });

  it("a limit that no schedule of the item applies to is added to a bucket of Python (H3)", async () => {
    const subject = await opened(store, "40-config-resource-schedules", "41-bucket-schedules");
    const { limiter, repo } = subject;
    await repo.limits.setResource("sched", ["tpm:50000", "own:5"]);
    await limiter.acquire({ entityId: "u1", resource: "sched", consume: { own: 1 } });
    expect(await read(store, subject, "41-bucket-schedules")).toMatchObject({
      b_own_cp: 5000,
      b_own_tc: 1000,
      b_own_sched: "-",
      b_own_rsched: "-",
    });
    const [own] = await limiter.status({ entityId: "u1", resource: "sched" });
    expect(own).toMatchObject({ limitName: "own", available: 4 });
  });

  it("a session of Python that is over is opened again, and the limit next to it is kept (H6)", async () => {
    const files = ["42-config-resource-session-quota", "43-bucket-session-quota"] as const;
    const subject = await opened(store, ...files);
    const before = await read(store, subject, files[1]);
    const call = { entityId: "u1", resource: "session" };
    await subject.limiter.acquire({ ...call, consume: { rpm: 1 } });
    const after = await read(store, subject, files[1]);
    expect(unchangeable(after, "rpm")).toEqual(unchangeable(before, "rpm"));
    // Its window was over long ago.
    const lease = await subject.limiter.acquire({ ...call, consume: { session: 1 } });
    const nowMs = subject.time.clock();
    expect(lease.statuses.find(({ kind }) => kind === "session")).toMatchObject({
      available: 9999,
      used: 1,
      resetsAtMs: nowMs + 18_000_000,
    });
    expect(await read(store, subject, files[1])).toMatchObject({
      b_session_tk: 9_999_000,
      b_session_ws: nowMs,
      b_session_wa: nowMs,
      b_session_gc: 1,
      vu: nowMs + 18_000_000,
    });
  });

  it("a bucket that is stamped as switched off refuses while the config is cached (H1)", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.limits.setResource("dis", ["rpm:100"]);
    const call = { entityId: "u1", resource: "dis", consume: { rpm: 1 } };
    await limiter.acquire(call);
    const { namespaceId } = repo;
    const config = { PK: `${namespaceId}/RESOURCE#dis`, SK: "#CONFIG" };
    const bucket = { PK: `${namespaceId}/BUCKET#u1#dis#0`, SK: "#STATE" };
    await itemsOf(store).update(config, { set: { disabled: true } });
    await itemsOf(store).update(bucket, { set: { disabled: true } });
    for (const request of [call, { ...call, limits: ["rpm:100"] }]) {
      const error = await failureOf(limiter.acquire(request));
      expect(error).toBeInstanceOf(ResourceDisabled);
      expect(error).toMatchObject({ level: "resource" });
    }
    expect(await itemsOf(store).get(bucket)).toMatchObject({ b_rpm_tc: 1000, disabled: true });
    // Switched on again: the config decides, also where a stamp was left behind.
    await itemsOf(store).update(config, { set: { disabled: false } });
    const other = await store.another(subject);
    await other.limiter.acquire(call);
    await other.limiter.acquire({ ...call, limits: ["rpm:100"] });
    expect(await itemsOf(store).get(bucket)).toMatchObject({ b_rpm_tc: 3000, disabled: true });
  });

  it("a bucket of Python keeps its cascade policy, which is followed (H2)", async () => {
    const files = [
      "52-config-resource-cascade",
      "53-entity-meta-pgen-pinc",
      "54-buckets-owner-stamps",
    ];
    const subject = await opened(store, ...files);
    const [child, parent] = pythonItems(files[2] as string, subject.repo.namespaceId);
    const call = { entityId: "user-1", resource: "casc", consume: { rpm: 1 } };
    for (const waitMs of [0, 61_000, 61_000]) {
      subject.time.advance(waitMs);
      const other = await store.another(subject);
      const lease = await other.limiter.acquire(call);
      expect(lease.statuses.map(({ entityId }) => entityId)).toEqual(["user-1", "org-a"]);
    }
    const childNow = await read(store, subject, files[2] as string, 0);
    const parentNow = await read(store, subject, files[2] as string, 1);
    const stamps = ["cascade", "parent_id", "pgen", "pinc"];
    for (const name of stamps) {
      expect(childNow[name], name).toEqual(child?.[name]);
      expect(parentNow[name], name).toEqual(parent?.[name]);
    }
    expect([childNow.b_rpm_tc, parentNow.b_rpm_tc]).toEqual([4000, 4000]);
  });

  it("a bucket is created by the cascade policy of Python, with the stamps of its owner (H2)", async () => {
    const subject = await opened(store, "52-config-resource-cascade", "53-entity-meta-pgen-pinc");
    const { repo, limiter } = subject;
    const [owner] = pythonItems("53-entity-meta-pgen-pinc", repo.namespaceId);
    const call = { entityId: "user-1", resource: "casc", consume: { rpm: 1 } };
    const lease = await limiter.acquire(call);
    expect(lease.statuses.map(({ entityId }) => entityId)).toEqual(["user-1", "org-a"]);
    const key = { PK: `${repo.namespaceId}/BUCKET#user-1#casc#0`, SK: "#STATE" };
    expect(await itemsOf(store).get(key, { consistent: true })).toMatchObject({
      cascade: true,
      parent_id: "org-a",
      pgen: owner?.pgen,
      pinc: owner?.pinc,
    });
  });

  it("a bucket from before there were shards is consumed from and adjusted as it is", async () => {
    const subject = await store.open();
    const call = { entityId: "user-1", resource: "api", limits: ["rpm:60"], consume: { rpm: 1 } };
    await subject.limiter.acquire(call);
    const key = bucketKey(subject.repo.namespaceId, call.entityId, call.resource, 0);
    await itemsOf(store).update(key, { remove: ["shard_count"] });
    const other = await store.another(subject);
    for (let round = 0; round < 3; round += 1) {
      const lease = await other.limiter.acquire(call);
      lease.adjust({ rpm: 2 });
      await lease.commit();
    }
    const item = await itemsOf(store).get(key, { consistent: true });
    expect(item).toMatchObject({ b_rpm_tk: 50_000, b_rpm_tc: 10_000 });
    expect(item).not.toHaveProperty("shard_count");
  });

  it("a bucket keeps the stamp of a soft limit when another limit is consumed", async () => {
    const subject = await opened(store, "50-config-resource-soft", "51-bucket-soft");
    const before = await read(store, subject, "51-bucket-soft");
    const call = { entityId: String(before.entity_id), resource: String(before.resource) };
    await subject.limiter.acquire({ ...call, consume: { rpm: 1 } });
    const after = await read(store, subject, "51-bucket-soft");
    expect(unchangeable(after, "rpm")).toEqual(unchangeable(before, "rpm"));
  });

  it("a bucket of Python takes flags and stamps along to the shards of a split (H1, H2)", async () => {
    const subject = await opened(store, "54-buckets-owner-stamps");
    const { namespaceId } = subject.repo;
    const [child] = pythonItems("54-buckets-owner-stamps", namespaceId);
    const stamps = { disabled: true, bypass: 5, b_rpm_soft: 7 };
    await itemsOf(store).update(child as Item, { set: stamps });
    const target = { namespaceId, entityId: "user-1", resource: "casc" };
    await splitShard(itemsOf(store), target, 0, subject.time.nowMs);
    const key = { PK: `${namespaceId}/BUCKET#user-1#casc#1`, SK: "#STATE" };
    const { cascade, parent_id, pgen, pinc } = child as Item;
    const made = await itemsOf(store).get(key, { consistent: true });
    expect(made).toMatchObject({ ...stamps, cascade, parent_id, pgen, pinc, shard_count: 2 });
  });
});
