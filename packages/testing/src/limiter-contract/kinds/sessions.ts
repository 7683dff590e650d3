/** Sessions: an allowance for a time that begins with the first call that is granted. */

import { refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const KEY = { entityId: "key-1", resource: "api" };
const HOUR_MS = 3_600_000;
const LENGTH_MS = 5 * HOUR_MS;
const SESSION = "tok:10/session:5hour";

async function opened(store: StoreUnderTest, limits: readonly string[] = [SESSION]) {
  const subject = await store.open();
  await subject.repo.limits.setResource(KEY.resource, limits);
  return subject;
}

function take({ limiter }: Subject, tok: number, more: Record<string, number> = {}) {
  return limiter.acquire({ ...KEY, consume: { tok, ...more } });
}

async function left({ limiter }: Subject): Promise<number | undefined> {
  return (await limiter.available(KEY)).tok;
}

/** Returns the end of the session in force; `undefined` when none is. */
async function endOf({ limiter }: Subject): Promise<number | undefined> {
  return (await limiter.status(KEY)).find(({ limitName }) => limitName === "tok")?.resetsAtMs;
}

export function sessionsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a session begins with the first granted call, and a refused one opens nothing", async () => {
    const subject = await opened(store);
    const { time } = subject;
    await refusalOf(take(subject, 11));
    expect(await endOf(subject)).toBeUndefined();
    time.advance(1000);
    const beganMs = time.clock();
    const first = await take(subject, 3);
    expect(first.statuses[0]).toMatchObject({
      kind: "session",
      available: 7,
      used: 3,
      periodStartMs: beganMs,
      resetsAtMs: beganMs + LENGTH_MS,
    });
    time.advance(LENGTH_MS - 1);
    const refusal = await refusalOf(take(subject, 8));
    expect(refusal.primaryViolation).toMatchObject({ available: 7, retryAfterSeconds: 0.002 });
    time.advance(1);
    await refusalOf(take(subject, 11));
    expect(await endOf(subject)).toBeUndefined();
    time.advance(500);
    const next = await take(subject, 10);
    expect(next.statuses[0]?.resetsAtMs).toBe(time.clock() + LENGTH_MS);
    await refusalOf(take(subject, 1));
  });

  extra("a call that its parent refuses opens no session of the child", async () => {
    const subject = await opened(store);
    const { limiter, repo, time } = subject;
    const other = await store.another(subject);
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: KEY.entityId, parentId: "team", cascade: true });
    await repo.limits.setEntity("team", ["tok:10/day UTC"], { resource: KEY.resource });
    await take(subject, 1);
    time.advance(LENGTH_MS);
    // The first client has last seen a parent that holds enough.
    await other.limiter.acquire({ ...KEY, entityId: "team", consume: { tok: 9 } });
    time.advance(2000);
    await refusalOf(take(subject, 1));
    const own = (await limiter.status(KEY)).find(({ entityId }) => entityId === KEY.entityId);
    expect(own).toMatchObject({ kind: "session", available: 10 });
    expect(own?.resetsAtMs).toBeUndefined();
  });

  test("a call for another limit of the bucket opens no session", async () => {
    const subject = await opened(store, [SESSION, "rpm:60/min"]);
    const { limiter, time } = subject;
    const other = { ...KEY, consume: { rpm: 1 } };
    await limiter.acquire(other);
    expect(await endOf(subject)).toBeUndefined();
    await take(subject, 4, { rpm: 1 });
    time.advance(LENGTH_MS);
    await limiter.acquire(other);
    expect(await endOf(subject)).toBeUndefined();
    expect(await left(subject)).toBe(10);
    time.advance(HOUR_MS);
    await take(subject, 1);
    expect(await endOf(subject)).toBe(time.clock() + LENGTH_MS);
  });

  test("a refund comes back in its session, and is dropped after it", async () => {
    const subject = await opened(store);
    const lease = await take(subject, 7);
    lease.release({ tok: 1 });
    await lease.flush();
    expect(await left(subject)).toBe(4);
    subject.time.advance(LENGTH_MS);
    await take(subject, 5);
    await lease.rollback();
    expect(await left(subject)).toBe(5);
  });

  test("a correction after the end opens the next session, and counts in it", async () => {
    const subject = await opened(store);
    const lease = await take(subject, 7);
    subject.time.advance(LENGTH_MS + 1000);
    lease.settle({ tok: 12 });
    await lease.commit();
    expect(await left(subject)).toBe(5);
    expect(await endOf(subject)).toBe(subject.time.clock() + LENGTH_MS);
  });

  test("a reset by an operator ends a session, and the next call opens another one", async () => {
    const subject = await opened(store);
    await take(subject, 9);
    subject.time.advance(HOUR_MS);
    await subject.repo.buckets.reset(KEY);
    expect(await endOf(subject)).toBeUndefined();
    expect(await left(subject)).toBe(10);
    subject.time.advance(HOUR_MS);
    await take(subject, 10);
    expect(await endOf(subject)).toBe(subject.time.clock() + LENGTH_MS);
  });

  extra("each level of a hierarchy has a session of its own", async () => {
    const subject = await opened(store, []);
    const { repo, time } = subject;
    const resource = KEY.resource;
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
    await repo.limits.setEntity("org", ["tok:12/session:8hour"], { resource });
    await repo.limits.setEntity("key-1", [SESSION], { resource });
    await subject.limiter.acquire({ entityId: "org", resource, consume: { tok: 1 } });
    time.advance(HOUR_MS);
    const { statuses } = await take(subject, 10);
    const ends = statuses.map(({ entityId, resetsAtMs = 0 }) => [entityId, resetsAtMs]);
    expect(ends).toEqual([
      ["key-1", time.clock() + LENGTH_MS],
      ["org", time.clock() + 7 * HOUR_MS],
    ]);
    time.advance(LENGTH_MS);
    const refusal = await refusalOf(take(subject, 2));
    expect(refusal.primaryViolation).toMatchObject({ entityId: "org", available: 1 });
    expect(refusal.retryAfterSeconds).toBe((2 * HOUR_MS + 1) / 1000);
  });

  extra("another length holds from the next session on, and brings no ended one back", async () => {
    const subject = await opened(store, []);
    const { repo, time, limiter } = subject;
    const setLength = (length: string) =>
      repo.limits.setEntity("key-1", [`tok:10/session:${length}`, "rpm:60"], {
        resource: KEY.resource,
      });
    await setLength("5hour");
    await take(subject, 10);
    const beganMs = time.clock();
    time.advance(HOUR_MS);
    for (const length of ["8hour", "2hour", "8hour"]) {
      await setLength(length);
      await limiter.acquire({ ...KEY, consume: { rpm: 1 } });
      expect(await endOf(subject)).toBe(beganMs + LENGTH_MS);
      await refusalOf(take(subject, 1));
    }
    time.advance(4 * HOUR_MS);
    expect(await left(subject)).toBe(10);
    await setLength("12hour");
    await limiter.acquire({ ...KEY, consume: { rpm: 1 } });
    expect(await endOf(subject)).toBeUndefined();
    await take(subject, 10);
    expect(await endOf(subject)).toBe(time.clock() + 12 * HOUR_MS);
  });

  extra("clients of a store share a session, whichever of them opens it", async () => {
    const subject = await opened(store);
    const other = await store.another(subject);
    await take(subject, 6);
    const endMs = await endOf(subject);
    subject.time.advance(HOUR_MS);
    await take(other, 4);
    expect(await endOf(other)).toBe(endMs);
    await refusalOf(take(other, 1));
    subject.time.advance(LENGTH_MS);
    await take(other, 6);
    await take(subject, 4);
    expect(await endOf(subject)).toBe(subject.time.clock() + LENGTH_MS);
    await refusalOf(take(subject, 1));
    await refusalOf(take(other, 1));
  });
}
