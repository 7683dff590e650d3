/** Corrections of a lease: amounts that it takes and refuses, settling, flushing, refunding. */

import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "./balances.ts";
import { failureOf, invalidityOf, refusalOf, thrownBy } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const INVALID = { code: "ZAEL_VALIDATION" };
const TPM = { ...USER, limits: ["tpm:1000"] };

function tokens(subject: Subject, limitName: string) {
  return milliOf(subject, "user-1", RESOURCE, limitName);
}

export function leaseCorrectionsContract(store: StoreUnderTest): void {
  const { expect, extra, extraEach, test } = store.cases;

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
      expect(thrownBy(act)).toMatchObject(INVALID);
    }
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 120 });
    lease.release({ tpm: 120, rpm: 2 });
    expect(lease.consumed).toEqual({});
    await lease.commit();
    expect(await tokens(subject, "rpm")).toEqual({ balance: 100_000, consumed: 0 });
    expect(await tokens(subject, "tpm")).toEqual({ balance: 1_000_000, consumed: 0 });
  });

  extraEach([
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
    expect(thrownBy(() => lease.adjust(wrong))).toMatchObject(INVALID);
    expect(thrownBy(() => lease.release(wrong))).toMatchObject(INVALID);
    expect(thrownBy(() => lease.settle(wrong))).toMatchObject(INVALID);
    await invalidityOf(lease.consume(wrong));
    for (const tpm of [-1, 0.5, Number.NaN, undefined as unknown as number]) {
      await invalidityOf(lease.consume({ tpm }));
    }
    await lease.commit();
    expect(await tokens(subject, "tpm")).toEqual({ balance: 500_000, consumed: 500_000 });
  });

  test("a lease is settled to what the call cost in the end, more or less than estimated", async () => {
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

  extraEach(["adjust", "release", "settle"] as const)(
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
    expect(thrownBy(() => lease.adjust({ tpm: 1 }))).toMatchObject(INVALID);
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

  test("a lease refunds everything that was ever written of it, also while it is written", async () => {
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
}
