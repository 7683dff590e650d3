/** Alerts: each percentage of a quota or a session is reported once in a period. */

import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import type { StoredAlert } from "@zae-limiter/limiter/records/alerts/alert-item.ts";
import { AlertQueue } from "@zae-limiter/limiter/records/alerts/alert-queue.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const KEY = { entityId: "team-1", resource: "api" };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAILY = "req:10/day UTC alerts 50,80,100";

async function opened(store: StoreUnderTest, limit: string) {
  const events: LimiterEvent[] = [];
  const subject = await store.open({ events: (event) => events.push(event) });
  await subject.repo.limits.setResource(KEY.resource, [limit]);
  // Two hours into a day: no test comes to an edge by accident.
  subject.time.advance(DAY_MS - (subject.time.clock() % DAY_MS) + 2 * HOUR_MS);
  return { ...subject, events };
}

function take({ limiter }: Subject, req: number) {
  return limiter.acquire({ ...KEY, consume: { req } });
}

/** Returns the percentages of the alerts of the entity, as they were written. */
async function percents({ repo }: Subject): Promise<readonly number[]> {
  return (await alertsOf(repo)).map(({ percent }) => percent);
}

async function alertsOf(repo: Subject["repo"]): Promise<StoredAlert[]> {
  return (await repo.alerts.list({ entityId: KEY.entityId })).reverse();
}

function told(events: readonly LimiterEvent[]): readonly number[] {
  return events.flatMap((event) => (event.type === "alert" ? [event.alert.percent] : []));
}

