/** Limits of slots: taken with all else or not at all, held until the lease ends, given back. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { failureOf, lines, refusalOf, thrownBy } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R };
const LIMITS = ["parallel:2 concurrent", "rpm:10"];
const ONE = { parallel: 1, rpm: 1 };
const SLOTLESS = "the store holds no slots";

/** Returns what is free of each limit. */
function left({ limiter }: Subject, call: { entityId: string; resource: string } = CALL) {
  return limiter.available(call);
}

export function slotsContract(store: StoreUnderTest): void {
  const { expect, testUnless } = store.cases;
  const test = testUnless(store.slots ? undefined : SLOTLESS);

  async function opened(limits: readonly string[] = LIMITS): Promise<Subject> {
    const subject = await store.open();
    await subject.repo.limits.setResource(R, limits);
    return subject;
  }

  test("a slot is held until the lease is committed, rolled back or disposed of", async () => {
    const subject = await opened();
    const { limiter, time } = subject;
    const first = await limiter.acquire({ ...CALL, consume: ONE });
    const second = await limiter.acquire({ ...CALL, consume: ONE });
    expect(await left(subject)).toEqual({ parallel: 0, rpm: 8 });
    time.advance(600_000);
    expect((await left(subject)).parallel).toBe(0);
    await first.commit();
    expect(await left(subject)).toEqual({ parallel: 1, rpm: 10 });
    await second.rollback();
    expect((await left(subject)).parallel).toBe(2);
    await (await limiter.acquire({ ...CALL, consume: ONE }))[Symbol.asyncDispose]();
    await limiter.run({ ...CALL, consume: ONE }, async () => {
      expect((await left(subject)).parallel).toBe(1);
    });
    expect((await left(subject)).parallel).toBe(2);
  });

  test("a refusal for a slot consumes nothing, and its wait is an estimate", async () => {
    const subject = await opened();
    const { limiter } = subject;
    const held = [
      await limiter.acquire({ ...CALL, consume: ONE }),
      await limiter.acquire({ ...CALL, consume: ONE }),
    ];
    for (let call = 0; call < 3; call += 1) {
      const refusal = await refusalOf(limiter.acquire({ ...CALL, consume: ONE }));
      expect(lines(refusal.violations)).toEqual(["key-1/gpt-4 parallel 1/0!"]);
      expect(refusal.violations[0]).toMatchObject({ kind: "concurrency", estimated: true });
      expect(refusal.retryAfterSeconds).toBeGreaterThan(0);
      expect(refusal.toJSON().limits.find(({ exceeded }) => exceeded)).toMatchObject({
        kind: "concurrency",
        estimated: true,
      });
    }
    expect(await left(subject)).toEqual({ parallel: 0, rpm: 8 });
    const never = await refusalOf(limiter.acquire({ ...CALL, consume: { parallel: 3 } }));
    expect(never.neverFits).toBe(true);
    for (const lease of held) await lease.commit();
  });

  test("a refusal for tokens takes no slot", async () => {
    const subject = await opened();
    await refusalOf(subject.limiter.acquire({ ...CALL, consume: { parallel: 1, rpm: 11 } }));
    expect(await left(subject)).toEqual({ parallel: 2, rpm: 10 });
  });

  test("slots are given back early by a release, which needs no commit", async () => {
    const subject = await opened(["parallel:5 concurrent", "tpm:1000"]);
    const lease = await subject.limiter.acquire({ ...CALL, consume: { parallel: 4, tpm: 100 } });
    expect(lease.consumed).toEqual({ parallel: 4, tpm: 100 });
    lease.release({ parallel: 3 });
    await lease.flush();
    expect(await left(subject)).toEqual({ parallel: 4, tpm: 900 });
    expect(lease.consumed).toEqual({ parallel: 1, tpm: 100 });
    expect(thrownBy(() => lease.release({ parallel: 2 }))).toBeInstanceOf(ValidationError);
    lease.settle({ tpm: 40 });
    await lease.commit();
    expect(await left(subject)).toEqual({ parallel: 5, tpm: 960 });
  });

  test("a commit right after a release gives back each slot once", async () => {
    const subject = await opened();
    const other = await subject.limiter.acquire({ ...CALL, consume: ONE });
    const lease = await subject.limiter.acquire({ ...CALL, consume: ONE });
    lease.release({ parallel: 1 });
    await lease.commit();
    expect((await left(subject)).parallel).toBe(1);
    await other.commit();
    expect((await left(subject)).parallel).toBe(2);
  });

  test("slots are neither adjusted nor settled", async () => {
    const subject = await opened();
    const lease = await subject.limiter.acquire({ ...CALL, consume: ONE });
    for (const act of [
      () => lease.adjust({ parallel: 1 }),
      () => lease.adjust({ parallel: -1 }),
      () => lease.settle({ parallel: 0 }),
      () => lease.settle({ rpm: 2, parallel: 1 }),
    ]) {
      const error = thrownBy(act);
      expect(error).toBeInstanceOf(ValidationError);
      expect((error as Error).message).toContain("release");
    }
    expect(lease.consumed).toEqual(ONE);
    await lease.commit();
    expect(await left(subject)).toEqual({ parallel: 2, rpm: 9 });
  });

  test("a release takes no slots, and one of nothing changes nothing", async () => {
    const subject = await opened();
    const lease = await subject.limiter.acquire({ ...CALL, consume: ONE });
    for (const amount of [-1, -0.5, -4]) {
      const error = thrownBy(() => lease.release({ rpm: 1, parallel: amount }));
      expect(error).toBeInstanceOf(ValidationError);
      expect((error as Error).message).toContain("consume");
    }
    for (const amounts of [{ parallel: 0 }, { parallel: Number.NaN }, undefined, null]) {
      lease.release(amounts as Record<string, number>);
    }
    expect(lease.consumed).toEqual(ONE);
    await lease.flush();
    expect(await left(subject)).toEqual({ parallel: 1, rpm: 9 });
    await lease.commit();
    expect(await left(subject)).toEqual({ parallel: 2, rpm: 9 });
  });

  test("a lease takes more slots, and gives back all of them", async () => {
    const subject = await opened(["parallel:5 concurrent"]);
    const lease = await subject.limiter.acquire({ ...CALL, consume: { parallel: 2 } });
    await lease.consume({ parallel: 3 });
    await refusalOf(lease.consume({ parallel: 1 }));
    expect(lease.consumed).toEqual({ parallel: 5 });
    await lease.commit();
    expect(await left(subject)).toEqual({ parallel: 5 });
  });

  test("a parent's missing slot leaves the child's slot and tokens", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    for (const id of ["ann", "bob"]) {
      await repo.entities.create({ id, parentId: "team", cascade: true });
    }
    await repo.limits.setResource(R, ["parallel:2 concurrent", "rpm:10"]);
    await repo.limits.setEntity("team", ["parallel:1 concurrent"], { resource: R });
    const ann = { entityId: "ann", resource: R };
    const bob = { entityId: "bob", resource: R };
    const lease = await limiter.acquire({ ...ann, consume: ONE });
    const refusal = await refusalOf(limiter.acquire({ ...bob, consume: ONE }));
    expect(lines(refusal.violations)).toEqual(["team/gpt-4 parallel 1/0!"]);
    expect(await left(subject, bob)).toEqual({ parallel: 0, rpm: 10 });
    await lease.commit();
    expect(await left(subject, bob)).toEqual({ parallel: 1, rpm: 10 });
    await (await limiter.acquire({ ...bob, consume: ONE })).commit();
    expect(await left(subject, { entityId: "team", resource: R })).toEqual({ parallel: 1 });
  });

  test("slots of other resources and of totals are taken with them or not at all", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setResource(R, ["parallel:2 concurrent"]);
    await repo.limits.setResource("search", ["parallel:1 concurrent"]);
    await repo.limits.setEntity("key-1", ["parallel:2 concurrent"], { resource: TOTAL });
    const search = { resource: "search", consume: { parallel: 1 } };
    const call = { ...CALL, consume: { parallel: 1 }, totals: true };
    const lease = await limiter.acquire({ ...call, also: [search] });
    await refusalOf(limiter.acquire({ ...call, also: [search] }));
    await refusalOf(limiter.acquire(call));
    expect((await left(subject)).parallel).toBe(1);
    lease.of("search").release({ parallel: 1 });
    await lease.flush();
    const second = await limiter.acquire(call);
    await lease.commit();
    await second.commit();
    for (const resource of [R, "search", TOTAL]) {
      const free = await left(subject, { entityId: "key-1", resource });
      expect(free.parallel).toBe(resource === "search" ? 1 : 2);
    }
  });

  test("fewer slots than are held cut nothing off, and more of them are free at once", async () => {
    const subject = await opened(["parallel:4 concurrent"]);
    const { limiter, repo } = subject;
    const leases: Lease[] = [];
    for (let call = 0; call < 4; call += 1) {
      leases.push(await limiter.acquire({ ...CALL, consume: { parallel: 1 } }));
    }
    await repo.limits.setResource(R, ["parallel:2 concurrent"]);
    await refusalOf(limiter.acquire({ ...CALL, consume: { parallel: 1 } }));
    expect(await left(subject)).toEqual({ parallel: -2 });
    for (const free of [-1, 0, 1]) {
      await leases.pop()?.commit();
      expect(await left(subject)).toEqual({ parallel: free });
    }
    await repo.limits.setResource(R, ["parallel:3 concurrent"]);
    const more = await limiter.acquire({ ...CALL, consume: { parallel: 2 } });
    expect(await left(subject)).toEqual({ parallel: 0 });
    await more.commit();
    await leases.pop()?.commit();
    expect(await left(subject)).toEqual({ parallel: 3 });
  });

  test("soft slots refuse nothing, and are overdrawn", async () => {
    const subject = await opened(["parallel:1 concurrent soft"]);
    const first = await subject.limiter.acquire({ ...CALL, consume: { parallel: 1 } });
    const second = await subject.limiter.acquire({ ...CALL, consume: { parallel: 2 } });
    expect([first.overdrawn, second.overdrawn]).toEqual([[], ["parallel"]]);
    expect(await left(subject)).toEqual({ parallel: -2 });
    await second.commit();
    await first.commit();
    expect(await left(subject)).toEqual({ parallel: 1 });
  });

  test("a bypassed call holds nothing, and a resource that is off takes nothing", async () => {
    const subject = await opened(["parallel:1 concurrent", "rpm:10"]);
    const { limiter, repo } = subject;
    await repo.limits.bypass({ resource: R });
    const leases = [
      await limiter.acquire({ ...CALL, consume: ONE }),
      await limiter.acquire({ ...CALL, consume: ONE }),
    ];
    await repo.limits.enable({ resource: R });
    expect(await left(subject)).toEqual({ parallel: 1, rpm: 10 });
    const held = await limiter.acquire({ ...CALL, consume: ONE });
    for (const lease of leases) await lease.commit();
    expect((await left(subject)).parallel).toBe(0);
    await held.commit();
    await repo.limits.disable({ resource: R });
    await failureOf(limiter.acquire({ ...CALL, consume: ONE }));
    await repo.limits.enable({ resource: R });
    expect((await left(subject)).parallel).toBe(1);
  });

  test("clients share the slots of a bucket, and each gives back its own", async () => {
    const subject = await opened();
    const other = await store.another(subject);
    const mine = await subject.limiter.acquire({ ...CALL, consume: ONE });
    const others = await other.limiter.acquire({ ...CALL, consume: ONE });
    await refusalOf(subject.limiter.acquire({ ...CALL, consume: ONE }));
    await others.commit();
    expect((await left(subject)).parallel).toBe(1);
    await mine.commit();
    expect((await left(other)).parallel).toBe(2);
  });

  test("a release to a bucket that was deleted frees nothing of the one made since", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "key-1" });
    const old = await limiter.acquire({ ...CALL, consume: ONE });
    await repo.entities.delete("key-1");
    await repo.entities.create({ id: "key-1" });
    const held = [
      await limiter.acquire({ ...CALL, consume: ONE }),
      await limiter.acquire({ ...CALL, consume: ONE }),
    ];
    await old.commit();
    expect((await left(subject)).parallel).toBe(0);
    await refusalOf(limiter.acquire({ ...CALL, consume: ONE }));
    for (const lease of held) await lease.commit();
    expect((await left(subject)).parallel).toBe(2);
  });

  test("an operator neither resets nor tops up slots, and sees how many are held", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    const lease = await limiter.acquire({ ...CALL, consume: { parallel: 2, rpm: 5 } });
    const bucket = { entityId: "key-1", resource: R };
    await repo.buckets.reset(bucket);
    expect(await left(subject)).toEqual({ parallel: 0, rpm: 10 });
    for (const call of [
      () => repo.buckets.reset({ ...bucket, limits: ["parallel"] }),
      () => repo.buckets.topUp({ ...bucket, amounts: { parallel: 1 } }),
    ]) {
      expect(await failureOf(call())).toBeInstanceOf(ValidationError);
    }
    const states = await repo.buckets.list("key-1", { resource: R });
    const parallel = states.find(({ limitName }) => limitName === "parallel");
    expect(parallel).toMatchObject({ tokens: 0, capacity: 2 });
    expect(String(parallel?.limit)).toBe("parallel:2 concurrent");
    expect(Object.values(parallel?.holders ?? {})).toEqual([2]);
    await lease.commit();
    expect((await left(subject)).parallel).toBe(2);
  });
}
