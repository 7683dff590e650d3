/** Windows of the week in which a limit has other numbers. */

import { Limit, type WindowOptions } from "@zae-limiter/limiter/domain/limit.ts";
import { refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const KEY = { entityId: "key-1", resource: "api" };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** Midnight of a Monday. */
const MONDAY_MS = 4 * 24 * HOUR_MS;
/** Half of it from nine to six; 60 a minute is one each second. */
const OFFICE: WindowOptions = { when: "mon-fri 9-18", scale: 0.5 };
const LIMIT = Limit.parse("rpm:60/min:600").withSchedule([OFFICE]);

async function opened(store: StoreUnderTest, limits: readonly (string | Limit)[]) {
  const subject = await store.open();
  await subject.repo.limits.setResource(KEY.resource, limits);
  return subject;
}

/** Moves to an hour of the next Monday. */
function toMonday({ time }: Subject, hour: number): void {
  const sinceMs = (((time.clock() - MONDAY_MS) % WEEK_MS) + WEEK_MS) % WEEK_MS;
  time.advance(WEEK_MS - sinceMs + hour * HOUR_MS);
}

function take({ limiter }: Subject, rpm: number) {
  return limiter.acquire({ ...KEY, consume: { rpm } });
}

async function left({ limiter }: Subject): Promise<number | undefined> {
  return (await limiter.available(KEY)).rpm;
}

export function schedulesContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a limit has the numbers of the window that is open, and its own when none is", async () => {
    const subject = await opened(store, [LIMIT]);
    const { time } = subject;
    toMonday(subject, 8);
    const first = await take(subject, 600);
    expect(first.statuses[0]).toMatchObject({ available: 0, limit: { capacity: 600 } });
    expect(first.statuses[0]?.scheduled?.equals(LIMIT)).toBe(true);
    time.advance(HOUR_MS - 1);
    expect(await left(subject)).toBe(600);
    // At nine the balance is cut to what the window holds, and fills half as fast.
    time.advance(1);
    expect(await left(subject)).toBe(300);
    const second = await take(subject, 300);
    expect(second.statuses[0]).toMatchObject({ available: 0, limit: { capacity: 300 } });
    time.advance(MINUTE_MS);
    expect(await left(subject)).toBe(30);
    const { primaryViolation } = await refusalOf(take(subject, 40));
    expect(primaryViolation).toMatchObject({ available: 30, retryAfterSeconds: 20.001 });
  });

  test("when a window closes, nothing is added: the balance fills from what it was", async () => {
    const subject = await opened(store, [LIMIT]);
    toMonday(subject, 17);
    await take(subject, 1);
    subject.time.advance(HOUR_MS);
    expect(await left(subject)).toBe(300);
    subject.time.advance(MINUTE_MS);
    expect(await left(subject)).toBe(360);
    await take(subject, 360);
    await refusalOf(take(subject, 1));
  });

  test("a bucket that no call has used over boundaries fills as each window says", async () => {
    const subject = await opened(store, [
      Limit.parse("rpm:60/hour:1000").withSchedule([
        { when: "9-10", scale: 2 },
        { when: "10-11", limit: "rpm:6/hour:1000" },
      ]),
    ]);
    const { time } = subject;
    toMonday(subject, 8);
    await take(subject, 1000);
    time.advance(4 * HOUR_MS);
    // An hour of 60, one of 120, one of 6, and one of 60 again.
    expect(await left(subject)).toBe(246);
    await take(subject, 246);
    await refusalOf(take(subject, 1));
    time.advance(24 * HOUR_MS);
    expect(await left(subject)).toBe(1000);
  });

  test("a wait goes through the windows that open until then", async () => {
    const subject = await opened(store, [LIMIT]);
    toMonday(subject, 8);
    await take(subject, 600);
    // Ten seconds before nine there are 10 fewer than an hour gives, and then half as many.
    subject.time.advance(HOUR_MS - 10_000);
    await take(subject, 600);
    const near = await refusalOf(take(subject, 60));
    expect(near.retryAfterSeconds).toBe(110.001);
    // More than the window holds fits when it has closed: 300 by then, and 100 more.
    const far = await refusalOf(take(subject, 400));
    expect(far.retryAfterSeconds).toBe(10 + 9 * 3600 + 100 + 0.001);
    const never = await refusalOf(take(subject, 601));
    expect(never.retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
  });

  extra("a refund, a top-up and a reset go by the window that is open", async () => {
    const subject = await opened(store, [LIMIT]);
    toMonday(subject, 10);
    const lease = await take(subject, 200);
    await lease.rollback();
    expect(await left(subject)).toBe(300);
    await take(subject, 250);
    await subject.repo.buckets.topUp({ ...KEY, amounts: { rpm: 100 } });
    expect(await left(subject)).toBe(150);
    await subject.repo.buckets.reset(KEY);
    expect(await left(subject)).toBe(300);
    const [state] = await subject.repo.buckets.list(KEY.entityId);
    expect(state).toMatchObject({ limitName: "rpm", tokens: 300, capacity: 300 });
  });

  extra("a debt is paid at the rate of each window", async () => {
    const subject = await opened(store, [LIMIT]);
    toMonday(subject, 8.5);
    const lease = await take(subject, 600);
    lease.settle({ rpm: 600 + 1800 + 30 });
    await lease.commit();
    subject.time.advance(HOUR_MS / 2);
    expect(await left(subject)).toBe(-30);
    subject.time.advance(MINUTE_MS);
    expect(await left(subject)).toBe(0);
  });

  extra("windows that replace others apply at once, and the balance stays", async () => {
    const subject = await opened(store, ["rpm:60/min:600"]);
    toMonday(subject, 12);
    await take(subject, 100);
    await subject.repo.limits.setResource(KEY.resource, [LIMIT]);
    expect(await left(subject)).toBe(300);
    await take(subject, 300);
    expect((await subject.repo.limits.getResource(KEY.resource))[0]?.equals(LIMIT)).toBe(true);
    await subject.repo.limits.setResource(KEY.resource, ["rpm:60/min:600"]);
    // The next call brings them to the bucket.
    await refusalOf(take(subject, 1));
    subject.time.advance(MINUTE_MS);
    expect(await left(subject)).toBe(60);
  });

  extra("each level of a hierarchy has windows of its own, in its own zone", async () => {
    const subject = await opened(store, []);
    const { repo } = subject;
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
    const tokyo = [{ when: "0-12", timeZone: "Asia/Tokyo", limit: "rpm:5" }];
    await repo.limits.setEntity("org", [Limit.parse("rpm:500").withSchedule(tokyo)], {
      resource: KEY.resource,
    });
    await repo.limits.setEntity("key-1", [LIMIT], { resource: KEY.resource });
    // Four in UTC is one in the afternoon of Tokyo, and two is eleven.
    toMonday(subject, 2);
    const refusal = await refusalOf(take(subject, 6));
    expect(refusal.primaryViolation).toMatchObject({ entityId: "org", available: 5 });
    toMonday(subject, 4);
    await take(subject, 400);
  });

  extra("a limit with windows is next to quotas, sessions and rates of a bucket", async () => {
    const subject = await opened(store, [
      LIMIT,
      "day:5000/day UTC",
      "ses:100/session:5hour",
      "b:9",
    ]);
    const { limiter, time } = subject;
    toMonday(subject, 8);
    await limiter.acquire({ ...KEY, consume: { rpm: 600, day: 1, ses: 1, b: 1 } });
    time.advance(HOUR_MS + MINUTE_MS);
    expect(await limiter.available(KEY)).toEqual({ rpm: 300, day: 4999, ses: 99, b: 9 });
    await limiter.acquire({ ...KEY, consume: { rpm: 300, day: 1, ses: 1, b: 1 } });
    expect(await limiter.available(KEY)).toEqual({ rpm: 0, day: 4998, ses: 98, b: 8 });
  });

  extra("clients of a store see the same windows", async () => {
    const subject = await opened(store, [LIMIT]);
    const other = await store.another(subject);
    toMonday(subject, 8);
    await take(subject, 600);
    subject.time.advance(HOUR_MS);
    await take(other, 200);
    await take(subject, 100);
    await refusalOf(take(other, 1));
    await refusalOf(take(subject, 1));
  });
}