export function alertsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a percentage of a quota is told by the call that reaches it, once", async () => {
    const subject = await opened(store, DAILY);
    const { time } = subject;
    await take(subject, 4);
    expect(await percents(subject)).toEqual([]);
    await take(subject, 1);
    await take(subject, 1);
    expect(await percents(subject)).toEqual([50]);
    const endMs = time.clock() - (time.clock() % DAY_MS) + DAY_MS;
    const [alert] = await alertsOf(subject.repo);
    expect(alert).toMatchObject({
      ...KEY,
      limitName: "req",
      limit: DAILY,
      percent: 50,
      used: 5,
      granted: 10,
      periodStartMs: endMs - DAY_MS,
      periodEndMs: endMs,
      atMs: time.clock(),
      delivery: { state: "open", attempts: 0, deliveredTo: [] },
    });
    expect(told(subject.events)).toEqual([50]);
    const { namespaceId } = subject.repo;
    expect(alert?.id).toBe(`${namespaceId}#team-1#api#req#${endMs}#50`);
  });

  test("a large call tells all that it has passed, in order, and the next period begins again", async () => {
    const subject = await opened(store, DAILY);
    await take(subject, 10);
    expect(await percents(subject)).toEqual([50, 80, 100]);
    expect(told(subject.events)).toEqual([50, 80, 100]);
    subject.time.advance(DAY_MS);
    await take(subject, 8);
    expect(await percents(subject)).toEqual([50, 80, 100, 50, 80]);
    const ids = (await alertsOf(subject.repo)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(5);
  });

  test("a correction tells what it has used, and one that returns tells nothing", async () => {
    const subject = await opened(store, DAILY);
    const lease = await take(subject, 1);
    lease.adjust({ req: 7 });
    await lease.flush();
    expect(await percents(subject)).toEqual([50, 80]);
    lease.release({ req: 7 });
    await lease.commit();
    await take(subject, 6);
    expect(await percents(subject)).toEqual([50, 80]);
  });

  extra("a top-up changes what is a percentage, and tells nothing twice", async () => {
    const subject = await opened(store, DAILY);
    await take(subject, 8);
    expect(await percents(subject)).toEqual([50, 80]);
    await subject.repo.buckets.topUp({ ...KEY, amounts: { req: 10 }, principal: "ops" });
    await take(subject, 8);
    expect(await percents(subject)).toEqual([50, 80]);
    await take(subject, 4);
    expect(await percents(subject)).toEqual([50, 80, 100]);
    expect((await alertsOf(subject.repo)).at(-1)).toMatchObject({ used: 20, granted: 20 });
  });

  extra("two clients tell a percentage once", async () => {
    const first = await opened(store, DAILY);
    const namespace = first.repo.namespaceName;
    const events: LimiterEvent[] = [];
    const second = await store.open({
      namespace,
      time: first.time,
      events: (event) => events.push(event),
    });
    await take(first, 4);
    await Promise.all([take(first, 1), take(second, 1), take(first, 1), take(second, 1)]);
    await Promise.all([percents(first), percents(second)]);
    expect(await percents(first)).toEqual([50, 80]);
    // Clients in one process share their store, and what it reports.
    expect([...new Set([...told(first.events), ...told(events)])].sort()).toEqual([50, 80]);
  });

  extra("a session, a soft limit and money have alerts, and a call may bring them", async () => {
    const subject = await store.open();
    const limits = [
      "tok:100/session:5hour alerts 90",
      "req:10/month UTC soft alerts 100,150",
      "usd:$1/day UTC alerts 25",
    ];
    const consume = { tok: 90, req: 15, usd: 250_000 };
    await subject.limiter.acquire({ ...KEY, limits, consume });
    const alerts = await alertsOf(subject.repo);
    expect(alerts.map(({ limitName, percent }) => `${limitName} ${percent}`).sort()).toEqual([
      "req 100",
      "req 150",
      "tok 90",
      "usd 25",
    ]);
  });

  extra(
    "ancestors and totals have alerts of their own, and alerts go with their entity",
    async () => {
      const subject = await store.open({ totals: true });
      const { repo, limiter } = subject;
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: KEY.entityId, parentId: "org", cascade: true });
      await repo.limits.setEntity("org", ["req:4/day UTC alerts 50"], { resource: "@all" });
      await repo.limits.setResource(KEY.resource, ["req:100/day UTC alerts 50"]);
      await limiter.acquire({ ...KEY, consume: { req: 2 } });
      const alerts = await repo.alerts.list({ state: "open" });
      expect(alerts).toMatchObject([{ entityId: "org", resource: "@all", percent: 50, used: 2 }]);
      expect(await repo.alerts.list({ state: "ended" })).toEqual([]);
      await repo.entities.delete("org");
      expect(await repo.alerts.list({ entityId: "org" })).toEqual([]);
    },
  );

  extra("bypassed limits and refused calls tell nothing", async () => {
    const subject = await opened(store, DAILY);
    const { repo, limiter } = subject;
    await limiter.tryAcquire({ ...KEY, consume: { req: 11 } });
    await repo.limits.bypass({ resource: KEY.resource });
    await take(subject, 9);
    expect(await percents(subject)).toEqual([]);
  });

  test("an alert is claimed by one sender at a time, and leaves the queue when it is delivered", async () => {
    const subject = await opened(store, DAILY);
    const { repo, time } = subject;
    await take(subject, 5);
    await repo.alerts.list();
    const queue = new AlertQueue(repo[INTERNALS].records);
    const [due] = await queue.due(10);
    const alert = due as StoredAlert;
    expect(alert.percent).toBe(50);
    const claims = await Promise.all([queue.claim(alert), queue.claim(alert)]);
    const [claimed] = claims.filter((claim) => claim !== undefined) as [StoredAlert];
    expect(claims.filter((claim) => claim !== undefined).length).toBe(1);
    expect(await queue.due(10)).toEqual([]);
    time.advance(15_000);
    expect((await queue.due(10)).map(({ delivery }) => delivery.attempts)).toEqual([1]);
    const failed = { deliveredTo: [], problem: "status 503", state: "open" } as const;
    expect(await queue.attempted(claimed, failed)).toBe(true);
    const again = (await queue.claim(claimed)) as StoredAlert;
    // The first sender has lost its claim.
    expect(await queue.attempted(claimed, failed)).toBe(false);
    const delivered = { deliveredTo: ["ops"], state: "delivered" } as const;
    expect(await queue.attempted(again, delivered)).toBe(true);
    expect(await queue.claim(again)).toBeUndefined();
    time.advance(HOUR_MS);
    expect(await queue.due(10)).toEqual([]);
    expect(await repo.alerts.list({ state: "open" })).toEqual([]);
    const [ended] = await repo.alerts.list({ state: "ended" });
    expect(ended?.delivery).toMatchObject({
      state: "delivered",
      attempts: 2,
      deliveredTo: ["ops"],
      problem: "status 503",
    });
  });
}
