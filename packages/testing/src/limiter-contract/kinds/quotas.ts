/** Quotas: an allowance that starts over at the edges of a calendar. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { invalidityOf, refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const KEY = { entityId: "key-1", resource: "api" };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAILY = "req:10/day UTC";

async function opened(store: StoreUnderTest, limits: readonly (string | Limit)[]) {
  const subject = await store.open();
  await subject.repo.limits.setResource(KEY.resource, limits);
  // Two hours into a day: no test comes to an edge by accident.
  const { time } = subject;
  time.advance(DAY_MS - (time.clock() % DAY_MS) + 2 * HOUR_MS);
  return subject;
}

/** Moves to some milliseconds after the next midnight of UTC. */
function toMidnight({ time }: Subject, ms = 0): void {
  time.advance(DAY_MS - (time.clock() % DAY_MS) + ms);
}

function take({ limiter }: Subject, amount: number, more: Record<string, number> = {}) {
  return limiter.acquire({ ...KEY, consume: { req: amount, ...more } });
}

async function left({ limiter }: Subject, name = "req"): Promise<number | undefined> {
  return (await limiter.available(KEY))[name];
}

/** Returns what a client can consume, by the store. */
async function leftOf(subject: Subject): Promise<number> {
  return (await left(subject)) ?? 0;
}

