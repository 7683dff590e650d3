/** Statements of closed periods, on stores that write them in the step that closes a period. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { TOTAL } from "@zae-limiter/limiter/index.ts";
import { invalidityOf, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";
import { describeLimiterStores, type Subject } from "./limiter-stores.ts";

const KEY = { entityId: "key-1", resource: "api" };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAILY = "req:10/day UTC";

describeLimiterStores("statements", (store) => {
  const it = itUnless(store.distributed && "the aggregator writes the statements of these stores");

  async function opened(...limits: (string | Limit)[]): Promise<Subject> {
    const subject = await store.open();
    await subject.repo.limits.setResource(KEY.resource, limits);
    subject.time.advance(DAY_MS - (subject.time.clock() % DAY_MS) + 2 * HOUR_MS);
    return subject;
  }

  const take = ({ limiter }: Subject, req: number) => limiter.acquire({ ...KEY, consume: { req } });

  /** Moves to some milliseconds after the next midnight of UTC, which is returned. */
  function toMidnight({ time }: Subject, ms = 0): number {
    const midnightMs = time.clock() - (time.clock() % DAY_MS) + DAY_MS;
    time.advance(midnightMs - time.clock() + ms);
    return midnightMs;
  }

  async function statements({ repo }: Subject, query: { limitName?: string } = {}) {
    return (await repo.usage.periods({ ...KEY, ...query })).periods;
  }

  it("a closed period leaves one statement, with what it granted and what was used", async () => {
    const subject = await opened(DAILY);
    await take(subject, 7);
    expect(await statements(subject)).toEqual([]);
    const endMs = toMidnight(subject, 5000);
    await take(subject, 2);
    const statement = {
      ...KEY,
      limitName: "req",
      kind: "quota",
      startMs: endMs - DAY_MS,
      endMs,
      timeZone: "UTC",
      allowance: 10,
      carried: 0,
      granted: 10,
      used: 7,
      late: 0,
    };
    expect(await statements(subject)).toEqual([statement]);
    await take(subject, 1);
    const next = toMidnight(subject);
    await take(subject, 10);
    expect(await statements(subject)).toEqual([
      { ...statement, startMs: endMs, endMs: next, used: 3 },
      statement,
    ]);
  });

  it("a period that no call follows has its statement when it is read, and then keeps it", async () => {
    const subject = await opened(DAILY);
    await take(subject, 4);
    const endMs = toMidnight(subject, 3 * DAY_MS);
    for (const query of [KEY, { entityId: "key-1" }, { resource: "api" }]) {
      const { periods } = await subject.repo.usage.periods(query);
      expect(periods).toMatchObject([{ ...KEY, endMs, used: 4 }]);
    }
    await take(subject, 1);
    expect(await statements(subject)).toMatchObject([{ endMs, used: 4 }]);
    const next = toMidnight(subject);
    expect(await statements(subject)).toMatchObject([{ endMs: next, used: 1 }, { endMs }]);
  });

  it("refused calls after the end write no statement twice, and none is lost", async () => {
    const subject = await opened(DAILY);
    await take(subject, 10);
    const endMs = toMidnight(subject, 1);
    await refusalOf(take(subject, 11));
    await refusalOf(take(subject, 12));
    await take(subject, 10);
    await refusalOf(take(subject, 1));
    expect(await statements(subject)).toMatchObject([{ endMs, used: 10 }]);
  });

  it("a statement has what was carried, topped up and corrected late", async () => {
    const carried = Limit.quota("req", 10, { every: "day", carry: "both", carryMax: 3 });
    const subject = await opened(carried);
    await take(subject, 5);
    const first = toMidnight(subject, -500);
    const lease = await take(subject, 1);
    subject.time.advance(1000);
    lease.adjust({ req: 2 });
    await lease.commit();
    await subject.repo.buckets.topUp({ ...KEY, amounts: { req: 20 } });
    await take(subject, 6);
    const second = toMidnight(subject);
    await take(subject, 1);
    expect(await statements(subject)).toMatchObject([
      { endMs: second, allowance: 10, carried: 3, granted: 33, used: 8, late: 2 },
      { endMs: first, allowance: 10, carried: 0, granted: 10, used: 6, late: 0 },
    ]);
  });

  it("a refund within the period is in the statement, and one after it is not", async () => {
    const subject = await opened(DAILY);
    toMidnight(subject, -500);
    const refunded = await take(subject, 3);
    await refunded.rollback();
    const late = await take(subject, 7);
    subject.time.advance(1000);
    await take(subject, 1);
    await late.rollback();
    expect(await statements(subject)).toMatchObject([{ used: 7 }]);
  });

  it("a session has a statement when its time is over, and when an operator ends it", async () => {
    const subject = await opened("req:10/session:5hour");
    await refusalOf(take(subject, 11));
    await take(subject, 3);
    const startMs = subject.time.clock();
    subject.time.advance(6 * HOUR_MS);
    await take(subject, 4);
    const secondMs = subject.time.clock();
    subject.time.advance(HOUR_MS);
    await subject.repo.buckets.reset(KEY);
    const session = { limitName: "req", kind: "session", allowance: 10, granted: 10 };
    expect(await statements(subject)).toEqual([
      {
        ...KEY,
        ...session,
        startMs: secondMs,
        endMs: secondMs + HOUR_MS,
        carried: 0,
        used: 4,
        late: 0,
      },
      { ...KEY, ...session, startMs, endMs: startMs + 5 * HOUR_MS, carried: 0, used: 3, late: 0 },
    ]);
  });

  it("a limit that was removed has the statement of its last period", async () => {
    const subject = await opened(DAILY, "tpm:60/min");
    const { repo, limiter } = subject;
    await take(subject, 9);
    await repo.limits.setResource(KEY.resource, ["tpm:60/min"]);
    await limiter.acquire({ ...KEY, consume: { tpm: 1 } });
    const endMs = toMidnight(subject, 1);
    await limiter.acquire({ ...KEY, consume: { tpm: 1 } });
    expect(await statements(subject)).toMatchObject([{ limitName: "req", endMs, used: 9 }]);
    expect(await statements(subject)).toHaveLength(1);
  });

  it("a bucket whose time to live is over leaves the statement of its period", async () => {
    const subject = await opened(DAILY);
    await take(subject, 2);
    const endMs = toMidnight(subject, 3 * DAY_MS);
    await take(subject, 1);
    expect(await statements(subject)).toMatchObject([{ endMs, used: 2 }]);
  });

  it("the sweep that removes a bucket writes the statement of its period", async () => {
    const subject = await opened(DAILY);
    const { repo, limiter, time } = subject;
    await take(subject, 2);
    const endMs = toMidnight(subject);
    await limiter.acquire({ entityId: "key-2", resource: "api", consume: { req: 1 } });
    // Small steps of time: a sweep does not trust a clock that jumps.
    for (let call = 0; call < 600 && (await repo.buckets.list("key-1")).length > 0; call += 1) {
      time.advance(599_000);
      await limiter.acquire({
        entityId: "other",
        resource: "free",
        limits: ["a:1000/s"],
        consume: { a: 1 },
      });
    }
    expect(await repo.buckets.list("key-1")).toEqual([]);
    expect(await statements(subject)).toMatchObject([{ endMs, used: 2 }]);
  });

  it("an entity, its ancestors and its total have statements of their own", async () => {
    const subject = await store.open({ totals: true });
    const { repo, limiter } = subject;
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
    await repo.limits.setResource(KEY.resource, [DAILY]);
    await repo.limits.setEntity("org", ["req:50/day UTC"], { resource: TOTAL });
    await limiter.acquire({ ...KEY, consume: { req: 3 } });
    toMidnight(subject);
    const used = async (entityId: string) => {
      const { periods } = await repo.usage.periods({ entityId });
      return periods.map((period) => [period.resource, period.used]).toSorted();
    };
    expect(await used("key-1")).toEqual([["api", 3]]);
    expect(await used("org")).toEqual([
      [TOTAL, 3],
      ["api", 3],
    ]);
  });

  it("statements are read by limit, by the time they ended, and a page at a time", async () => {
    const subject = await opened(DAILY, "week:10/week UTC");
    const ends: number[] = [];
    for (let day = 0; day < 4; day += 1) {
      await take(subject, 1);
      ends.unshift(toMidnight(subject));
    }
    const daily = await statements(subject, { limitName: "req" });
    expect(daily.map(({ endMs }) => endMs)).toEqual(ends);
    const [last = 0, third = 0, second = 0] = ends;
    for (const scope of [{ entityId: "key-1" }, { resource: "api" }]) {
      const query = { ...scope, limitName: "req", start: new Date(second), end: new Date(third) };
      const page = await subject.repo.usage.periods({ ...query, limit: 1 });
      expect(page.periods.map(({ endMs }) => endMs)).toEqual([third]);
      const { cursor = "" } = page;
      const rest = await subject.repo.usage.periods({ ...query, limit: 1, cursor });
      expect(rest.periods.map(({ endMs }) => endMs)).toEqual([second]);
      expect(rest.cursor).toBeUndefined();
      const from = await subject.repo.usage.periods({
        ...scope,
        limitName: "req",
        start: new Date(last),
      });
      expect(from.periods).toHaveLength(1);
    }
    const { usage } = subject.repo;
    await invalidityOf(usage.periods({}));
    await invalidityOf(usage.periods({ ...KEY, start: "tomorrow" }));
    await invalidityOf(usage.periods({ ...KEY, start: new Date(1000), end: new Date(0) }));
  });
});
