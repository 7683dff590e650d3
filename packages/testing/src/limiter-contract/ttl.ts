/** The TTL of an idle bucket: it expires when it would be full anyway. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { lines, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

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

export function ttlContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a bucket whose time is over is as good as new (A157)", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 100 } });
    time.advance(2 * HOUR * 1000);
    expect(await limiter.available(USER)).toEqual({ rpm: 100 });
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 100 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 100/0"]);
    await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
  });

  extra("a bucket whose time is over never forgives a debt", async () => {
    const { limiter, time } = await store.open();
    const request = { ...USER, limits: ["rpm:1"] };
    const lease = await limiter.acquire({ ...request, consume: { rpm: 1 } });
    lease.adjust({ rpm: 1000 });
    await lease.commit();
    time.advance(50_000_000);
    const refusal = await refusalOf(limiter.acquire({ ...request, consume: { rpm: 1 } }));
    expect(refusal.statuses[0]).toMatchObject({ available: -167 });
    time.advance(20_000_000);
    await limiter.acquire({ ...request, consume: { rpm: 1 } });
  });

  extra("a bucket whose time is over never forgives a slow limit next to a fast one", async () => {
    const { limiter, time } = await store.open();
    const request = { ...USER, limits: ["rps:100/sec", "rpd:50/day"] };
    await limiter.acquire({ ...request, consume: { rps: 1, rpd: 50 } });
    time.advance(4 * HOUR * 1000);
    const refusal = await refusalOf(limiter.acquire({ ...request, consume: { rpd: 9 } }));
    expect(refusal.statuses[1]).toMatchObject({ available: 8 });
  });

  test("a bucket without a time to live stays as it is (A158)", async () => {
    const { limiter, repo, time } = await store.open();
    await repo.limits.setEntity("user-1", [SLOW], OWN);
    await limiter.acquire({ ...USER, consume: { slow: 1000 } });
    time.advance(HOUR * 1000);
    expect(await limiter.available(USER)).toEqual({ slow: 600 });
  });
}
