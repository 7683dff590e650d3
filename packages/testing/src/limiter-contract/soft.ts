/** Soft limits: consumed into debt, and never a reason to refuse. */

import { milliOf } from "./balances.ts";
import { refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R };
const LIMITS = ["rpd:10/day", "tpd:100/day soft"];

export function softContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a soft limit is consumed into debt, and the lease says so", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await repo.limits.setResource(R, LIMITS);
    const first = await limiter.acquire({ ...CALL, consume: { rpd: 1, tpd: 90 } });
    expect([first.overdrawn, first.bypassed]).toEqual([[], false]);
    const second = await limiter.acquire({ ...CALL, consume: { rpd: 1, tpd: 950 } });
    expect(second.overdrawn).toEqual(["tpd"]);
    expect(second.statuses.find(({ limitName }) => limitName === "tpd")).toMatchObject({
      available: -940,
      exceeded: false,
      soft: true,
      overdrawn: true,
      retryAfterSeconds: 0,
    });
    expect(await milliOf(subject, "key-1", R, "tpd")).toEqual({
      balance: -940_000,
      consumed: 1_040_000,
    });
    await second.rollback();
    expect(await milliOf(subject, "key-1", R, "tpd")).toEqual({
      balance: 10_000,
      consumed: 90_000,
    });
    time.advance(86_400_000);
    expect((await limiter.available(CALL)).tpd).toBe(100);
  });

  extra(
    "a soft limit leaves the refusal to the limits that are hard, and is in no wait",
    async () => {
      const { limiter, repo } = await store.open();
      await repo.limits.setResource(R, LIMITS);
      await limiter.acquire({ ...CALL, consume: { rpd: 9, tpd: 500 } });
      const refusal = await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 2, tpd: 5000 } }));
      expect(refusal.violations.map(({ limitName }) => limitName)).toEqual(["rpd"]);
      expect(refusal.retryAfterSeconds).toBeLessThan(9000);
      const soon = limiter.timeUntilAvailable({ ...CALL, needed: { tpd: 5000 } });
      expect(await soon).toBe(0);
      const lease = await limiter.acquire({ ...CALL, consume: { tpd: 1 }, maxWaitSeconds: 5 });
      await lease.consume({ tpd: 100_000 });
      await lease.commit();
    },
  );

  extra(
    "a soft limit of an ancestor lets its children pass, and the first use may be too large",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setEntity("org", ["tpd:10/day soft"]);
      await repo.limits.setSystem(["tpd:1000/day"]);
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      const lease = await limiter.acquire({ ...CALL, consume: { tpd: 40 } });
      expect(lease.overdrawn).toEqual(["tpd"]);
      expect(await milliOf(subject, "org", R, "tpd")).toEqual({
        balance: -30_000,
        consumed: 40_000,
      });
      await limiter.acquire({ ...CALL, consume: { tpd: 40 } });
      await refusalOf(limiter.acquire({ ...CALL, consume: { tpd: 1000 } }));
      expect(await milliOf(subject, "org", R, "tpd")).toEqual({
        balance: -70_000,
        consumed: 80_000,
      });
    },
  );

  extra("a soft limit becomes hard, or soft, when the stored limit does", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setResource(R, ["tpd:10/day"]);
    await refusalOf(limiter.acquire({ ...CALL, consume: { tpd: 11 } }));
    await repo.limits.setResource(R, ["tpd:10/day soft"]);
    await limiter.acquire({ ...CALL, consume: { tpd: 11 } });
    await repo.limits.setResource(R, ["tpd:10/day"]);
    await refusalOf(limiter.acquire({ ...CALL, consume: { tpd: 1 } }));
    const given = { ...CALL, limits: ["tpd:10/day soft"], consume: { tpd: 1 } };
    await limiter.acquire(given);
    await refusalOf(limiter.acquire({ ...CALL, consume: { tpd: 1 } }));
  });
}
