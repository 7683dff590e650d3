/** Tests of leases: adjusting, committing and refunding, and the calls that are refused. */

import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { milliOf } from "./balances.ts";
import { failureOf, lines, refusalOf, thrownBy } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const TPM = { ...USER, limits: ["tpm:1000"] };

function tokens(subject: Subject, limitName: string) {
  return milliOf(subject, "user-1", RESOURCE, limitName);
}

export function leaseContract(store: StoreUnderTest): void {
  const { expect, test, testEach } = store.cases;

  test("a lease consumes more, checked like the first time (A070)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    await lease.consume({ tpm: 500 });
    expect(lease.consumed).toEqual({ tpm: 1000 });
    // At once, not only when it is committed.
    expect(await tokens(subject, "tpm")).toEqual({ balance: 0, consumed: 1_000_000 });
  });

  test("a lease is still of use after more was refused (A071)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    const refusal = await refusalOf(lease.consume({ tpm: 600 }));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 tpm 600/500!"]);
    expect(lease.consumed).toEqual({ tpm: 500 });
    await lease.consume({ tpm: 100 });
    expect(lease.consumed).toEqual({ tpm: 600 });
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 400_000, consumed: 600_000 });
  });

  test("a lease is refused what others took meanwhile (A071)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    const other = await store.another(subject);
    await other.limiter.acquire({ ...TPM, consume: { tpm: 800 } });
    await refusalOf(lease.consume({ tpm: 101 }));
    await lease.consume({ tpm: 100 });
    expect(await tokens(subject, "tpm")).toEqual({ balance: 0, consumed: 1_000_000 });
  });

  test("a lease may be adjusted into debt (A072)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    lease.adjust({ tpm: 1000 });
    expect(lease.consumed).toEqual({ tpm: 1500 });
    // Nothing is written before it is committed.
    expect(await tokens(subject, "tpm")).toEqual({ balance: 500_000, consumed: 500_000 });
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: -500_000, consumed: 1_500_000 });
  });

  test("a lease refunds what was not used (A073)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    lease.release({ tpm: 200 });
    expect(lease.consumed).toEqual({ tpm: 300 });
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 700_000, consumed: 300_000 });
  });

  testEach(["commit", "rollback"] as const)("a lease is over after %s (A074)", async (end) => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    await lease[end]();
    expect(thrownBy(() => lease.adjust({ tpm: 1 }))).toBeInstanceOf(LeaseExpiredError);
    expect(thrownBy(() => lease.release({ tpm: 1 }))).toBeInstanceOf(LeaseExpiredError);
    expect(thrownBy(() => lease.settle({ tpm: 1 }))).toBeInstanceOf(LeaseExpiredError);
    for (const late of [
      lease.consume({ tpm: 1 }),
      lease.flush(),
      lease.commit(),
      lease.rollback(),
    ]) {
      expect(await failureOf(late)).toBeInstanceOf(LeaseExpiredError);
    }
    // Disposing a settled lease does nothing.
    await lease[Symbol.asyncDispose]();
    const balance = end === "commit" ? 500_000 : 1_000_000;
    expect(await tokens(subject, "tpm")).toMatchObject({ balance });
    expect(lease.consumed).toEqual(end === "commit" ? { tpm: 500 } : {});
  });

  test("a lease changes only the limits that are named (A075)", async () => {
    const { limiter } = await store.open();
    const limits = ["rpm:100", "tpm:1000"];
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 1, tpm: 100 } });
    await lease.consume({ rpm: 1 });
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 100 });
    lease.adjust({ rpm: 4 });
    expect(lease.consumed).toEqual({ rpm: 6, tpm: 100 });
  });

  test("a lease keeps count of what was consumed, net (A076)", async () => {
    const subject = await store.open();
    const limits = [Limit.perDay("tpd", 10_000)];
    const lease = async (act: (lease: Awaited<ReturnType<typeof take>>) => unknown) => {
      const before = (await tokens(subject, "tpd"))?.consumed ?? 0;
      const taken = await take();
      await act(taken);
      await taken.commit();
      return ((await tokens(subject, "tpd"))?.consumed ?? 0) - before;
    };
    const take = () => subject.limiter.acquire({ ...USER, limits, consume: { tpd: 100 } });
    expect(await lease(() => undefined)).toBe(100_000);
    expect(await lease((taken) => taken.consume({ tpd: 50 }))).toBe(150_000);
    expect(await lease((taken) => taken.adjust({ tpd: -30 }))).toBe(70_000);
    expect(await lease((taken) => taken.release({ tpd: 40 }))).toBe(60_000);
    expect(await lease((taken) => taken.adjust({ tpd: 200 }))).toBe(300_000);
    expect(await lease((taken) => taken.release({ tpd: 100 }))).toBe(0);
  });

  test("two leases at once are both counted (A077)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const request = { ...USER, limits: [Limit.perDay("rpd", 1000)] };
    const [first, second] = await Promise.all([
      limiter.acquire({ ...request, consume: { rpd: 10 } }),
      limiter.acquire({ ...request, consume: { rpd: 5 } }),
    ]);
    first.adjust({ rpd: 20 });
    second.adjust({ rpd: 15 });
    await Promise.all([first.commit(), second.commit()]);
    expect(await limiter.available(request)).toEqual({ rpd: 950 });
    expect(await tokens(subject, "rpd")).toEqual({ balance: 950_000, consumed: 50_000 });
  });

  test("a lease shows debt while it lasts (A078)", async () => {
    const { limiter, time } = await store.open();
    const request = { ...USER, limits: ["rpm:10"] };
    const lease = await limiter.acquire({ ...request, consume: { rpm: 10 } });
    lease.adjust({ rpm: 5 });
    await lease.commit();
    time.advance(6000);
    expect(await limiter.available(request)).toEqual({ rpm: -4 });
    const refusal = await refusalOf(limiter.acquire({ ...request, consume: { rpm: 1 } }));
    expect(refusal.retryAfterSeconds).toBe(30.001);
    time.advance(30_000);
    await limiter.acquire({ ...request, consume: { rpm: 1 } });
  });

  test("a lease tells real figures after a race was lost (A089)", async () => {
    const subject = await store.open();
    const other = await store.another(subject);
    const request = { ...USER, limits: ["rpm:100"] };
    await subject.limiter.acquire({ ...request, consume: { rpm: 10 } });
    await other.limiter.acquire({ ...request, consume: { rpm: 40 } });
    const refusal = await refusalOf(subject.limiter.acquire({ ...request, consume: { rpm: 60 } }));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 60/50!"]);
    expect(refusal.retryAfterSeconds).toBe(6.001);
  });

  test("a lease is adjusted for limits that were not asked for, every time (A090)", async () => {
    for (const speculativeWrites of [true, false]) {
      const subject = await store.open({ speculativeWrites });
      const request = { ...USER, limits: ["rpm:100", "tpm:1000"], consume: { rpm: 1 } };
      for (const spent of [100, 200, 300]) {
        const lease = await subject.limiter.acquire(request);
        lease.adjust({ tpm: 100 });
        expect(lease.consumed).toEqual({ rpm: 1, tpm: 100 });
        await lease.commit();
        expect(await tokens(subject, "tpm")).toEqual({
          balance: (1000 - spent) * 1000,
          consumed: spent * 1000,
        });
      }
    }
  });

  test("a lease ends on the bucket it consumed from, whatever others do to it (A091)", async () => {
    const subject = await store.open();
    const { repo, time } = subject;
    // Limits of its own: such a bucket is never dropped, however long it is idle.
    await repo.limits.setEntity("user-1", ["tpm:1000"], { resource: RESOURCE });
    const adjusted = await subject.limiter.acquire({ ...USER, consume: { tpm: 300 } });
    const returned = await subject.limiter.acquire({ ...USER, consume: { tpm: 300 } });
    const other = await store.another(subject);
    await other.repo.limits.setEntity("user-1", ["tpm:2000"], { resource: RESOURCE });
    await other.limiter.acquire({ ...USER, consume: { tpm: 100 } });
    time.advance(86_400_000 * 2);
    await other.limiter.acquire({ ...USER, consume: { tpm: 500 } });
    adjusted.adjust({ tpm: 200 });
    await adjusted.commit();
    await returned.rollback();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 1_600_000, consumed: 1_100_000 });
  });

  test("a lease never brings back a bucket that is gone (A092)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const leases = await Promise.all(
      [1, 2, 3, 4].map(() => limiter.acquire({ ...TPM, consume: { tpm: 100 } })),
    );
    await repo.entities.delete("user-1");
    const [more, less, back, flushed] = leases;
    more?.adjust({ tpm: 50 });
    less?.adjust({ tpm: -50 });
    flushed?.adjust({ tpm: 10 });
    await flushed?.flush();
    await Promise.all([more?.commit(), less?.commit(), back?.rollback(), flushed?.rollback()]);
    expect(await repo.buckets.list("user-1")).toEqual([]);
    // And the next one starts full, as a new one should.
    await limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    expect(await tokens(subject, "tpm")).toEqual({ balance: 900_000, consumed: 100_000 });
  });

  test("a lease that outlives its bucket creates no bucket of an entity that was deleted", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:60", "tpm:10000"]);
    await repo.entities.create({ id: "user-1" });
    const lease = await limiter.acquire({ ...USER, consume: { tpm: 500 } });
    await repo.entities.delete("user-1");
    lease.adjust({ tpm: 20_000 });
    await lease.commit();
    expect(await repo.buckets.list("user-1")).toEqual([]);
    expect(await limiter.available(USER)).toEqual({ rpm: 60, tpm: 10_000 });
  });
}
