/**
 * Resets and top-ups, which wake a waiting call as time does; and calls for several resources.
 */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "./both-stores.ts";

const bucket = { entityId: "key-1", resource: "chat" };
const DAY_SECONDS = 86_400;
const call = { ...bucket, consume: { rpd: 1 }, maxWaitSeconds: DAY_SECONDS };

for (const [name, open] of Object.entries(STORES)) {
  describe(`on ${name}`, () => {
    let time: VirtualTime;
    let limiter: RateLimiter;

    beforeEach(async () => {
      time = new VirtualTime();
      limiter = await time.until(open(time));
      await time.until(limiter.repository.limits.setSystem(["rpd:10/day"]));
    });
    afterEach(() => time.until(limiter.close()));

    const empty = (resource: string) =>
      time.until(limiter.acquire({ entityId: "key-1", resource, consume: { rpd: 10 } }));

    /** Notes in which order calls are granted; the end of the test refuses those that wait. */
    function granted(order: string[], label: string, request: AcquireRequest): void {
      void limiter.acquire(request).then(
        () => order.push(label),
        () => {},
      );
    }

    test("a top-up wakes as many waiters as it has tokens for, in their order", async () => {
      await empty("chat");
      const order: string[] = [];
      for (const label of ["first", "second", "third"]) granted(order, label, call);
      await time.pass(1000);
      expect(order).toEqual([]);
      await time.until(limiter.repository.buckets.topUp({ ...bucket, amounts: { rpd: 2 } }));
      await time.pass(1000);
      expect(order).toEqual(["first", "second"]);
    });

    test("a reset wakes all waiters", async () => {
      await empty("chat");
      const order: string[] = [];
      for (const label of ["first", "second"]) granted(order, label, call);
      await time.pass(1000);
      await time.until(limiter.repository.buckets.reset(bucket));
      await time.pass(1000);
      expect(order).toEqual(["first", "second"]);
    });

    test("a reset that adds parts of tokens wakes a waiter for all that the bucket holds", async () => {
      await empty("chat");
      await time.pass(0.15 * DAY_SECONDS * 1000);
      const order: string[] = [];
      granted(order, "all", { ...call, consume: { rpd: 10 } });
      await time.pass(1000);
      await time.until(limiter.repository.buckets.reset(bucket));
      await time.pass(1000);
      expect(order).toEqual(["all"]);
    });

    describe("behind a head that waits for another limit", () => {
      const both = { entityId: "key-1", resource: "both", maxWaitSeconds: DAY_SECONDS };

      /** `rpd` is empty for long, and all of `tpm` is held by a lease. */
      const emptied = async () => {
        const limits = ["rpd:10/day", "tpm:60/min"];
        await time.until(limiter.repository.limits.setResource("both", limits));
        await time.until(limiter.acquire({ ...both, consume: { rpd: 10 } }));
        return time.until(limiter.acquire({ ...both, consume: { tpm: 60 } }));
      };

      test("a refund starts those that fit, in their order", async () => {
        const lease = await emptied();
        const order: string[] = [];
        granted(order, "head", { ...both, consume: { rpd: 1 } });
        await time.pass(10);
        granted(order, "first", { ...both, consume: { tpm: 40 } });
        granted(order, "second", { ...both, consume: { tpm: 20 } });
        await time.pass(10);
        expect(order).toEqual([]);
        await time.until(lease.rollback());
        await time.pass(100);
        expect(order).toEqual(["first", "second"]);
      });

      test("time starts each of them when there is enough", async () => {
        await emptied();
        const order: string[] = [];
        granted(order, "head", { ...both, consume: { rpd: 1 } });
        await time.pass(10);
        granted(order, "first", { ...both, consume: { tpm: 5 } });
        granted(order, "second", { ...both, consume: { tpm: 5 } });
        await time.pass(5100);
        expect(order).toEqual(["first"]);
        await time.pass(5000);
        expect(order).toEqual(["first", "second"]);
      });

      test("a waiter leaves those ahead of it what they need of a limit they share", async () => {
        const lease = await emptied();
        const order: string[] = [];
        granted(order, "head", { ...both, consume: { rpd: 1, tpm: 50 } });
        await time.pass(10);
        granted(order, "too much", { ...both, consume: { tpm: 20 } });
        granted(order, "both", { ...both, consume: { rpd: 1 } });
        await time.pass(10);
        await time.until(lease.rollback());
        await time.pass(1000);
        expect(order).toEqual([]);
        const { buckets } = limiter.repository;
        const more = { entityId: "key-1", resource: "both", amounts: { rpd: 1 } };
        await time.until(buckets.topUp(more));
        await time.pass(100);
        expect(order).toEqual(["head"]);
        await time.pass(10_100);
        expect(order).toEqual(["head", "too much"]);
      });
    });

    test("a call for several resources keeps its place in the queue of the scarcest", async () => {
      await empty("embed");
      const order: string[] = [];
      const several = { ...call, also: [{ resource: "embed", consume: { rpd: 3 } }] };
      granted(order, "several", several);
      await time.pass(100);
      granted(order, "behind it", { ...call, resource: "embed" });
      granted(order, "of the other", call);
      await time.pass(1000);
      expect(order).toEqual(["of the other"]);
      const { buckets } = limiter.repository;
      const topUp = async (rpd: number) => {
        const embed = { entityId: "key-1", resource: "embed", amounts: { rpd } };
        await time.until(buckets.topUp(embed));
        await time.pass(1000);
      };
      await topUp(2);
      expect(order).toEqual(["of the other"]);
      await topUp(1);
      expect(order).toEqual(["of the other", "several"]);
      await topUp(1);
      expect(order).toEqual(["of the other", "several", "behind it"]);
    });

    test("a call for several resources overtakes no waiter of any of them", async () => {
      await empty("embed");
      const order: string[] = [];
      granted(order, "waiter", { ...call, resource: "embed", consume: { rpd: 3 } });
      await time.pass(100);
      const embed = { entityId: "key-1", resource: "embed" };
      await time.until(limiter.repository.buckets.topUp({ ...embed, amounts: { rpd: 2 } }));
      await time.pass(100);
      const also = [{ resource: "embed", consume: { rpd: 1 } }];
      const decision = await time.until(
        limiter.tryAcquire({ ...bucket, consume: { rpd: 1 }, also }),
      );
      expect(decision.granted).toBe(false);
      await time.until(limiter.repository.buckets.topUp({ ...embed, amounts: { rpd: 1 } }));
      await time.pass(100);
      expect(order).toEqual(["waiter"]);
    });

    test("a call for several resources goes to the queue of one that becomes scarcer", async () => {
      await empty("embed");
      const order: string[] = [];
      const several = { ...call, also: [{ resource: "embed", consume: { rpd: 1 } }] };
      granted(order, "several", several);
      await time.pass(1000);
      await empty("chat");
      const { buckets } = limiter.repository;
      await time.until(buckets.reset({ entityId: "key-1", resource: "embed" }));
      await time.pass(1000);
      granted(order, "of embed", { ...call, resource: "embed" });
      await time.pass(1000);
      expect(order).toEqual(["of embed"]);
      await time.until(buckets.topUp({ ...bucket, amounts: { rpd: 1 } }));
      await time.pass(1000);
      expect(order).toEqual(["of embed", "several"]);
    });

    test("a call for several resources that would wait too long is refused at once", async () => {
      await empty("embed");
      const also = [{ resource: "embed", consume: { rpd: 1 } }];
      const decision = await time.until(limiter.tryAcquire({ ...call, also, maxWaitSeconds: 5 }));
      expect(decision.granted ? [] : decision.violations.map(({ resource }) => resource)).toEqual([
        "embed",
      ]);
    });
  });
}
