/** Quotas and sessions next to everything else that limits know: one case each. */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const KEY = { entityId: "key-1", resource: "api" };
const OTHER = { resource: "other" };
const DAY_MS = 86_400_000;
const DAILY = "req:10/day UTC";
const SESSION = "ses:10/session:5hour";

async function opened(store: StoreUnderTest, limits: readonly string[]): Promise<Subject> {
  const subject = await store.open();
  await subject.repo.limits.setResource(KEY.resource, limits);
  const { time } = subject;
  time.advance(DAY_MS - (time.clock() % DAY_MS) + 3_600_000);
  return subject;
}

/** Moves to the first millisecond of the next day. */
function toMidnight({ time }: Subject): void {
  time.advance(DAY_MS - (time.clock() % DAY_MS));
}

export function quotasEverywhereContract(store: StoreUnderTest): void {
  const { expect, extra } = store.cases;

  extra("a call for several resources consumes from the quotas of all, or from none", async () => {
    const subject = await opened(store, [DAILY]);
    const { limiter, repo } = subject;
    await repo.limits.setResource(OTHER.resource, [SESSION]);
    const both = { ...KEY, consume: { req: 6 }, also: [{ ...OTHER, consume: { ses: 6 } }] };
    await limiter.acquire(both);
    const refusal = await refusalOf(limiter.acquire(both));
    expect(refusal.violations.map(({ kind }) => kind)).toEqual(["quota", "session"]);
    expect(await limiter.available(KEY)).toEqual({ req: 4 });
    toMidnight(subject);
    await limiter.acquire(both);
    expect(await limiter.available({ entityId: "key-1", ...OTHER })).toEqual({ ses: 4 });
  });

  extra(
    "a refusal by several resources has the resets of limits that were just stored",
    async () => {
      const subject = await opened(store, [DAILY]);
      const { limiter, repo, time } = subject;
      await repo.limits.setResource(OTHER.resource, [DAILY]);
      await limiter.acquire({ ...KEY, consume: { req: 1 } });
      await repo.limits.setResource(KEY.resource, ["req:7/cron(0 */5 * * *)"]);
      time.advance(2000);
      // It would fit into what the bucket had before.
      const large = { ...KEY, consume: { req: 8 }, also: [{ ...OTHER, consume: { req: 11 } }] };
      const [first] = (await refusalOf(limiter.acquire(large))).violations;
      const resetsAtMs = time.clock() - 2000 + 4 * 3_600_000;
      expect(first).toMatchObject({ resource: "api", available: 6, resetsAtMs });
    },
  );

  extra("a refusal by one resource has the periods of the others as they were", async () => {
    const subject = await opened(store, [DAILY]);
    const { limiter, repo, time } = subject;
    const other = await store.another(subject);
    await repo.limits.setResource(OTHER.resource, [DAILY]);
    const both = (req: number) =>
      limiter.acquire({ ...KEY, consume: { req }, also: [{ ...OTHER, consume: { req } }] });
    await both(1);
    await repo.buckets.topUp({ ...KEY, amounts: { req: 5 } });
    time.advance(2000);
    // The first client has last seen that there is enough.
    await other.limiter.acquire({ ...KEY, ...OTHER, consume: { req: 9 } });
    const { statuses } = await refusalOf(both(2));
    expect(statuses[0]).toMatchObject({ resource: "api", available: 14, used: 1 });
  });

  extra("a total with a quota holds over all resources, and resets with its period", async () => {
    const subject = await opened(store, ["rpm:1000"]);
    const { limiter, repo } = subject;
    await repo.limits.setResource(OTHER.resource, ["rpm:1000"]);
    await repo.limits.setEntity("key-1", ["rpm:10/day UTC"], { resource: TOTAL });
    const call = { entityId: "key-1", consume: { rpm: 6 }, totals: true };
    await limiter.acquire({ ...call, resource: "api" });
    const refusal = await refusalOf(limiter.acquire({ ...call, ...OTHER }));
    expect(refusal.primaryViolation).toMatchObject({ resource: TOTAL, kind: "quota", used: 6 });
    toMidnight(subject);
    await limiter.acquire({ ...call, ...OTHER });
  });

  extra("a soft quota refuses nothing, and shows what was used beyond it", async () => {
    const subject = await opened(store, [`${DAILY} soft`]);
    const { limiter } = subject;
    await limiter.acquire({ ...KEY, consume: { req: 8 } });
    const lease = await limiter.acquire({ ...KEY, consume: { req: 8 } });
    expect(lease.statuses[0]).toMatchObject({ available: -6, used: 16, overdrawn: true });
    toMidnight(subject);
    expect(await limiter.available(KEY)).toEqual({ req: 10 });
  });

  extra(
    "a quota under bypass is counted and refuses nothing, and holds again after it",
    async () => {
      const subject = await opened(store, [DAILY]);
      const { limiter, repo } = subject;
      await limiter.acquire({ ...KEY, consume: { req: 8 } });
      await repo.limits.bypass(KEY);
      await limiter.acquire({ ...KEY, consume: { req: 8 } });
      await repo.limits.clear(KEY);
      expect(await limiter.available(KEY)).toEqual({ req: 2 });
      await refusalOf(limiter.acquire({ ...KEY, consume: { req: 3 } }));
      const [state] = await repo.buckets.list("key-1");
      expect(state).toMatchObject({ limitName: "req", totalConsumed: 16 });
    },
  );

  extra("an open lease consumes more of a quota, settles it, and gives it back", async () => {
    const subject = await opened(store, [DAILY, SESSION]);
    const { limiter } = subject;
    const lease = await limiter.acquire({ ...KEY, consume: { req: 2, ses: 2 } });
    await lease.consume({ req: 5 });
    expect(await limiter.available(KEY)).toEqual({ req: 3, ses: 8 });
    lease.settle({ req: 4, ses: 9 });
    await lease.commit();
    expect(await limiter.available(KEY)).toEqual({ req: 6, ses: 1 });
    const undone = await limiter.acquire({ ...KEY, consume: { req: 6, ses: 1 } });
    await undone.rollback();
    expect(await limiter.available(KEY)).toEqual({ req: 6, ses: 1 });
  });

  extra("limits for children give each child a quota of its own", async () => {
    const subject = await opened(store, ["req:3/day UTC"]);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    for (const id of ["ann", "bob"]) await repo.entities.create({ id, parentId: "team" });
    await repo.limits.setChildren("team", [DAILY], { resource: KEY.resource });
    for (const entityId of ["ann", "bob"]) {
      await limiter.acquire({ ...KEY, entityId, consume: { req: 10 } });
      const refusal = await refusalOf(limiter.acquire({ ...KEY, entityId, consume: { req: 1 } }));
      expect(refusal.primaryViolation).toMatchObject({ entityId, kind: "quota" });
    }
  });
}
