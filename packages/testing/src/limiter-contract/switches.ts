/** Switching entities and resources off, and letting them bypass their limits. */

import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "./balances.ts";
import { failureOf, invalidityOf, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R, consume: { rpd: 1 } };
const LIMITS = ["rpd:10/day"];
const CACHE_MS = 60_000;

export function switchesContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a switch refuses every acquire of a resource that is off, at once, and grants when it is on", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setResource(R, LIMITS);
    for (let round = 0; round < 3; round += 1) await limiter.acquire(CALL);
    await repo.limits.disable({ resource: R });
    const error = await failureOf(limiter.acquire(CALL));
    expect(error).toBeInstanceOf(ResourceDisabled);
    expect(error).toMatchObject({ entityId: "key-1", resource: R, level: "resource" });
    // `allow` is for stores that cannot answer.
    const allowed = limiter.tryAcquire({ ...CALL, onUnavailable: "allow" });
    expect(await failureOf(allowed)).toBeInstanceOf(ResourceDisabled);
    await repo.limits.enable({ resource: R });
    await limiter.acquire(CALL);
    expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({ balance: 6000, consumed: 4000 });
  });

  extra("a switch reaches another client within the time that limits are cached", async () => {
    const subject = await store.open();
    const { repo, time } = subject;
    await repo.limits.setResource(R, LIMITS);
    const other = await store.another(subject);
    for (let round = 0; round < 2; round += 1) await other.limiter.acquire(CALL);
    await repo.limits.disable({ entityId: "key-1" });
    time.advance(CACHE_MS + 1);
    expect(await failureOf(other.limiter.acquire(CALL))).toBeInstanceOf(ResourceDisabled);
    await repo.limits.bypass({ entityId: "key-1" });
    time.advance(CACHE_MS + 1);
    expect((await other.limiter.acquire(CALL)).bypassed).toBe(true);
  });

  extra("a switch is decided by the most specific level that says something", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(LIMITS);
    const place = { entityId: "key-1", resource: R };
    await repo.limits.disable({ resource: R });
    await repo.limits.enable({ entityId: "key-1" });
    await limiter.acquire(CALL);
    expect(await repo.limits.state(place)).toEqual({
      state: "enabled",
      level: "entity_default",
      own: undefined,
    });
    await repo.limits.disable(place);
    expect(await failureOf(limiter.acquire(CALL))).toMatchObject({ level: "entity" });
    await repo.limits.clear(place);
    await repo.limits.clear({ entityId: "key-1" });
    expect(await failureOf(limiter.acquire(CALL))).toMatchObject({ level: "resource" });
    expect(await repo.limits.state({ entityId: "key-1" })).toMatchObject({ state: "enabled" });
    await repo.limits.clear({ resource: R });
    await limiter.acquire(CALL);
  });

  extra(
    "a switch is a refusal also for an entity without any limits, and for reads (N8)",
    async () => {
      const { limiter, repo } = await store.open();
      await repo.limits.disable({ entityId: "key-1" });
      expect(await failureOf(limiter.acquire(CALL))).toBeInstanceOf(ResourceDisabled);
      expect(await failureOf(limiter.status({ entityId: "key-1", resource: R }))).toBeInstanceOf(
        ResourceDisabled,
      );
    },
  );

  extra(
    "a switch of an ancestor refuses those that cascade to it, by its name, and consumes nothing",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setSystem(LIMITS);
      await repo.entities.create({ id: "top" });
      await repo.entities.create({ id: "org", parentId: "top", cascade: true });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      await limiter.acquire(CALL);
      await repo.limits.disable({ entityId: "top" });
      // The first refusal fills the caches from which later calls are decided.
      for (let call = 0; call < 3; call += 1) {
        expect(await failureOf(limiter.acquire(CALL))).toMatchObject({ entityId: "top" });
      }
      expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({ balance: 9000, consumed: 1000 });
    },
  );

  test("a switch lets everything pass under bypass: counted, and no balance moves", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setResource(R, LIMITS);
    await limiter.acquire({ ...CALL, consume: { rpd: 9 } });
    await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 2 } }));
    await repo.limits.bypass({ entityId: "key-1", resource: R });
    const lease = await limiter.acquire({ ...CALL, consume: { rpd: 500 } });
    expect(lease.bypassed).toBe(true);
    expect(lease.statuses[0]).toMatchObject({ available: 1, exceeded: false, bypassed: true });
    lease.adjust({ rpd: 7 });
    await lease.commit();
    expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({ balance: 1000, consumed: 516_000 });
    const second = await limiter.acquire({ ...CALL, consume: { rpd: 5 } });
    await second.consume({ rpd: 5 });
    await second.rollback();
    expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({ balance: 1000, consumed: 516_000 });
    const needed = { entityId: "key-1", resource: R, needed: { rpd: 99 } };
    expect(await limiter.timeUntilAvailable(needed)).toBe(0);
    await repo.limits.clear({ entityId: "key-1", resource: R });
    await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 2 } }));
  });

  test("a switch that is changed while a lease is open: a rollback is exact", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const place = { entityId: "key-1", resource: R };
    await repo.limits.setResource(R, ["rpd:100/day"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 50 } });
    const first = await limiter.acquire({ ...CALL, consume: { rpd: 10 } });
    await repo.limits.bypass(place);
    await first.consume({ rpd: 20 });
    const second = await limiter.acquire({ ...CALL, consume: { rpd: 10 } });
    await repo.limits.clear(place);
    await second.consume({ rpd: 20 });
    expect(first.consumed).toEqual({ rpd: 30 });
    expect(await milliOf(subject, "key-1", R, "rpd")).toMatchObject({ balance: 20_000 });
    await first.rollback();
    expect(await milliOf(subject, "key-1", R, "rpd")).toMatchObject({ balance: 30_000 });
    await second.rollback();
    expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({
      balance: 50_000,
      consumed: 50_000,
    });
  });

  extra(
    "a switch makes a full bucket under bypass, and leaves the limits of the parent in force",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setSystem(LIMITS);
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      await repo.limits.bypass({ entityId: "key-1" });
      await limiter.acquire({ ...CALL, consume: { rpd: 8 } });
      expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({
        balance: 10_000,
        consumed: 8000,
      });
      expect(await milliOf(subject, "org", R, "rpd")).toEqual({ balance: 2000, consumed: 8000 });
      const refusal = await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 3 } }));
      expect(refusal.violations.map(({ entityId }) => entityId)).toEqual(["org"]);
      expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({
        balance: 10_000,
        consumed: 8000,
      });
    },
  );

  extra(
    "a switch takes limits of the call under bypass, and a bucket that has to be rebased",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      const call = { ...CALL, limits: ["rpd:10/day"] };
      await limiter.acquire({ ...call, consume: { rpd: 10 } });
      await repo.limits.bypass({ entityId: "key-1" });
      time.advance(43_200_000);
      await limiter.acquire({ ...call, limits: ["rpd:20/day"], consume: { rpd: 7 } });
      expect(await milliOf(subject, "key-1", R, "rpd")).toEqual({
        balance: 5000,
        consumed: 17_000,
      });
    },
  );

  extra("a switch is audited, and a repeated one changes nothing", async () => {
    const { repo } = await store.open();
    await repo.limits.disable({ resource: R }, { principal: "ops" });
    await repo.limits.disable({ resource: R }, { principal: "ops" });
    const events = await repo.audit.list(`$RESOURCE:${R}`);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      action: "limits_set",
      principal: "ops",
      resource: R,
      details: { disabled: true },
    });
  });

  extra(
    "a switch leaves nothing behind when it is cleared, and keeps limits that are there (N9)",
    async () => {
      const { repo } = await store.open();
      const place = { entityId: "key-1", resource: R };
      await repo.limits.disable({ resource: "r" });
      await repo.limits.bypass(place);
      expect(await repo.limits.listResources()).toEqual(["r"]);
      expect(await repo.limits.listEntityResources()).toEqual([R]);
      await repo.limits.clear({ resource: "r" });
      await repo.limits.clear(place);
      expect(await repo.limits.listResources()).toEqual([]);
      expect(await repo.limits.listEntityResources()).toEqual([]);
      await repo.limits.setEntity("key-1", LIMITS, { resource: R });
      await repo.limits.disable(place);
      await repo.limits.setEntity("key-1", ["rpd:7/day"], { resource: R });
      expect((await repo.limits.state(place)).own).toBe("disabled");
      await repo.limits.clear(place);
      expect((await repo.limits.getEntity("key-1", { resource: R })).map(String)).toEqual([
        "rpd:7/day",
      ]);
    },
  );

  extra("a switch needs an entity or a resource", async () => {
    const { repo } = await store.open();
    expect(await invalidityOf(repo.limits.disable({}))).toBeInstanceOf(ValidationError);
    const typo = { resorce: R } as unknown as { resource: string };
    expect((await invalidityOf(repo.limits.disable(typo))).message).toContain("resorce");
  });
}
