/** Resets and top-ups of balances, once per key. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "./balances.ts";
import { failureOf, invalidityOf, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const LIMITS = ["rpd:10/day", "tpd:100/day"];

async function opened(store: StoreUnderTest) {
  const subject = await store.open();
  await subject.repo.limits.setResource(BUCKET.resource, LIMITS);
  return subject;
}

export function balanceOperationsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("the balances of a bucket are filled by a reset, debt and all, while the total stays", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    const lease = await limiter.acquire({ ...BUCKET, consume: { rpd: 10, tpd: 60 } });
    lease.adjust({ tpd: 90 });
    await lease.commit();
    await refusalOf(limiter.acquire({ ...BUCKET, consume: { rpd: 1 } }));
    expect(await repo.buckets.reset({ ...BUCKET, limits: ["tpd"] })).toEqual({
      ...BUCKET,
      shards: 1,
      amounts: { tpd: 150 },
    });
    await refusalOf(limiter.acquire({ ...BUCKET, consume: { rpd: 1 } }));
    const { amounts } = await repo.buckets.reset({ ...BUCKET, principal: "support" });
    expect(amounts).toEqual({ rpd: 10, tpd: 0 });
    await limiter.acquire({ ...BUCKET, consume: { rpd: 10, tpd: 100 } });
    expect(await milliOf(subject, "key-1", "gpt-4", "tpd")).toEqual({
      balance: 0,
      consumed: 250_000,
    });
    const [event] = await repo.audit.list("key-1");
    expect(event).toMatchObject({
      action: "bucket_reset",
      principal: "support",
      resource: "gpt-4",
      details: { shards: 1, amounts: { rpd: 10, tpd: 0 } },
    });
  });

  extra(
    "the balances of a bucket are topped up once per key, also when the limit is gone",
    async () => {
      const { limiter, repo } = await opened(store);
      await limiter.acquire({ ...BUCKET, consume: { tpd: 80 } });
      const order = { ...BUCKET, amounts: { tpd: 50 }, idempotencyKey: "order-1" };
      const made = await repo.buckets.topUp(order);
      await repo.limits.setResource(BUCKET.resource, ["rpd:10/day"]);
      await limiter.acquire({ ...BUCKET, consume: { rpd: 1 } });
      expect(await repo.buckets.topUp(order)).toEqual(made);
      const unknown = repo.buckets.topUp({ ...order, idempotencyKey: "order-2" });
      expect(await failureOf(unknown)).toBeInstanceOf(ValidationError);
    },
  );

  test("the balances of a bucket are raised by a top-up once per key, and never beyond full", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await limiter.acquire({ ...BUCKET, consume: { tpd: 80 } });
    const order = { ...BUCKET, amounts: { tpd: 50 }, idempotencyKey: "order-1" };
    const results = await Promise.all([1, 2, 3].map(() => repo.buckets.topUp(order)));
    expect(results).toEqual(Array(3).fill({ ...BUCKET, shards: 1, amounts: { tpd: 50 } }));
    expect(await limiter.available(BUCKET)).toEqual({ rpd: 10, tpd: 70 });
    const more = await repo.buckets.topUp({ ...BUCKET, amounts: { tpd: 1000, rpd: 1 } });
    expect(more.amounts).toEqual({ tpd: 30, rpd: 0 });
    const other = repo.buckets.reset({ ...BUCKET, idempotencyKey: "order-1" });
    expect(await failureOf(other)).toBeInstanceOf(ValidationError);
    subject.time.advance(3 * 86_400_000 + 1000);
    await limiter.acquire({ ...BUCKET, consume: { tpd: 60 } });
    expect((await repo.buckets.topUp(order)).amounts).toEqual({ tpd: 50 });
  });

  extra("wrong names and numbers of balances are refused, and nothing is written", async () => {
    const { limiter, repo } = await opened(store);
    await limiter.acquire({ ...BUCKET, consume: { rpd: 1 } });
    const { buckets } = repo;
    const wrong = [
      () => buckets.reset({ ...BUCKET, limits: ["typo"] }),
      () => buckets.reset({ ...BUCKET, limits: [] }),
      () => buckets.topUp({ ...BUCKET, amounts: {} }),
      () => buckets.topUp({ ...BUCKET, amounts: { rpd: 0 } }),
      () => buckets.topUp({ ...BUCKET, amounts: { rpd: 1.5 } }),
      () => buckets.topUp({ ...BUCKET, amounts: { rpd: 1 }, idempotencyKey: "a b" }),
      () => buckets.reset({ ...BUCKET, limit: "rpd" } as never),
    ];
    for (const call of wrong) expect(await invalidityOf(call())).toBeInstanceOf(ValidationError);
    expect((await invalidityOf(buckets.reset({ ...BUCKET, limits: ["typo"] }))).message).toContain(
      "it has rpd, tpd",
    );
    const nothing = await invalidityOf(buckets.topUp(BUCKET as never));
    expect(nothing.message).toContain("like { tpm: 100 }, got undefined");
    expect(await repo.audit.list("key-1")).toEqual([]);
  });
}
