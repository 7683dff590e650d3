/** Soft limits on a table that the Python library shares. The rest is in the contract. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R };

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
