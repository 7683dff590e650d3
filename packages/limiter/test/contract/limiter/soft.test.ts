/** Soft limits: consumed into debt, and never a reason to refuse. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores, describeLimiterStores, milliOf } from "./limiter-stores.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R };
const LIMITS = ["rpd:10/day", "tpd:100/day soft"];

describeLimiterStores("a soft limit", (store) => {
  const extra = itUnless(store.slow);

  it("a soft limit is consumed into debt, and the lease says so", async () => {
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
});

describeItemStores("a soft limit of a shared table", (store) => {
  it("a soft limit of a shared table is stored as Python stores it, and asks clients to know it", async () => {
    const { repo } = await store.open();
    const [golden] = pythonItems("50-config-resource-soft", repo.namespaceId);
    const resource = String(golden?.resource);
    const limits = Object.keys(golden ?? {})
      .flatMap((name) => /^l_(.+)_cp$/.exec(name)?.[1] ?? [])
      .map((name) =>
        Limit.custom({
          name,
          capacity: Number(golden?.[`l_${name}_cp`]),
          refillAmount: Number(golden?.[`l_${name}_ra`]),
          refillPeriodSeconds: Number(golden?.[`l_${name}_rp`]),
          soft: golden?.[`l_${name}_soft`] === true,
        }),
      );
    await repo.limits.setResource(resource, limits);
    const stored = await store.place.items?.get(golden as never, { consistent: true });
    expect(stored).toEqual({ ...golden, config_version: 1 });
    expect((await repo.version())?.clientMinVersion).toBe("0.17.0");
    expect((await repo.limits.getResource(resource)).map(String)).toEqual(
      [...limits].sort((a, b) => (a.name < b.name ? -1 : 1)).map(String),
    );
  });

  itUnless(store.slow)(
    "a soft limit of a shared table is consumed from shards that have nothing left",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setResource(R, ["rpd:100/day", "tpd:100/day soft"]);
      await limiter.acquire({ ...CALL, consume: { rpd: 1, tpd: 1 } });
      const { namespaceId } = repo;
      const { items } = store.place;
      if (items === undefined) throw new Error("Buckets are no items here");
      await splitShard(items, { namespaceId, ...CALL }, 0, subject.time.clock());
      const fresh = await store.another(subject);
      for (let round = 0; round < 4; round += 1) {
        await fresh.limiter.acquire({ ...CALL, consume: { rpd: 1, tpd: 70 } });
      }
      await fresh.limiter.acquire({ ...CALL, consume: { rpd: 90, tpd: 500 } });
      await refusalOf(fresh.limiter.acquire({ ...CALL, consume: { rpd: 6, tpd: 1 } }));
      const states = await repo.buckets.list("key-1", { resource: R });
      const consumed = (name: string) =>
        states
          .filter(({ limitName }) => limitName === name)
          .reduce((sum, { totalConsumed }) => sum + totalConsumed, 0);
      expect([consumed("rpd"), consumed("tpd")]).toEqual([95, 781]);
    },
  );

  it("a soft limit is stamped on buckets where the Python library looks for it", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    const stamps = async (entityId = "key-1") => {
      const item = await store.item(subject, entityId, R);
      return [item?.b_rpd_soft, item?.b_tpd_soft];
    };
    await repo.limits.setResource(R, ["rpd:10/day soft", "tpd:100/day"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    // Over at once: the limits may have been cached, so Python reads them again.
    expect(await stamps()).toEqual([time.clock(), undefined]);
    await limiter.acquire({ ...CALL, entityId: "own", consume: { rpd: 1 } });
    await repo.limits.setEntity("own", ["rpd:10/day"], { resource: R });
    time.advance(1000);
    await repo.limits.setResource(R, ["rpd:10/day", "tpd:100/day soft"]);
    expect(await stamps()).toEqual([undefined, time.clock() + 60_000]);
    expect(await stamps("own")).toEqual([undefined, undefined]);
    await repo.limits.deleteResource(R);
    await repo.limits.setSystem(["rpd:10/day soft", "tpd:100/day"]);
    expect(await stamps()).toEqual([time.clock() + 60_000, undefined]);
    await repo.limits.deleteSystem();
    await repo.limits.setResource(R, ["rpd:20/day", "new:5/day soft"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    const item = await store.item(subject, "key-1", R);
    expect(item).toMatchObject({ b_new_soft: time.clock(), b_new_cp: 5000, b_rpd_cp: 20_000 });
  });
});
