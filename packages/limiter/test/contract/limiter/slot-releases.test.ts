/** Releases of slots before the end of a lease, whose own write goes wrong. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { expect, it } from "vitest";
import { type Fault, Faults, isBucketOf } from "./faults.ts";
import { describeItemStores } from "./limiter-stores.ts";

const CALL = { entityId: "hot", resource: "api" };

describeItemStores("early releases", (store) => {
  async function opened() {
    const faults = new Faults();
    const subject = await store.open({ faults, timeoutMs: 1500 });
    await subject.repo.limits.setSystem(["parallel:2 concurrent", "tpd:1000/day"]);
    const request = {
      ...CALL,
      consume: { parallel: 1, tpd: 100 },
      onUnavailable: "block",
    } as const;
    const lease = await subject.limiter.acquire(request);
    lease.adjust({ tpd: 50 });
    const next = (fault: Fault) => faults.next(fault, isBucketOf("hot", "update", "transact"));
    const free = async () => {
      faults.rule = () => undefined;
      return subject.limiter.available(CALL);
    };
    return { lease, next, free };
  }

  it("a commit reports a correction whose outcome is unknown", async () => {
    const { lease, next } = await opened();
    next("lost");
    await expect(lease.commit()).rejects.toThrow(RateLimiterUnavailable);
  });

  it("a commit after a release reports what the write of the release could not", async () => {
    const { lease, next, free } = await opened();
    next("lost");
    lease.release({ parallel: 1 });
    await expect(lease.commit()).rejects.toThrow(RateLimiterUnavailable);
    await expect.poll(free, { timeout: 10_000 }).toEqual({ parallel: 2, tpd: 850 });
  });

  it("a commit after a release writes what the write of the release has left", async () => {
    const { lease, next, free } = await opened();
    next("throttled");
    lease.release({ parallel: 1 });
    await lease.commit();
    await expect.poll(free, { timeout: 10_000 }).toEqual({ parallel: 2, tpd: 850 });
  });
});
