/** Attributes that acquires and leases write, where buckets are items. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import { failureOf, lines, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeDynamo, describeItemStores, milliOf, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const RPM = { ...USER, limits: ["rpm:100"] };
const BOTH = { ...USER, limits: ["rpm:100", "tpm:10000"] };

describeItemStores("the item of a bucket", (store) => {
  const extra = itUnless(store.slow);

  const item = (subject: Subject) => store.item(subject, "user-1", RESOURCE);

  it("the item of a bucket loses what is consumed, and counts it (A160)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    await limiter.acquire({ ...BOTH, consume: { rpm: 1 } });
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 99_000, b_rpm_tc: 1000 });
    await limiter.acquire({ ...BOTH, consume: { rpm: 2, tpm: 500 } });
    expect(await item(subject)).toMatchObject({
      b_rpm_tk: 97_000,
      b_rpm_tc: 3000,
      b_tpm_tk: 9_500_000,
      b_tpm_tc: 500_000,
    });
    await limiter.acquire({ ...BOTH, consume: { rpm: 7 } });
    expect(await item(subject)).toMatchObject({ b_rpm_tc: 10_000, b_tpm_tc: 500_000 });
  });

  it("the item of a bucket is not written just to refill it (A160)", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    const start = time.nowMs;
    await limiter.acquire({ ...RPM, consume: { rpm: 60 } });
    time.advance(6000);
    await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    // The balance is relative to `rf`: 30 now, and 10 have accrued since.
    expect(await item(subject)).toMatchObject({ rf: start, b_rpm_tk: 30_000, b_rpm_tc: 70_000 });
    expect(await limiter.available(RPM)).toEqual({ rpm: 40 });
    time.advance(120_000);
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    // Full before: what had accrued beyond is forgotten.
    expect(await item(subject)).toMatchObject({ rf: start, b_rpm_tk: 100_000 - 210_000 - 1000 });
    expect(await limiter.available(RPM)).toEqual({ rpm: 99 });
  });

  it("the item of a bucket stays as it is when one limit refuses (A161, A162)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const limits = ["rpm:10", "tpm:5"];
    await limiter.acquire({ ...USER, limits, consume: { rpm: 1 } });
    const before = await item(subject);
    await refusalOf(limiter.acquire({ ...USER, limits, consume: { rpm: 20 } }));
    await refusalOf(limiter.acquire({ ...USER, limits, consume: { rpm: 5, tpm: 10 } }));
    const other = await store.another(subject);
    await refusalOf(other.limiter.acquire({ ...USER, limits, consume: { rpm: 5, tpm: 10 } }));
    expect(await item(subject)).toEqual(before);
  });

  it("the item of a bucket is emptied bite by bite, and no further (A163)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const request = { ...USER, limits: ["rpm:10"], consume: { rpm: 3 } };
    for (const left of [7000, 4000, 1000]) {
      await limiter.acquire(request);
      expect(await item(subject)).toMatchObject({ b_rpm_tk: left });
    }
    const refusal = await refusalOf(limiter.acquire(request));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 3/1!"]);
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 1000, b_rpm_tc: 9000 });
  });

  it("the item of a bucket is made when it is missing, full but for what is consumed (A164)", async () => {
    const subject = await store.open();
    await subject.limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    await store.place.items?.delete(bucketKey(subject.repo.namespaceId, "user-1", RESOURCE, 0));
    // The client still believes in the one that was there.
    const lease = await subject.limiter.acquire({ ...RPM, consume: { rpm: 30 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 30/70"]);
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 70_000, b_rpm_tc: 30_000 });
  });

  it("a bucket is never refused for its meter of writes (A165)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    const key = bucketKey(repo.namespaceId, "user-1", RESOURCE, 0);
    await store.place.items?.update(key, { set: { wm: subject.time.nowMs + 3000 } });
    const other = await store.another(subject);
    const lease = await other.limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/98"]);
    const refusal = await refusalOf(other.limiter.acquire({ ...RPM, consume: { rpm: 99 } }));
    expect(refusal.statuses.map(({ limitName }) => limitName)).toEqual(["rpm"]);
  });

  it("the item of a bucket carries the link to the parent, and the number of shards (A166)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    expect(await item(subject)).toMatchObject({
      cascade: true,
      parent_id: "team",
      shard_count: 1,
    });
    const parent = await store.item(subject, "team", RESOURCE);
    expect(parent).toMatchObject({ cascade: false, shard_count: 1 });
    expect(parent).not.toHaveProperty("parent_id");
  });

  it("an acquire is decided again when another client drained the bucket meanwhile (A167)", async () => {
    const subject = await store.open();
    const other = await store.another(subject);
    const { limiter, time } = subject;
    await limiter.acquire({ ...RPM, consume: {} });
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    await other.limiter.acquire({ ...RPM, consume: { rpm: 79 } });
    const refusal = await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 50 } }));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 50/20!"]);
    time.advance(30_000);
    await other.limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 9 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 9/60"]);
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 10_000, b_rpm_tc: 90_000 });
  });

  it("the item of a bucket is adjusted limit by limit, up and down in one write (A168)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...BOTH, consume: { rpm: 5, tpm: 5 } });
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 95_000, b_tpm_tk: 9_995_000 });
    lease.adjust({ rpm: 3, tpm: -2 });
    await lease.commit();
    expect(await item(subject)).toMatchObject({
      b_rpm_tk: 92_000,
      b_rpm_tc: 8000,
      b_tpm_tk: 9_997_000,
      b_tpm_tc: 3000,
    });
    const before = await item(subject);
    const nothing = await subject.limiter.acquire({ ...BOTH, consume: {} });
    nothing.adjust({ rpm: 0, tpm: 0 });
    await nothing.commit();
    expect(await item(subject)).toEqual(before);
  });

  it("an empty bucket refuses by one failed write, and then from memory for a second (A068)", async () => {
    const faults = new Faults();
    const subject = await store.open({ faults });
    const { limiter, time } = subject;
    const request = { ...RPM, consume: { rpm: 20 } };
    await limiter.acquire(request);
    const other = await store.another(subject);
    await other.limiter.acquire({ ...RPM, consume: { rpm: 80 } });
    faults.requests.splice(0);
    await refusalOf(limiter.acquire(request));
    expect(faults.requests.map(({ operation }) => operation)).toEqual(["update"]);
    await refusalOf(limiter.acquire(request));
    time.advance(900);
    await refusalOf(limiter.acquire(request));
    expect(faults.requests).toHaveLength(1);
    // What others give back is seen after a second at the latest.
    time.advance(100);
    await refusalOf(limiter.acquire(request));
    expect(faults.requests).toHaveLength(2);
    // Own give-backs are seen at once.
    const own = await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    await own.rollback();
    time.advance(11_000);
    await limiter.acquire(request);
  });

  it("an acquire that lost the race of creation is decided by the stored state (A082, A083)", async () => {
    const subject = await store.open();
    const clients = await Promise.all(Array.from({ length: 6 }, () => store.another(subject)));
    const request = { ...RPM, consume: { rpm: 10 } };
    const leases = await Promise.all(clients.map(({ limiter }) => limiter.acquire(request)));
    expect(leases.map(({ consumed }) => consumed)).toEqual(leases.map(() => ({ rpm: 10 })));
    expect(await item(subject)).toMatchObject({ b_rpm_tk: 40_000, b_rpm_tc: 60_000 });
  });

  it("a lost race refuses with the statuses of child and parent (A084)", async () => {
    const subject = await store.open();
    const { repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    const request = { ...USER, limits: ["rpm:10"], consume: { rpm: 6 } };
    const clients = await Promise.all([1, 2, 3].map(() => store.another(subject)));
    const decisions = await Promise.all(clients.map(({ limiter }) => limiter.tryAcquire(request)));
    const granted = decisions.filter((decision) => decision.granted).length;
    // Two that hold one leg each may refuse each other, but never may two be granted.
    expect(granted).toBeLessThanOrEqual(1);
    for (const decision of decisions) {
      if (decision.granted) continue;
      const entities = decision.statuses.map(({ entityId }) => entityId);
      expect(entities).toEqual(["user-1", "team"]);
      expect(decision.violations.length).toBeGreaterThan(0);
    }
    for (const id of ["user-1", "team"]) {
      expect(await milliOf(subject, id, RESOURCE, "rpm")).toEqual({
        balance: 10_000 - granted * 6000,
        consumed: granted * 6000,
      });
    }
  });

  extra("the item of a bucket is created again where another writer left half of it", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const key = bucketKey(repo.namespaceId, "user-1", RESOURCE, 0);
    // The reference leaves such a stub when it gives back to a bucket that is gone.
    const stub: Record<string, Value> = { b_rpm_tk: 5000, b_rpm_tc: -5000 };
    await store.place.items?.put({ ...key, ...stub });
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/99"]);
  });

  extra(
    "the item of a bucket may have a limit without parameters, which then starts full",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await limiter.acquire({ ...BOTH, consume: { rpm: 1 } });
      const key = bucketKey(repo.namespaceId, "user-1", RESOURCE, 0);
      await store.place.items?.update(key, {
        set: { b_tpm_tk: 0 },
        remove: ["b_tpm_cp", "b_tpm_ra", "b_tpm_rp"],
      });
      const other = await store.another(subject);
      const lease = await other.limiter.acquire({ ...BOTH, consume: { rpm: 1, tpm: 1 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/98", "user-1/gpt-4 tpm 1/9999"]);
    },
  );
});

describeItemStores("a write that meets trouble", (store) => {
  const extra = itUnless(store.slow);

  it("a write that meets trouble is repeated while others are on the item, and consumes once (A085, A086)", async () => {
    const faults = new Faults();
    const subject = await store.open({ faults });
    const { limiter } = subject;
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    faults.next("conflict", isBucketOf("user-1", "update"), 3);
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    expect(await store.item(subject, "user-1", RESOURCE)).toMatchObject({ b_rpm_tk: 89_000 });
    faults.next("conflict", isBucketOf("user-1", "transact"), 3);
    await lease.rollback();
    expect(await store.item(subject, "user-1", RESOURCE)).toMatchObject({
      b_rpm_tk: 99_000,
      b_rpm_tc: 1000,
    });
  });

  it("a write that meets trouble is refunded once, however often it is sent", async () => {
    const faults = new Faults();
    const subject = await store.open({ faults });
    const { limiter, repo } = subject;
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    faults.next("lost", isBucketOf("user-1", "transact"), 2);
    await lease.rollback();
    // Whatever is still on its way arrives before the end.
    await repo.close();
    expect(await store.item(subject, "user-1", RESOURCE)).toMatchObject({
      b_rpm_tk: 100_000,
      b_rpm_tc: 0,
    });
  });

  extra("a write that meets trouble is not repeated when its outcome is unknown", async () => {
    const faults = new Faults();
    const subject = await store.open({ faults });
    const { limiter } = subject;
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    faults.next("lost", isBucketOf("user-1", "update"));
    const error = await failureOf(limiter.acquire({ ...RPM, consume: { rpm: 10 } }));
    expect(error).toMatchObject({ name: "RateLimiterUnavailable", nothingWritten: false });
    // It counts as consumed: the safe side.
    expect(await limiter.available(RPM)).toEqual({ rpm: 89 });
  });
});

describeDynamo(
  "a table of the reference",
  (store) => {
    it("a table of the reference serves acquires, leases and cascades like ours", async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.entities.create({ id: "team" });
      await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
      await repo.limits.setSystem(["rpm:10", "tpm:1000"]);
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 4, tpm: 100 } });
      lease.adjust({ tpm: 50 });
      await lease.commit();
      await (await limiter.acquire({ ...USER, consume: { rpm: 4 } })).rollback();
      await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 7 } }));
      time.advance(6000);
      const next = await limiter.acquire({ ...USER, consume: { rpm: 7 } });
      expect(lines(next.statuses)).toEqual([
        "user-1/gpt-4 rpm 7/0",
        "user-1/gpt-4 tpm 0/950",
        "team/gpt-4 rpm 7/0",
        "team/gpt-4 tpm 0/950",
      ]);
      const { entities } = await repo.buckets.capacity(RESOURCE, "rpm");
      expect(entities.map(({ entityId, available }) => [entityId, available]).sort()).toEqual([
        ["team", 0],
        ["user-1", 0],
      ]);
      await repo.limits.setEntity("user-1", ["rpm:50"], { resource: RESOURCE });
      await repo.entities.delete("user-1");
      expect(await repo.buckets.list("user-1")).toEqual([]);
    });
  },
  { gsi2Projection: "ALL", lsis: true },
);
