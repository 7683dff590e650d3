/** The events of a limiter: what was consumed, refused, adjusted and refunded. */

import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };
/** Depends on the machine, on chance, or on what the store leaves to the limiter. */
const MEASURED = new Set(["durationMs", "acquireId", "local"]);
const RPM = { ...USER, limits: ["rpm:10"] };

/** Removes the events of requests; tests that need them read them all. */
function withoutCalls(events: readonly LimiterEvent[]): LimiterEvent[] {
  return events.filter(({ type }) => type !== "call");
}

/** Shows an event: types for values that differ from run to run, and figures of statuses. */
function shown(event: LimiterEvent): Record<string, unknown> {
  const members = Object.entries(event).map(([name, value]: [string, unknown]) => [
    name,
    MEASURED.has(name) ? typeof value : value,
  ]);
  const statuses = "statuses" in event ? { statuses: event.statuses.map(figures) } : {};
  return { ...Object.fromEntries(members), ...statuses };
}

function figures({ entityId, limitName, available, requested }: LimitStatus) {
  return { entityId, limitName, available, requested };
}

export function eventsContract(store: StoreUnderTest): void {
  const { expect, extra } = store.cases;

  extra("events tell what was consumed and what was refused", async () => {
    const events: LimiterEvent[] = [];
    const { limiter } = await store.open({ events: (event) => events.push(event) });
    await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    await limiter.tryAcquire({ ...RPM, consume: { rpm: 11 } });
    await limiter.available(RPM);
    const own = { ...USER, waitedMs: 0, durationMs: "number", acquireId: "string" };
    const rpm = { entityId: "user-1", limitName: "rpm" };
    const refused = {
      type: "rejected",
      ...own,
      local: "boolean",
      refusedBy: { ...rpm, level: 0 },
    };
    expect(withoutCalls(events).map(shown)).toEqual([
      {
        type: "acquired",
        ...own,
        consumed: { rpm: 10 },
        statuses: [{ ...rpm, available: 0, requested: 10 }],
      },
      {
        ...refused,
        retryAfterSeconds: 6.001,
        statuses: [{ ...rpm, available: 0, requested: 1 }],
      },
      {
        ...refused,
        retryAfterSeconds: Number.POSITIVE_INFINITY,
        statuses: [{ ...rpm, available: 0, requested: 11 }],
      },
    ]);
    const ids = events.flatMap((event) => ("acquireId" in event ? [event.acquireId] : []));
    expect(new Set(ids).size).toBe(3);
  });

  extra("events tell what a lease adjusts and refunds, by the id of its acquire", async () => {
    const events: LimiterEvent[] = [];
    const { limiter } = await store.open({ events: (event) => events.push(event) });
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 2 } });
    lease.adjust({ rpm: 3 });
    await lease.flush();
    await lease.consume({ rpm: 1 });
    await lease.rollback();
    const [acquired, adjusted, more, restored] = withoutCalls(events);
    const acquireId = acquired?.type === "acquired" ? acquired.acquireId : undefined;
    expect(typeof acquireId).toBe("string");
    expect(adjusted).toEqual({ type: "adjusted", ...USER, acquireId, amounts: { rpm: 3 } });
    expect(more).toMatchObject({ type: "acquired", acquireId, consumed: { rpm: 1 } });
    expect(restored).toEqual({
      type: "restored",
      ...USER,
      acquireId,
      amounts: { rpm: 6 },
      reason: "rollback",
    });
  });
}
