/** What a lease can do with what was taken, and what it must not. */

import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { failureOf, invalidityOf, lines, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import {
  describeItemStores,
  describeLimiterStores,
  milliOf,
  type Subject,
} from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const TPM = { ...USER, limits: ["tpm:1000"] };

function tokens(subject: Subject, limitName: string) {
  return milliOf(subject, "user-1", RESOURCE, limitName);
}

describeLimiterStores("a lease", (store) => {
  const extra = itUnless(store.slow);

  it("a lease consumes more, checked like the first time (A070)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    await lease.consume({ tpm: 500 });
    expect(lease.consumed).toEqual({ tpm: 1000 });
    // At once, not only when it is committed.
    expect(await tokens(subject, "tpm")).toEqual({ balance: 0, consumed: 1_000_000 });
  });

  it("a lease is still of use after more was refused (A071)", async () => {
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

  it("a lease is refused what others took meanwhile (A071)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    const other = await store.another(subject);
    await other.limiter.acquire({ ...TPM, consume: { tpm: 800 } });
    await refusalOf(lease.consume({ tpm: 101 }));
    await lease.consume({ tpm: 100 });
    expect(await tokens(subject, "tpm")).toEqual({ balance: 0, consumed: 1_000_000 });
  });

  it("a lease may be adjusted into debt (A072)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    lease.adjust({ tpm: 1000 });
    expect(lease.consumed).toEqual({ tpm: 1500 });
    // Nothing is written before it is committed.
    expect(await tokens(subject, "tpm")).toEqual({ balance: 500_000, consumed: 500_000 });
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: -500_000, consumed: 1_500_000 });
  });

  it("a lease refunds what was not used (A073)", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    lease.release({ tpm: 200 });
    expect(lease.consumed).toEqual({ tpm: 300 });
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 700_000, consumed: 300_000 });
  });

  it.each(["commit", "rollback"] as const)("a lease is over after %s (A074)", async (end) => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    await lease[end]();
    expect(() => lease.adjust({ tpm: 1 })).toThrow(LeaseExpiredError);
    expect(() => lease.release({ tpm: 1 })).toThrow(LeaseExpiredError);
    expect(() => lease.settle({ tpm: 1 })).toThrow(LeaseExpiredError);
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

  it("a lease changes only the limits that are named (A075)", async () => {
    const { limiter } = await store.open();
    const limits = ["rpm:100", "tpm:1000"];
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 1, tpm: 100 } });
    await lease.consume({ rpm: 1 });
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 100 });
    lease.adjust({ rpm: 4 });
    expect(lease.consumed).toEqual({ rpm: 6, tpm: 100 });
  });

  it("a lease keeps count of what was consumed, net (A076)", async () => {
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

  it("two leases at once are both counted (A077)", async () => {
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

  it("a lease shows debt while it lasts (A078)", async () => {
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

  it("a lease tells real figures after a race was lost (A089)", async () => {
    const subject = await store.open();
    const other = await store.another(subject);
    const request = { ...USER, limits: ["rpm:100"] };
    await subject.limiter.acquire({ ...request, consume: { rpm: 10 } });
    await other.limiter.acquire({ ...request, consume: { rpm: 40 } });
    const refusal = await refusalOf(subject.limiter.acquire({ ...request, consume: { rpm: 60 } }));
    expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 60/50!"]);
    expect(refusal.retryAfterSeconds).toBe(6.001);
  });

  it("a lease is adjusted for limits that were not asked for, every time (A090)", async () => {
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

  it("a lease ends on the bucket it consumed from, whatever others do to it (A091)", async () => {
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

  it("a lease never brings back a bucket that is gone (A092)", async () => {
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

  extra("a lease never refunds more than it holds, and then writes nothing", async () => {
    const subject = await store.open();
    const request = { ...USER, limits: ["rpm:100", "tpm:1000"], consume: { rpm: 2, tpm: 100 } };
    const lease = await subject.limiter.acquire(request);
    lease.adjust({ tpm: 20 });
    for (const act of [
      () => lease.adjust({ rpm: 5, tpm: -121 }),
      () => lease.release({ tpm: 121, rpm: 1 }),
      () => lease.release({ rpm: 3 }),
      () => lease.adjust({ rpm: -3 }),
    ]) {
      expect(act).toThrow(expect.objectContaining({ code: "ZAEL_VALIDATION" }));
    }
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 120 });
    lease.release({ tpm: 120, rpm: 2 });
    expect(lease.consumed).toEqual({});
    await lease.commit();
    expect(await tokens(subject, "rpm")).toEqual({ balance: 100_000, consumed: 0 });
    expect(await tokens(subject, "tpm")).toEqual({ balance: 1_000_000, consumed: 0 });
  });

  extra.each([
    ["an unknown name", { rpm: 1 }],
    ["the reserved name", { wcu: 1 }],
    ["__proto__", JSON.parse('{"__proto__": 1}')],
    ["constructor", { constructor: 1 }],
    ["more than anybody may hold", { tpm: 1e12 + 1 }],
    ["text", { tpm: "1" }],
    ["a list", [1]],
  ])("a lease refuses an amount that is not a number of tokens: %s", async (_, amounts) => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 500 } });
    const wrong = amounts as Record<string, number>;
    const invalid = expect.objectContaining({ code: "ZAEL_VALIDATION" });
    expect(() => lease.adjust(wrong)).toThrow(invalid);
    expect(() => lease.release(wrong)).toThrow(invalid);
    expect(() => lease.settle(wrong)).toThrow(invalid);
    await invalidityOf(lease.consume(wrong));
    for (const tpm of [-1, 0.5, Number.NaN, undefined as unknown as number]) {
      await invalidityOf(lease.consume({ tpm }));
    }
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 500_000, consumed: 500_000 });
  });

  it("a lease is settled to what the call cost in the end, more or less than estimated", async () => {
    const subject = await store.open();
    for (const [cost, balance] of [
      [730, 270],
      [120, 150],
      [400, -250],
    ] as const) {
      const estimate = Math.min(500, balance + cost);
      const lease = await subject.limiter.acquire({
        ...TPM,
        consume: { tpm: Math.min(100, estimate) },
      });
      lease.adjust({ tpm: 7 });
      lease.settle({ tpm: cost });
      lease.settle({ tpm: cost });
      expect(lease.consumed).toEqual({ tpm: cost });
      await lease.commit();
      expect(await tokens(subject, "tpm")).toMatchObject({ balance: balance * 1000 });
    }
  });

  extra(
    "a lease is settled to zero at the least, with a warning, and keeps what is not named",
    async () => {
      const warnings: LimiterWarning[] = [];
      const subject = await store.open({ onWarning: (warning) => warnings.push(warning) });
      const request = { ...USER, limits: ["rpm:100", "tpm:1000"], consume: { rpm: 1, tpm: 500 } };
      const lease = await subject.limiter.acquire(request);
      lease.settle({ tpm: -30 });
      expect(lease.consumed).toEqual({ rpm: 1 });
      await lease.commit();
      expect(await tokens(subject, "tpm")).toEqual({ balance: 1_000_000, consumed: 0 });
      expect(warnings).toEqual([
        {
          kind: "amount_negative",
          ...USER,
          limitName: "tpm",
          operation: "settle",
          amount: -30,
        },
      ]);
    },
  );

  extra(
    "a lease rounds fractions to the larger consumption, except what is consumed at once",
    async () => {
      const subject = await store.open();
      const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
      lease.adjust({ tpm: 0.1 });
      expect(lease.consumed).toEqual({ tpm: 101 });
      lease.adjust({ tpm: -0.9 });
      lease.release({ tpm: 1.9 });
      expect(lease.consumed).toEqual({ tpm: 100 });
      lease.release({ tpm: -0.5 });
      expect(lease.consumed).toEqual({ tpm: 101 });
      lease.settle({ tpm: 49.01 });
      await lease.commit();
      expect(await tokens(subject, "tpm")).toEqual({ balance: 950_000, consumed: 50_000 });
    },
  );

  extra.each(["adjust", "release", "settle"] as const)(
    "a lease changes nothing and warns when %s has no amount",
    async (operation) => {
      const warnings: LimiterWarning[] = [];
      const subject = await store.open({ onWarning: (warning) => warnings.push(warning) });
      const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
      const missing = [undefined, null, Number.NaN, Number.POSITIVE_INFINITY];
      for (const amount of missing) lease[operation]({ tpm: amount as number });
      await lease.commit();
      expect(await tokens(subject, "tpm")).toEqual({ balance: 900_000, consumed: 100_000 });
      expect(warnings).toEqual(
        missing.map((amount) => ({
          kind: "amount_missing",
          ...USER,
          limitName: "tpm",
          operation,
          amount,
        })),
      );
    },
  );

  extra("a lease cannot be adjusted beyond what can be counted", async () => {
    const { limiter } = await store.open();
    const lease = await limiter.acquire({ ...TPM, consume: { tpm: 1 } });
    lease.adjust({ tpm: 1e12 - 1 });
    expect(() => lease.adjust({ tpm: 1 })).toThrow(
      expect.objectContaining({ code: "ZAEL_VALIDATION" }),
    );
    expect(lease.consumed).toEqual({ tpm: 1e12 });
  });

  extra("a lease writes what was adjusted so far when it is flushed, and only once", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    lease.adjust({ tpm: 50 });
    await lease.flush();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 850_000, consumed: 150_000 });
    lease.adjust({ tpm: -20 });
    await lease.flush();
    await lease.flush();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 870_000, consumed: 130_000 });
    lease.adjust({ tpm: 1 });
    // All at once: each write starts from what the one before has written.
    const flushes = [lease.flush(), lease.flush()];
    lease.adjust({ tpm: 2 });
    await Promise.all([...flushes, lease.flush(), lease.commit()]);
    expect(await tokens(subject, "tpm")).toEqual({ balance: 867_000, consumed: 133_000 });
    expect(lease.consumed).toEqual({ tpm: 133 });
  });

  it("a lease refunds everything that was ever written of it, also while it is written", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    await lease.consume({ tpm: 100 });
    lease.adjust({ tpm: 50 });
    await lease.flush();
    lease.adjust({ tpm: 70 });
    const flush = lease.flush();
    lease.adjust({ tpm: 200 });
    await Promise.all([flush, lease.rollback()]);
    expect(await tokens(subject, "tpm")).toEqual({ balance: 1_000_000, consumed: 0 });
  });

  extra("a lease refunds at once what was granted after its end", async () => {
    const subject = await store.open();
    const lease = await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    const late = failureOf(lease.consume({ tpm: 100 }));
    await lease.commit();
    const error = await late;
    // Either it was faster than the end, or it is void.
    const consumed = error instanceof LeaseExpiredError ? 100_000 : 200_000;
    expect(await tokens(subject, "tpm")).toEqual({ balance: 1_000_000 - consumed, consumed });
  });

  extra("a refund does not fill a bucket beyond its capacity", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    const lease = await limiter.acquire({ ...TPM, consume: { tpm: 1000 } });
    time.advance(60_000);
    await lease.rollback();
    expect(await limiter.available(TPM)).toEqual({ tpm: 1000 });
    await limiter.acquire({ ...TPM, consume: { tpm: 1000 } });
    await refusalOf(limiter.acquire({ ...TPM, consume: { tpm: 1 } }));
  });
});