export function quotasContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a quota grants its allowance once per period, and all of it again from the edge on", async () => {
    const subject = await opened(store, [DAILY]);
    const { time, limiter } = subject;
    const first = await take(subject, 7);
    const endMs = time.clock() - (time.clock() % DAY_MS) + DAY_MS;
    expect(first.statuses[0]).toMatchObject({
      kind: "quota",
      available: 3,
      resetsAtMs: endMs,
      periodStartMs: endMs - DAY_MS,
      used: 7,
    });
    await first.commit();
    time.advance(20 * HOUR_MS);
    const refusal = await refusalOf(take(subject, 4));
    expect(refusal.primaryViolation).toMatchObject({ available: 3, resetsAtMs: endMs, used: 7 });
    expect(refusal.retryAfterSeconds).toBe((endMs - time.clock() + 1) / 1000);
    await take(subject, 3);
    time.advance(endMs - time.clock() - 1);
    await refusalOf(take(subject, 1));
    time.advance(1);
    expect(await limiter.available(KEY)).toEqual({ req: 10 });
    const next = await take(subject, 10);
    expect(next.statuses[0]).toMatchObject({ available: 0, resetsAtMs: endMs + DAY_MS, used: 10 });
    await refusalOf(take(subject, 1));
  });

  test("each refusal by a spent quota counts its wait from its own time", async () => {
    const subject = await opened(store, [DAILY]);
    const { time } = subject;
    const endMs = time.clock() - (time.clock() % DAY_MS) + DAY_MS;
    await take(subject, 10);
    for (const passedMs of [0, 20_000]) {
      time.advance(passedMs);
      const { retryAfterSeconds } = await refusalOf(take(subject, 1));
      expect(retryAfterSeconds).toBe((endMs - time.clock() + 1) / 1000);
    }
  });

  test("a quota has used nothing before its first call, and a request above it never fits", async () => {
    const subject = await opened(store, [DAILY]);
    const [status] = await subject.limiter.status(KEY);
    const startMs = subject.time.clock() - (subject.time.clock() % DAY_MS);
    expect(status).toMatchObject({ available: 10, used: 0, resetsAtMs: startMs + DAY_MS });
    expect((await refusalOf(take(subject, 11))).neverFits).toBe(true);
  });

  test("the balance of a quota is listed with its limit", async () => {
    const subject = await opened(store, [DAILY]);
    await take(subject, 4);
    const [state] = await subject.repo.buckets.list(KEY.entityId);
    expect(state).toMatchObject({ limitName: "req", tokens: 6, capacity: 10, totalConsumed: 4 });
    expect(String(state?.limit)).toBe(DAILY);
  });

  test("a refund after the reset is dropped, and one within the period comes back", async () => {
    const subject = await opened(store, [DAILY]);
    toMidnight(subject, -500);
    const lease = await take(subject, 7);
    lease.release({ req: 1 });
    await lease.flush();
    expect(await left(subject)).toBe(4);
    subject.time.advance(600);
    lease.release({ req: 2 });
    await lease.commit();
    expect(await left(subject)).toBe(10);
    const late = await take(subject, 4);
    expect(await left(subject)).toBe(6);
    await late.rollback();
    expect(await left(subject)).toBe(10);
  });

  test("a refund to a period that another call has opened since is dropped too", async () => {
    const subject = await opened(store, [DAILY]);
    toMidnight(subject, -500);
    const lease = await take(subject, 7);
    subject.time.advance(600);
    await take(subject, 5);
    await lease.rollback();
    expect(await left(subject)).toBe(5);
  });

  test("a correction after the reset counts in the period in which it is written", async () => {
    const subject = await opened(store, [DAILY]);
    toMidnight(subject, -1000);
    const lease = await take(subject, 7);
    subject.time.advance(2000);
    lease.settle({ req: 12 });
    await lease.commit();
    expect(await left(subject)).toBe(5);
    expect((await subject.limiter.status(KEY))[0]).toMatchObject({ used: 5 });
  });

  test("a debt is forgiven at the reset unless the quota carries it", async () => {
    const debt = Limit.quota("owed", 10, { every: "day", carry: "debt" });
    const subject = await opened(store, [DAILY, debt]);
    const lease = await take(subject, 10, { owed: 10 });
    lease.adjust({ req: 3, owed: 3 });
    await lease.commit();
    expect(await subject.limiter.available(KEY)).toEqual({ req: -3, owed: -3 });
    toMidnight(subject);
    expect(await subject.limiter.available(KEY)).toEqual({ req: 10, owed: 7 });
    await take(subject, 1, { owed: 7 });
    await refusalOf(take(subject, 1, { owed: 1 }));
  });

  test("what is left is carried up to its bound, for each period that passed", async () => {
    const some = Limit.quota("some", 10, { every: "day", carry: "rest", carryMax: 3 });
    const more = Limit.quota("more", 10, { every: "day", carry: "rest", carryMax: 20 });
    const subject = await opened(store, [some, more]);
    const { limiter } = subject;
    await limiter.acquire({ ...KEY, consume: { some: 6, more: 6 } });
    toMidnight(subject);
    expect(await limiter.available(KEY)).toEqual({ some: 13, more: 14 });
    await limiter.acquire({ ...KEY, consume: { some: 13, more: 10 } });
    subject.time.advance(3 * DAY_MS);
    expect(await limiter.available(KEY)).toEqual({ some: 13, more: 30 });
  });

  test("a refund after the reset is carried as it would have been, where the quota carries", async () => {
    const some = Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 3 });
    const subject = await opened(store, [some]);
    toMidnight(subject, -500);
    const lease = await take(subject, 9);
    subject.time.advance(600);
    await take(subject, 1);
    expect(await left(subject)).toBe(10);
    lease.release({ req: 5 });
    await lease.commit();
    expect(await left(subject)).toBe(12);
  });

  test("a top-up belongs to its period, and a reset fills the allowance", async () => {
    const subject = await opened(store, [DAILY]);
    await take(subject, 8);
    const added = await subject.repo.buckets.topUp({ ...KEY, amounts: { req: 20 } });
    expect(added.amounts).toEqual({ req: 20 });
    expect(await left(subject)).toBe(22);
    const lease = await take(subject, 15);
    expect(lease.statuses[0]).toMatchObject({ available: 7, used: 23 });
    expect((await subject.repo.buckets.reset(KEY)).amounts).toEqual({ req: 3 });
    expect((await subject.limiter.status(KEY))[0]).toMatchObject({ available: 10, used: 0 });
    toMidnight(subject);
    expect(await left(subject)).toBe(10);
  });

  test("nothing is lost of the other limits of a bucket when a period begins", async () => {
    const subject = await opened(store, [DAILY, "tpm:60/min"]);
    toMidnight(subject, -10_000);
    await take(subject, 4, { tpm: 60 });
    subject.time.advance(20_000);
    await take(subject, 10, { tpm: 15 });
    expect(await subject.limiter.available(KEY)).toEqual({ req: 0, tpm: 5 });
    await refusalOf(take(subject, 1));
    subject.time.advance(5000);
    await take(subject, 0, { tpm: 10 });
    expect(await left(subject, "tpm")).toBe(0);
  });

  extra("a changed amount is felt at once, in both directions", async () => {
    const subject = await opened(store, [DAILY]);
    const { repo } = subject;
    await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
    await take(subject, 8);
    await repo.limits.setEntity("key-1", ["req:15/day UTC"], { resource: KEY.resource });
    expect(await left(subject)).toBe(7);
    await repo.limits.setEntity("key-1", ["req:5/day UTC"], { resource: KEY.resource });
    expect(await left(subject)).toBe(-3);
    await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
    expect(await left(subject)).toBe(2);
    toMidnight(subject);
    expect(await left(subject)).toBe(10);
  });

  extra("a status has the limits that a call would apply, before any call does", async () => {
    const subject = await opened(store, [DAILY]);
    const { limiter, repo } = subject;
    await take(subject, 4);
    await repo.limits.setResource(KEY.resource, ["req:15/day UTC"]);
    expect((await limiter.status(KEY))[0]).toMatchObject({ available: 11, used: 4 });
    await repo.limits.setResource(KEY.resource, ["req:8/session:5hour"], { replaceKind: true });
    const [status] = await limiter.status(KEY);
    expect(status).toMatchObject({ kind: "session", available: 8 });
    expect(status?.resetsAtMs).toBeUndefined();
  });

  extra("what was carried stays where a quota carries no more, and was not used", async () => {
    const subject = await opened(store, []);
    const { limiter, repo } = subject;
    const set = (limit: string | Limit) =>
      repo.limits.setEntity("key-1", [limit], { resource: KEY.resource });
    await set(Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 5 }));
    await take(subject, 1);
    toMidnight(subject);
    await take(subject, 3);
    await set("req:12/day UTC");
    await take(subject, 1);
    expect((await limiter.status(KEY))[0]).toMatchObject({ available: 13, used: 4 });
  });

  extra(
    "a refund after an operator's reset is not more than what would have been carried",
    async () => {
      const subject = await opened(store, [
        Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 5 }),
      ]);
      const lease = await take(subject, 2);
      toMidnight(subject);
      await take(subject, 0);
      await take(subject, 1);
      await subject.repo.buckets.reset(KEY);
      await lease.rollback();
      expect(await left(subject)).toBe(14);
      await take(subject, 14);
      await refusalOf(take(subject, 1));
    },
  );

  extra("a changed rule keeps the balance, and ends the period at its own next edge", async () => {
    const subject = await opened(store, ["req:10/month UTC"]);
    const { repo } = subject;
    await take(subject, 10);
    await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
    await refusalOf(take(subject, 1));
    await repo.limits.setEntity("key-1", ["req:10/month UTC"], { resource: KEY.resource });
    const refusal = await refusalOf(take(subject, 1));
    const midnightMs = subject.time.clock() - (subject.time.clock() % DAY_MS) + DAY_MS;
    expect(refusal.primaryViolation.resetsAtMs).toBe(midnightMs);
    toMidnight(subject);
    await take(subject, 10);
    await refusalOf(take(subject, 1));
  });

  extra(
    "a quota that gives way to a rate goes on with its balance when it comes back",
    async () => {
      const subject = await opened(store, ["req:60/min"]);
      const { repo } = subject;
      await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
      await take(subject, 9);
      await repo.limits.deleteEntity("key-1", { resource: KEY.resource });
      // The rate begins with what the quota had left.
      await take(subject, 1);
      await refusalOf(take(subject, 1));
      await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
      expect(await left(subject)).toBe(1);
      await take(subject, 1);
      const refusal = await refusalOf(take(subject, 1));
      expect(refusal.primaryViolation).toMatchObject({ kind: "quota", used: 10 });
      toMidnight(subject);
      expect(await left(subject)).toBe(10);
    },
  );

  extra("a quota that was removed goes on with its balance when it comes back", async () => {
    const subject = await opened(store, [DAILY, "tpm:60/min"]);
    const { repo, limiter } = subject;
    await take(subject, 9, { tpm: 1 });
    await repo.limits.setResource(KEY.resource, ["tpm:60/min"]);
    await limiter.acquire({ ...KEY, consume: { tpm: 1 } });
    await repo.limits.setResource(KEY.resource, [DAILY, "tpm:60/min"]);
    await refusalOf(take(subject, 2));
    await take(subject, 1);
    await refusalOf(take(subject, 1));
  });

  extra("a quota that is removed after its edge comes back with what it carries", async () => {
    const subject = await opened(store, []);
    const set = (...limits: (string | Limit)[]) =>
      subject.repo.limits.setEntity("key-1", limits, { resource: KEY.resource });
    const carrying = Limit.quota("req", 10, { every: "day", carry: "both", carryMax: 5 });
    await set(carrying);
    await take(subject, 4);
    toMidnight(subject);
    await set("tpm:60/min");
    await set(carrying);
    expect(await left(subject)).toBe(15);
  });

  extra("limits of a call that name another kind than the bucket has are refused", async () => {
    const subject = await opened(store, [DAILY]);
    await take(subject, 9);
    const call = subject.limiter.acquire({ ...KEY, limits: ["req:100/min"], consume: { req: 1 } });
    const error = await invalidityOf(call);
    expect(error.message).toContain("quota");
    await take(subject, 1);
    await refusalOf(take(subject, 1));
  });

  extra(
    "each level of a hierarchy has a period of its own, and the longest wait counts",
    async () => {
      const subject = await opened(store, []);
      const { repo, time } = subject;
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      await repo.limits.setEntity("org", ["req:12/week UTC"], { resource: KEY.resource });
      await repo.limits.setEntity("key-1", [DAILY], { resource: KEY.resource });
      await take(subject, 10);
      const { statuses } = await refusalOf(take(subject, 5));
      expect(statuses.map(({ entityId, available }) => [entityId, available])).toEqual([
        ["key-1", 0],
        ["org", 2],
      ]);
      const [daily, weekly] = statuses;
      expect(daily?.exceeded && weekly?.exceeded).toBe(true);
      expect(weekly?.resetsAtMs).toBeGreaterThanOrEqual(daily?.resetsAtMs as number);
      const isSunday = new Date(time.clock()).getUTCDay() === 0;
      toMidnight(subject);
      if (isSunday) await take(subject, 10);
      else await refusalOf(take(subject, 3));
    },
  );

  extra("clients of a store share the period, whichever of them opens it", async () => {
    const subject = await opened(store, [DAILY]);
    const other = await store.another(subject);
    await take(subject, 6);
    await take(other, 4);
    await refusalOf(take(other, 1));
    toMidnight(subject);
    await take(other, 6);
    await take(subject, 4);
    await refusalOf(take(subject, 1));
    await refusalOf(take(other, 1));
  });

  extra(
    "other clients follow a top-up, a reset and changed limits of a spent quota within 30 s",
    async () => {
      const subject = await opened(store, [DAILY]);
      const { repo, time } = subject;
      const other = await store.another(subject);
      await take(subject, 10);
      const follows = async (change: () => Promise<unknown>) => {
        await refusalOf(take(other, 1));
        await change();
        time.advance(30_000);
        await take(other, 1);
        await take(other, await leftOf(other));
      };
      await follows(() => repo.buckets.topUp({ ...KEY, amounts: { req: 3 } }));
      await follows(() => repo.buckets.reset(KEY));
      await follows(() =>
        repo.limits.setEntity("key-1", ["req:20/day UTC"], { resource: KEY.resource }),
      );
      // A change of this client is felt at once, and a refund too.
      await refusalOf(take(subject, 1));
      await repo.buckets.topUp({ ...KEY, amounts: { req: 2 } });
      const lease = await take(subject, 2);
      await refusalOf(take(subject, 1));
      await lease.rollback();
      await take(subject, 2);
    },
  );
}
