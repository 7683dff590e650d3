/** The TTL that a bucket has as an item. What it means for balances is in the contract. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { lines, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores, milliOf, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const OWN = { resource: RESOURCE };
const HOUR = 3600;
const SLOW = Limit.custom({
  name: "slow",
  capacity: 1000,
  refillAmount: 10,
  refillPeriodSeconds: 60,
});

describeItemStores("the time to live of a bucket", (store) => {
  const extra = itUnless(store.slow);

  /** Seconds from now; `undefined` when it has none. */
  async function ttl(subject: Subject): Promise<number | undefined> {
    const item = await store.item(subject, "user-1", RESOURCE);
    const seconds = item?.ttl as number | undefined;
    return seconds === undefined ? undefined : seconds - Math.floor(subject.time.nowMs / 1000);
  }

  /** Not less than that, and hardly more: seconds are rounded up. */
  async function expectTtl(subject: Subject, seconds: number): Promise<void> {
    const found = await ttl(subject);
    expect(found).toBeGreaterThanOrEqual(seconds);
    expect(found).toBeLessThanOrEqual(seconds + 2);
  }

  it("the time to live of a bucket is seven times its filling time, and at least an hour (A155)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await expectTtl(subject, HOUR);
  });

  it("the time to live of a bucket is longer where filling takes longer (A155)", async () => {
    const subject = await store.open();
    await subject.limiter.acquire({ ...USER, limits: [SLOW, "rpm:1"], consume: { slow: 1 } });
    await expectTtl(subject, 42_000);
  });

  it("a bucket with limits of its own, or with a multiplier of 0, lives without end (A155)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(await store.item(subject, "user-1", RESOURCE)).not.toHaveProperty("ttl");
    const forever = await store.open({ bucketTtlMultiplier: 0 });
    await forever.limiter.acquire({ ...USER, limits: ["rpm:100"], consume: { rpm: 1 } });
    expect(await store.item(forever, "user-1", RESOURCE)).not.toHaveProperty("ttl");
  });

  it("a bucket with defaults of the entity lives without end, as in Python since 0.14 (H9)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setEntity("user-1", ["rpm:100"]);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(await store.item(subject, "user-1", RESOURCE)).not.toHaveProperty("ttl");
  });

  it("the time to live of a bucket goes when the entity gets limits of its own (A144)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await expectTtl(subject, HOUR);
    await subject.repo.limits.setEntity("user-1", ["rpm:50"], OWN);
    expect(await store.item(subject, "user-1", RESOURCE)).not.toHaveProperty("ttl");
  });

  it("the time to live of a bucket goes with the next use where they are the same (A144)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await subject.repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(await store.item(subject, "user-1", RESOURCE)).not.toHaveProperty("ttl");
  });

  it("the time to live of a bucket comes when they are deleted (A156)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    await subject.repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await subject.repo.limits.deleteEntity("user-1", OWN);
    await subject.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await expectTtl(subject, HOUR);
  });

  extra("the time to live of a bucket is renewed by use", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    const request = { ...USER, limits: ["rpm:100"], consume: { rpm: 1 } };
    for (let call = 0; call < 6; call += 1) {
      await limiter.acquire(request);
      expect(await ttl(subject)).toBeGreaterThanOrEqual(HOUR / 2 - 1);
      time.advance(1_000_000);
    }
    expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({ consumed: 6000 });
  });

  extra("the time to live of a bucket covers the time to pay back a debt", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({
      ...USER,
      limits: ["rpm:1"],
      consume: { rpm: 1 },
    });
    lease.adjust({ rpm: 1000 });
    await lease.commit();
    expect(await ttl(subject)).toBeGreaterThanOrEqual(60_060);
  });

  it("the time to live of a bucket is not accepted when it is over, and then renewed (A157, A158)", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    time.advance((HOUR + 60) * 1000);
    // The engine may have left it in place: then it is revived, and is full as it would be anyway.
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 40 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 40/60"]);
    await expectTtl(subject, HOUR);
    await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 61 } }));
    await limiter.acquire({ ...USER, consume: { rpm: 60 } });
  });
});
