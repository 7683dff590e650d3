/** Acquires that also charge ancestors: all legs or none, in whatever order things happen. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { milliOf } from "./balances.ts";
import { CHILD, family, left, RESOURCE, used } from "./family.ts";
import { invalidityOf, lines, refusalOf, thrownBy } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

export function cascadeContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a cascade consumes from the parent too, before the work starts (A100)", async () => {
    const subject = await store.open();
    await family(subject, "child", "parent");
    await subject.repo.limits.setSystem(["rpm:100"]);
    for (const expected of [99, 98]) {
      await subject.limiter.run({ ...CHILD, consume: { rpm: 1 } }, async () => {
        expect(await left(subject, "child", "parent")).toEqual([expected, expected]);
      });
      expect(await left(subject, "child", "parent")).toEqual([expected, expected]);
    }
  });

  extra(
    "a cascade refunds a parent that joined later no more than was consumed there",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setEntity("child", ["rpm:1000"]);
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 500 } });
      await family(subject, "child", "parent");
      await repo.limits.setEntity("parent", ["rpm:1000"]);
      await limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 900 } });
      await lease.consume({ rpm: 1 });
      expect(await used(subject, "child", "parent")).toEqual([501, 901]);
      lease.release({ rpm: 501 });
      await lease.commit();
      expect(await used(subject, "child", "parent")).toEqual([0, 900]);
    },
  );

  test("a parent is left alone without the flag (A101)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "parent" });
    await repo.entities.create({ id: "child", parentId: "parent" });
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(await left(subject, "child", "parent")).toEqual([99, "-"]);
    expect(await limiter.available({ entityId: "parent", resource: RESOURCE })).toEqual({
      rpm: 100,
    });
  });

  test("the flag means nothing without a parent (A102)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "child", cascade: true });
    await repo.limits.setSystem(["rpm:100"]);
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 1/99"]);
  });

  test("a lease says what the entity itself consumed; parents are not added in (A103)", async () => {
    const { limiter, repo } = await store.open();
    await repo.entities.create({ id: "parent" });
    await repo.entities.create({ id: "child", parentId: "parent", cascade: true });
    await repo.limits.setSystem(["rph:1000/hour", "tph:100000/hour"]);
    for (let call = 0; call < 2; call += 1) {
      const lease = await limiter.acquire({ ...CHILD, consume: { rph: 1, tph: 500 } });
      expect(lease.consumed).toEqual({ rph: 1, tph: 500 });
      lease.adjust({ tph: 100 });
      expect(lease.consumed).toEqual({ rph: 1, tph: 600 });
    }
  });

  test("a parent that refuses leaves the child without a consume (A104)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("parent", ["rpm:5"]);
    await limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 5 } });
    const refusal = await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 1 } }));
    expect(lines(refusal.statuses)).toEqual(["child/api rpm 1/100", "parent/api rpm 1/0!"]);
    expect(refusal.primaryViolation.entityId).toBe("parent");
    expect(await used(subject, "parent")).toEqual([5]);
    const child = await milliOf(subject, "child", RESOURCE, "rpm");
    expect(child?.consumed ?? 0).toBe(0);
  });

  test("a parent refuses with everything known, and the child keeps its tokens (A105)", async () => {
    for (const speculativeWrites of [true, false]) {
      const subject = await store.open({ speculativeWrites });
      const { limiter, repo } = subject;
      await family(subject, "child", "parent");
      await repo.limits.setSystem(["rpm:100"]);
      await repo.limits.setEntity("parent", ["rpm:60"]);
      await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      // Another client empties the parent, so the cached state of this one is wrong.
      const other = await store.another(subject);
      await other.limiter.acquire({
        entityId: "parent",
        resource: RESOURCE,
        consume: { rpm: 59 },
      });
      for (let call = 0; call < 2; call += 1) {
        const refusal = await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 20 } }));
        expect(lines(refusal.statuses)).toEqual(["child/api rpm 20/99", "parent/api rpm 20/0!"]);
        expect(await left(subject, "child", "parent")).toEqual([99, 0]);
        expect(await used(subject, "child", "parent")).toEqual([1, 60]);
      }
    }
  });

  test("a cascade creates the parent's bucket again when it is gone (A106)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    const other = await store.another(subject);
    await other.repo.entities.delete("parent");
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 10/80", "parent/api rpm 10/90"]);
    await lease.rollback();
    expect(await left(subject, "child", "parent")).toEqual([90, 100]);
  });

  test("a cascade gives the parent a limit that it did not have (A107)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("parent", ["tpm:1000"]);
    const first = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(lines(first.statuses)).toEqual(["child/api rpm 1/99", "parent/api tpm 0/1000"]);
    await repo.limits.setEntity("parent", ["rpm:50", "tpm:1000"]);
    const second = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(lines(second.statuses)).toEqual([
      "child/api rpm 1/98",
      "parent/api rpm 1/49",
      "parent/api tpm 0/1000",
    ]);
  });

  test("a cascade counts what the parent has gained meanwhile (A108)", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:1000"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    await limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 999 } });
    time.advance(30_000);
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 1/999", "parent/api rpm 1/499"]);
  });

  test("a cascade is adjusted for other limits too, in every leg that has them (A113)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent", "top");
    await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
    await repo.limits.setEntity("parent", ["rpm:100"]);
    for (const spent of [100, 200]) {
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      lease.adjust({ tpm: 100 });
      await lease.commit();
      const balances = await Promise.all(
        ["child", "parent", "top"].map((id) => milliOf(subject, id, RESOURCE, "tpm")),
      );
      const expected = { balance: (1000 - spent) * 1000, consumed: spent * 1000 };
      expect(balances).toEqual([expected, undefined, expected]);
    }
  });

  test("a cascade follows the chain to its end, on every path (A114)", async () => {
    for (const speculativeWrites of [true, false]) {
      const subject = await store.open({ speculativeWrites });
      const { limiter, repo } = subject;
      await family(subject, "child", "parent", "top");
      await repo.limits.setSystem(["rpm:100"]);
      for (const expected of [99, 98, 97]) {
        const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
        expect(lines(lease.statuses)).toEqual(
          ["child", "parent", "top"].map((id) => `${id}/api rpm 1/${expected}`),
        );
      }
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 7 } });
      lease.adjust({ rpm: 3 });
      await lease.flush();
      await lease.consume({ rpm: 5 });
      expect(await left(subject, "child", "parent", "top")).toEqual([82, 82, 82]);
      await lease.rollback();
      expect(await left(subject, "child", "parent", "top")).toEqual([97, 97, 97]);
      expect(await used(subject, "child", "parent", "top")).toEqual([3, 3, 3]);
    }
  });

  test("a cascade stops where an entity does not cascade (A114)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "top" });
    await repo.entities.create({ id: "parent", parentId: "top" });
    await repo.entities.create({ id: "child", parentId: "parent", cascade: true });
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    expect(await left(subject, "child", "parent", "top")).toEqual([99, 99, "-"]);
  });

  test("a cascade consumes from the parent too when the child's write lost a race (A115)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    const other = await store.another(subject);
    await other.repo.limits.setEntity("child", ["rpm:50"], { resource: RESOURCE });
    await other.limiter.acquire({ ...CHILD, consume: { rpm: 9 } });
    await limiter.acquire({ ...CHILD, consume: { rpm: 40 } });
    expect(await left(subject, "child", "parent")).toEqual([1, 50]);
  });

  test("a new child consumes from a parent that others change all the time (A116)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "parent" });
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("parent", ["rpm:1000"]);
    const children = Array.from({ length: 12 }, (_, at) => `child-${at}`);
    for (const id of children) {
      await repo.entities.create({ id, parentId: "parent", cascade: true });
    }
    const others = await Promise.all([1, 2].map(() => store.another(subject)));
    const clients = [subject, ...others].map(({ limiter: own }) => own);
    const take = async (entityId: string, at: number) =>
      clients[at % 3]?.acquire({ entityId, resource: RESOURCE, consume: { rpm: 10 } });
    await Promise.all(children.map(take));
    await limiter.acquire({ entityId: "parent", resource: RESOURCE, consume: { rpm: 10 } });
    expect(await left(subject, "parent", ...children)).toEqual([870, ...children.map(() => 90)]);
  });

  extra("a cascade passes over ancestors without limits, and goes on behind them", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await family(subject, "child", "parent", "grandparent", "top");
    await repo.limits.setEntity("child", ["rpm:100"]);
    await repo.limits.setEntity("top", ["rpm:10"]);
    for (const [own, top] of [
      [99, 9],
      [98, 8],
    ]) {
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      expect(lines(lease.statuses)).toEqual([`child/api rpm 1/${own}`, `top/api rpm 1/${top}`]);
    }
    expect(await limiter.available(CHILD)).toEqual({ rpm: 8 });
    const refusal = await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 9 } }));
    expect(refusal.violations.map(({ entityId }) => entityId)).toEqual(["top"]);
    expect(await left(subject, "child", "parent", "grandparent", "top")).toEqual([98, "-", "-", 8]);
  });

  extra("a cascade consumes from ancestors only for the limits they have", async () => {
    const { limiter, repo } = await store.open();
    await repo.entities.create({ id: "parent" });
    await repo.entities.create({ id: "child", parentId: "parent", cascade: true });
    await repo.limits.setEntity("child", ["rpm:100", "tpm:1000"]);
    await repo.limits.setEntity("parent", [Limit.perDay("tpd", 50), "tpm:500"]);
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1, tpm: 100 } });
    expect(lines(lease.statuses)).toEqual([
      "child/api rpm 1/99",
      "child/api tpm 100/900",
      "parent/api tpd 0/50",
      "parent/api tpm 100/400",
    ]);
    // A limit that only the parent has is not one of the entity.
    await invalidityOf(limiter.acquire({ ...CHILD, consume: { tpd: 1 } }));
    expect(String(thrownBy(() => lease.adjust({ tpd: 1 })))).toContain("tpd");
  });

  extra("a cascade reaches all of eight ancestors", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const ids = ["child", ...Array.from({ length: 8 }, (_, at) => `above-${at + 1}`)];
    await family(subject, ...ids);
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("above-8", ["rpm:3"]);
    for (let call = 0; call < 3; call += 1) {
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
      expect(lease.statuses.map(({ entityId }) => entityId)).toEqual(ids);
    }
    const refusal = await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 1 } }));
    expect(refusal.statuses).toHaveLength(9);
    expect(refusal.violations.map(({ entityId }) => entityId)).toEqual(["above-8"]);
    expect(await used(subject, ...ids)).toEqual(ids.map(() => 3));
  });

  extra("a cascade reaches buckets that were there before the entity was", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    await limiter.acquire({ ...CHILD, resource: "other", consume: { rpm: 10 } });
    await family(subject, "child", "parent");
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 10/80", "parent/api rpm 10/90"]);
    const other = await limiter.acquire({ ...CHILD, resource: "other", consume: { rpm: 10 } });
    expect(lines(other.statuses)).toEqual(["child/other rpm 10/80", "parent/other rpm 10/90"]);
    await lease.rollback();
    expect(await left(subject, "child", "parent")).toEqual([90, 100]);
  });

  test("a cascade reaches such buckets from another client too, all or nothing", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("parent", ["rpm:15"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    const other = await store.another(subject);
    await family(other, "child", "parent");
    const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    expect(lines(lease.statuses)).toEqual(["child/api rpm 10/80", "parent/api rpm 10/5"]);
    await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 10 } }));
    expect(await left(subject, "child", "parent")).toEqual([80, 5]);
    expect(await used(subject, "child", "parent")).toEqual([20, 10]);
  });

  extra("a child loses nothing when a parent that just appeared refuses", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await repo.limits.setEntity("parent", ["rpm:5"]);
    await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    const other = await store.another(subject);
    await family(other, "child", "parent");
    const refusal = await refusalOf(limiter.acquire({ ...CHILD, consume: { rpm: 10 } }));
    expect(lines(refusal.statuses)).toEqual(["child/api rpm 10/90", "parent/api rpm 10/5!"]);
    expect(await used(subject, "child")).toEqual([10]);
  });

  extra(
    "a cascade starts from a full bucket without a parent after the entity was deleted",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await family(subject, "child", "parent");
      await repo.limits.setSystem(["rpm:100"]);
      await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
      const other = await store.another(subject);
      await other.repo.entities.delete("child");
      const lease = await limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
      expect(lines(lease.statuses)).toEqual(["child/api rpm 10/90"]);
      // The parent was charged once, by the first.
      expect(await used(subject, "child", "parent")).toEqual([10, 10]);
    },
  );
}