describeItemStores("the requests of a lease", (store) => {
  /** The requests that `work` makes. */
  async function during(
    work: (subject: Subject, calls: () => string[]) => Promise<unknown>,
  ): Promise<void> {
    const seen: StoreCall[] = [];
    const subject = await store.open({ onCall: (call) => seen.push(call) });
    const calls = () => seen.splice(0).map(({ operation }) => operation);
    await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    calls();
    await work(subject, calls);
  }

  it("a lease whose amounts do not change in the end makes no request (A079)", () =>
    during(async ({ limiter }, calls) => {
      const lease = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      calls();
      lease.adjust({ tpm: 5 });
      lease.release({ tpm: 5 });
      await lease.flush();
      await lease.commit();
      expect(calls()).toEqual([]);
    }));

  it("the requests of a lease are one for each bucket that was adjusted or refunded (A080)", () =>
    during(async (subject, calls) => {
      const { limiter } = subject;
      const adjusted = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      calls();
      adjusted.adjust({ tpm: 5 });
      await adjusted.commit();
      expect(calls()).toHaveLength(1);
      const back = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      await back.consume({ tpm: 10 });
      calls();
      await back.rollback();
      expect(calls()).toHaveLength(1);
      expect(await tokens(subject, "tpm")).toEqual({ balance: 885_000, consumed: 115_000 });
    }));
});
