/** The legs of a cascade are items of their own: each may fail alone, and then none counts. */

import { failureOf, lines, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { CHILD, family, RESOURCE, used } from "@zae-limiter/testing/limiter-contract/family.ts";
import { expect, it } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, milliOf, type Subject } from "./limiter-stores.ts";

describeItemStores("the legs of a cascade", (store) => {
  const extra = itUnless(store.slow);

  async function subjectWith(faults: Faults): Promise<Subject> {
    const subject = await store.open({ faults, timeoutMs: 1000 });
    await family(subject, "child", "parent");
    await subject.repo.limits.setSystem(["rpm:100"]);
    await subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    return subject;
  }

  it("the legs of a cascade are refunded to the milli when the parent's fails (A109)", async () => {
    const faults = new Faults();
    const subject = await subjectWith(faults);
    subject.time.advance(1234);
    const before = await milliOf(subject, "child", RESOURCE, "rpm");
    faults.rule = (request) => (isBucketOf("parent", "update")(request) ? "throttled" : undefined);
    const error = await failureOf(subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } }));
    expect(error).toMatchObject({ name: "RateLimiterUnavailable", reason: "throttled" });
    faults.rule = () => undefined;
    expect(await milliOf(subject, "child", RESOURCE, "rpm")).toEqual(before);
    expect(await used(subject, "child", "parent")).toEqual([10, 10]);
  });

  it("the legs of a cascade are decided by what is stored, however often a write fails (A110)", async () => {
    const faults = new Faults();
    const subject = await subjectWith(faults);
    const other = await store.another(subject);
    await other.limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 85 } });
    faults.next("conflict", isBucketOf("parent", "update"), 2);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 5 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 5/85", "parent/api rpm 5/0"]);
  });

  it("the legs that were consumed are refunded when the child's is refused (A111)", async () => {
    const faults = new Faults();
    const subject = await subjectWith(faults);
    const other = await store.another(subject);
    await other.repo.limits.setEntity("child", ["rpm:3"], { resource: RESOURCE });
    // The child has 3 left and the parent 90: only the child's leg is refused.
    const refusal = await refusalOf(subject.limiter.acquire({ ...CHILD, consume: { rpm: 3 + 1 } }));
    expect(refusal.violations.map(({ entityId }) => entityId)).toEqual(["child"]);
    expect(lines(refusal.statuses)[1]).toBe("parent/api rpm 4/90");
    expect(await used(subject, "child", "parent")).toEqual([10, 10]);
    await other.limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 90 } });
    // A refusal is repeated from memory for a second at most.
    subject.time.advance(1000);
    faults.requests.splice(0);
    const both = await refusalOf(subject.limiter.acquire({ ...CHILD, consume: { rpm: 4 } }));
    expect(both.violations.map(({ entityId }) => entityId)).toEqual(["child", "parent"]);
    expect(faults.requests.filter(({ operation }) => operation === "transact")).toEqual([]);
    expect(await used(subject, "child", "parent")).toEqual([10, 100]);
  });

  it("the legs of a cascade are written without a read once the chain is known (A112)", async () => {
    const faults = new Faults();
    const subject = await subjectWith(faults);
    await subject.limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    faults.requests.splice(0);
    await subject.limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(faults.requests.map(({ operation }) => operation)).toEqual(["update", "update"]);
    expect(faults.requests.some(isBucketOf("child", "update"))).toBe(true);
    expect(faults.requests.some(isBucketOf("parent", "update"))).toBe(true);
  });

  extra(
    "the legs of a cascade are not shown as they were long ago when another is refused",
    async () => {
      const events: boolean[] = [];
      const subject = await store.open({
        events: (event) => event.type === "rejected" && events.push(event.local),
      });
      const { limiter, repo, time } = subject;
      await family(subject, "child", "parent");
      await repo.entities.create({ id: "sibling", parentId: "parent", cascade: true });
      await repo.limits.setSystem(["rpm:10/10sec"]);
      await repo.limits.setEntity("parent", ["rpm:100/hour"]);
      const other = await store.another(subject);
      const parent = { entityId: "parent", resource: RESOURCE, consume: { rpm: 99 } };
      const held = await other.limiter.acquire(parent);
      // The parent is seen to be empty, and ten seconds later it is not.
      await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      time.advance(10_000);
      await held.rollback();
      const sibling = { entityId: "sibling", resource: RESOURCE };
      await other.limiter.acquire({ ...sibling, consume: { rpm: 10 } });
      const refusal = await refusalOf(limiter.acquire({ ...sibling, consume: { rpm: 1 } }));
      // The sibling was seen with its link and decides; the parent is read for its status alone.
      expect(lines(refusal.statuses)).toEqual(["sibling/api rpm 1/0!", "parent/api rpm 1/89"]);
      await refusalOf(limiter.acquire({ ...sibling, consume: { rpm: 1 } }));
      expect(events).toEqual([true, true]);
    },
  );

  extra(
    "the legs of a cascade are left alone where another was last seen to be too small",
    async () => {
      const faults = new Faults();
      const subject = await store.open({ faults });
      const { limiter, repo, time } = subject;
      await family(subject, "child", "parent");
      await repo.limits.setSystem(["rpm:5/hour"]);
      await repo.limits.setEntity("parent", ["rpm:100/hour"]);
      await limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 97 } });
      await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 4 } }));
      // Too long ago to refuse from memory, but no reason to take from the child first.
      time.advance(1000);
      faults.requests.splice(0);
      await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 4 } }));
      expect(faults.requests.some(isBucketOf("child", "put"))).toBe(false);
      expect(faults.requests.filter(({ operation }) => operation === "transact")).toEqual([]);
      expect(await milliOf(subject, "child", RESOURCE, "rpm")).toBeUndefined();
    },
  );

  extra(
    "the legs of a cascade reach a parent that the index missed, however long no call comes",
    async () => {
      const subject = await store.open({ virtualTimer: true, configCacheTtlSeconds: 1e9 });
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      // The entity is created at that very moment, and its bucket is not found.
      const record = { PK: `${repo.namespaceId}/ENTITY#child`, SK: "#META", entity_id: "child" };
      await store.place.items?.put({ ...record, parent_id: "parent", cascade: true });
      await time.pass(60_000);
      const bucket = async () => store.item(subject, "child", RESOURCE);
      await expect.poll(bucket).toMatchObject({ parent_id: "parent", cascade: true });
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      expect(lines(lease.statuses)).toEqual(["child/api rpm 1/99", "parent/api rpm 1/99"]);
    },
  );

  extra(
    "the legs of a cascade stay consumed when the outcome of the write is unknown",
    async () => {
      const faults = new Faults();
      const subject = await subjectWith(faults);
      faults.next("lost", isBucketOf("parent", "update"));
      const error = await failureOf(subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } }));
      expect(error).toMatchObject({ name: "RateLimiterUnavailable", nothingWritten: false });
      expect(await used(subject, "child", "parent")).toEqual([10, 20]);
    },
  );
});
