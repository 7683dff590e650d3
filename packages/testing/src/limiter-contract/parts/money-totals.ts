/** Totals in money: what a call costs is counted by resource too, and refuses nothing there. */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { seededRandom } from "../../seeded-random.ts";
import { milliOf } from "../balances.ts";
import { lines, refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const CALL = { entityId: "ann", resource: "gpt-4o", consume: { rpd: 1, usd: 2_000_000 } };

/** Returns the micro-dollars that buckets have counted. */
async function spent(subject: Subject, ...places: readonly (readonly [string, string])[]) {
  const found = await Promise.all(
    places.map(([entityId, resource]) => milliOf(subject, entityId, resource, "usd")),
  );
  return found.map((milli) => milli && milli.consumed / 1000);
}

export function moneyTotalsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  async function opened(): Promise<Subject> {
    const subject = await store.open({ totals: true, missingLimits: "ignore" });
    await subject.repo.limits.setEntity("ann", ["usd:$5/day UTC"], { resource: TOTAL });
    return subject;
  }

  test("a total in money is counted by resource too, and the counter is in no status", async () => {
    const subject = await opened();
    const { limiter } = subject;
    const lease = await limiter.acquire(CALL);
    expect(lines(lease.statuses)).toEqual(["ann/@all usd 2000000/3000000"]);
    expect(lease.consumed).toEqual({ usd: 2_000_000 });
    lease.settle({ usd: 1_234_567 });
    await lease.commit();
    const other = await limiter.acquire({ ...CALL, resource: "claude" });
    await other.commit();
    const places = [
      ["ann", "gpt-4o"],
      ["ann", "claude"],
      ["ann", TOTAL],
    ] as const;
    expect(await spent(subject, ...places)).toEqual([1_234_567, 2_000_000, 3_234_567]);
    const refusal = await refusalOf(limiter.acquire(CALL));
    expect(lines(refusal.statuses)).toEqual(["ann/@all usd 2000000/1765433!"]);
    await (await limiter.acquire({ ...CALL, consume: { usd: 1_000_000 } })).rollback();
    expect(await spent(subject, ...places)).toEqual([1_234_567, 2_000_000, 3_234_567]);
    const target = { entityId: "ann", resource: "gpt-4o" };
    expect(await limiter.available(target)).toEqual({ usd: 1_765_433 });
  });

  test("a call that consumes no money makes no bucket of the resource for it", async () => {
    const subject = await opened();
    await subject.repo.limits.setEntity("ann", ["usd:$5/day UTC", "rpd:9/day"], {
      resource: TOTAL,
    });
    await subject.limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    expect(await subject.repo.buckets.list("ann", { resource: "gpt-4o" })).toEqual([]);
  });

  test("limits of the resource keep what they are when money is counted with them", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpd:9/day"]);
    for (let call = 0; call < 2; call += 1) await (await limiter.acquire(CALL)).commit();
    const lease = await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    expect(lines(lease.statuses)).toEqual(["ann/gpt-4o rpd 1/6", "ann/@all usd 0/1000000"]);
    expect(await spent(subject, ["ann", "gpt-4o"])).toEqual([4_000_000]);
    await repo.limits.setSystem(["rpd:20/day", "tpd:5/day"]);
    await (await limiter.acquire({ ...CALL, consume: { usd: 1 } })).commit();
    expect(await milliOf(subject, "ann", "gpt-4o", "rpd")).toMatchObject({ consumed: 3000 });
    const usd = await spent(subject, ["ann", TOTAL]);
    expect(usd).toEqual([4_000_001]);
  });

  test("a limit in money of the resource itself is the one that counts", async () => {
    const subject = await opened();
    await subject.repo.limits.setEntity("ann", ["usd:$3/day UTC"], { resource: "gpt-4o" });
    const lease = await subject.limiter.acquire(CALL);
    expect(lines(lease.statuses)).toEqual([
      "ann/gpt-4o usd 2000000/1000000",
      "ann/@all usd 2000000/3000000",
    ]);
  });

  extra("each entity with a total in money counts by resource, and no other one", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "bob", parentId: "team", cascade: true });
    await repo.limits.setEntity("team", ["usd:$50/month UTC"], { resource: TOTAL });
    const lease = await limiter.acquire({ ...CALL, entityId: "bob" });
    lease.settle({ usd: 500 });
    await lease.commit();
    expect(await spent(subject, ["bob", "gpt-4o"], ["team", "gpt-4o"], ["team", TOTAL])).toEqual([
      undefined,
      500,
      500,
    ]);
    expect(lines(lease.statuses)).toEqual(["team/@all usd 2000000/48000000"]);
  });

  extra(
    "whatever becomes of calls, resources and cost centres count what the total does",
    async () => {
      const subject = await opened();
      const { limiter, repo } = subject;
      await repo.limits.setEntity("ann", ["usd:$0.002/day UTC"], { resource: TOTAL });
      await repo.limits.setResource("claude", ["rpd:1000/day"]);
      const random = seededRandom(42);
      const below = (bound: number) => Math.floor(random() * bound);
      const models = ["gpt-4o", "claude", "llama"];
      const call = async () => {
        const resource = models[below(3)] as string;
        const consume = { rpd: 1, usd: below(60) };
        const limits = ["usd:$900000/sec soft"];
        const also = [{ entityId: "tag:x", resource, consume, limits }];
        const decision = await limiter.tryAcquire({ ...CALL, resource, consume, also });
        if (!decision.granted) return;
        const { lease } = decision;
        if (random() < 0.2) return lease.rollback();
        const usd = below(80);
        lease.settle({ usd });
        lease.of(resource, { entityId: "tag:x" }).settle({ usd });
        if (random() < 0.3) await lease.flush();
        return lease.commit();
      };
      for (let round = 0; round < 12; round += 1)
        await Promise.all(Array.from({ length: 8 }, call));
      const sum = async (entityId: string) => {
        const places = models.map((model) => [entityId, model] as const);
        return (await spent(subject, ...places)).reduce<number>(
          (all, each) => all + (each ?? 0),
          0,
        );
      };
      const [total] = await spent(subject, ["ann", TOTAL]);
      expect(total).toBeGreaterThan(1000);
      expect([await sum("ann"), await sum("tag:x")]).toEqual([total, total]);
    },
  );
}
