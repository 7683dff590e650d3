/**
 * Clocks that are set back and forth. A bucket's stored time never moves back, so that no stretch
 * of time earns tokens twice; the answers are the same on every store.
 */

import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeLimiterStores, type Subject } from "./limiter-stores.ts";

const HOUR_MS = 3_600_000;
const SERVERS = new Set(["postgres", "redis"]);
const TARGET = { entityId: "user-1", resource: "gpt-4" };

/** Acquires one token at a time until the limiter refuses; returns how many it granted. */
async function drain({ limiter }: Subject): Promise<number> {
  for (let granted = 0; ; granted += 1) {
    const answer = await limiter.tryAcquire({ ...TARGET, consume: { rpm: 1 } });
    if (!answer.granted) return granted;
  }
}

describeLimiterStores("a clock that is set", (store) => {
  itUnless(store.slow)(
    "a clock that is set back and forth by an hour earns no second of time twice",
    async () => {
      const subject = await store.open();
      await subject.repo.limits.setSystem(["rpm:60", "tpm:1000"]);
      const lease = await subject.limiter.acquire({ ...TARGET, consume: { tpm: 1 } });
      const granted: number[] = [];
      for (let flap = 0; flap < 10; flap += 1) {
        // A correction is written whatever the balance is, with the time of the clock as it is now.
        lease.adjust({ tpm: 1 });
        await lease.flush();
        granted.push(await drain(subject));
        subject.time.advance(HOUR_MS + 500);
        granted.push(await drain(subject));
        subject.time.advance(500 - HOUR_MS);
      }
      // The bucket, the hour that has passed by the clock, and then a second for each second.
      const expected = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 0 : 1));
      expect(granted).toEqual([60, 60, ...expected.slice(2)]);
    },
  );

  itUnless(SERVERS.has(store.name) && "its server moves balances with every call that it counts")(
    "a bypassed acquire leaves an old balance as it is, also for a clock that is set back",
    async () => {
      const { limiter, repo, time } = await store.open({ bucketTtlMultiplier: 0 });
      await repo.limits.setSystem(["rpm:16"]);
      await limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
      time.advance(25 * HOUR_MS);
      await repo.limits.bypass({ resource: TARGET.resource });
      for (let call = 0; call < 2; call += 1) {
        const lease = await limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
        expect(lease.bypassed).toBe(true);
      }
      time.advance(-11_000);
      expect(await limiter.available(TARGET)).toEqual({ rpm: 16 });
    },
  );

  itUnless(store.distributed && "DynamoDB removes expired buckets by itself")(
    "a clock that is set back and forth does not empty a removed bucket again",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(["rpm:60"]);
      const granted: number[] = [];
      for (let flap = 0; flap < 6; flap += 1) {
        granted.push(await drain(subject));
        time.advance(2 * HOUR_MS);
        // Enough writes to find and remove every bucket whose time is over.
        for (let other = 0; other < 150; other += 1) {
          await limiter.acquire({ ...TARGET, entityId: `other-${other}`, consume: { rpm: 0 } });
        }
        time.advance(500 - 2 * HOUR_MS);
      }
      // Nothing is removed after a jump ahead: half a token comes back between two drains.
      expect(granted).toEqual([60, 0, 1, 0, 1, 0]);
    },
  );

  it("a clock that is set forward and back once refuses until the clock has passed that time again", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rpm:60"]);
    const request = { ...TARGET, consume: { rpm: 1 } };
    await limiter.acquire(request);
    time.advance(HOUR_MS);
    await limiter.acquire({ ...TARGET, consume: { rpm: 60 } });
    time.advance(-HOUR_MS);
    const refused = await limiter.tryAcquire(request);
    expect(refused.granted).toBe(false);
    if (refused.granted) return;
    expect(Math.ceil(refused.retryAfterSeconds)).toBe(3602);
    time.advance(HOUR_MS);
    expect((await limiter.tryAcquire(request)).granted).toBe(false);
    time.advance(1001);
    expect((await limiter.tryAcquire(request)).granted).toBe(true);
  });

  itUnless(store.slow)(
    "a clock that is set lets another client, which is behind, earn nothing twice",
    async () => {
      const ahead = await store.open();
      if (!store.separate) return;
      await ahead.repo.limits.setSystem(["rpm:60"]);
      const behind = await store.open({ namespace: ahead.repo.namespaceName });
      const offsetMs = 10_000;
      behind.time.advance(ahead.time.nowMs - offsetMs - behind.time.nowMs);
      let total = await drain(ahead);
      for (let round = 0; round < 10; round += 1) {
        ahead.time.advance(1000);
        behind.time.advance(1000);
        total += (await drain(behind)) + (await drain(ahead));
      }
      expect(total).toBe(70);
    },
  );
});
