/** Events of one kind of store, listeners that fail, and the cost without a listener. */

import { setImmediate as tick } from "node:timers/promises";
import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { failureOf, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, vi } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, describeLimiterStores, milliOf } from "./limiter-stores.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };
const RPM = { ...USER, limits: ["rpm:10"] };

/** Leaves out requests to the store. */
function withoutCalls(events: readonly LimiterEvent[]): LimiterEvent[] {
  return events.filter(({ type }) => type !== "call");
}

describeLimiterStores("events", (store) => {
  const extra = itUnless(store.slow);

  extra("events cannot break what they tell of", async () => {
    const subject = await store.open({
      events: () => {
        throw new Error("of the listener");
      },
    });
    const { limiter } = subject;
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on("warning", warn);
    const lease = await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    await lease.rollback();
    expect(await milliOf(subject, "user-1", "gpt-4", "rpm")).toMatchObject({ consumed: 0 });
    await tick();
    process.off("warning", warn);
    // However often it fails, there is one thing to say about it.
    expect(warnings).toEqual([expect.objectContaining({ code: "ZAEL_LISTENER_FAILED" })]);
  });

  extra("events cost nothing without a listener", async () => {
    const { limiter } = await store.open();
    await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    const read = vi.spyOn(Refusal.prototype, "retryAfterSeconds", "get");
    const decision = await limiter.tryAcquire({ ...RPM, consume: { rpm: 1 } });
    expect(read).not.toHaveBeenCalled();
    read.mockRestore();
    expect(decision).toMatchObject({ granted: false, retryAfterSeconds: 6.001 });
  });
});

describeItemStores("events", (store) => {
  const extra = itUnless(store.slow);

  extra("events tell refusals from memory from those of the store", async () => {
    const events: LimiterEvent[] = [];
    const { limiter, time } = await store.open({ events: (event) => events.push(event) });
    await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    time.advance(1000);
    await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    const local = withoutCalls(events).map((event) =>
      event.type === "rejected" ? event.local : event.type,
    );
    expect(local).toEqual(["acquired", true, false]);
  });

  extra(
    "a refusal that a cached parent decides is called local, although the child is read",
    async () => {
      const events: LimiterEvent[] = [];
      const { limiter, repo, time } = await store.open({ events: (event) => events.push(event) });
      await repo.entities.create({ id: "team" });
      await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
      await repo.limits.setSystem(["rpm:100/day"]);
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      time.advance(1000);
      await limiter.acquire({ entityId: "team", resource: "gpt-4", consume: { rpm: 99 } });
      events.splice(0);
      await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
      const rejected = expect.objectContaining({ type: "rejected", local: true });
      expect(withoutCalls(events)).toEqual([rejected]);
      expect(events.some(({ type }) => type === "call")).toBe(true);
    },
  );

  extra("events tell what was refunded because another leg was refused", async () => {
    const events: LimiterEvent[] = [];
    const subject = await store.open({ events: (event) => events.push(event) });
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    const other = await store.another(subject);
    await other.limiter.acquire({ entityId: "team", resource: "gpt-4", consume: { rpm: 99 } });
    events.splice(0);
    await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
    expect(withoutCalls(events)).toEqual([
      expect.objectContaining({
        type: "restored",
        ...USER,
        amounts: { rpm: 1 },
        reason: "not_granted",
      }),
      expect.objectContaining({
        type: "rejected",
        local: false,
        refusedBy: { entityId: "team", limitName: "rpm", level: 1 },
      }),
    ]);
  });

  extra("events tell that a call passed uncounted", async () => {
    const events: LimiterEvent[] = [];
    const faults = new Faults();
    const { limiter } = await store.open({
      faults,
      timeoutMs: 500,
      events: (event) => events.push(event),
    });
    await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
    events.splice(0);
    faults.rule = (request) => (isBucketOf("user-1", "update")(request) ? "throttled" : undefined);
    await limiter.acquire({ ...RPM, consume: { rpm: 1 }, onUnavailable: "allow" });
    await failureOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    const cause = expect.objectContaining({ reason: "throttled" });
    expect(withoutCalls(events)).toEqual([
      expect.objectContaining({ type: "degraded", ...USER, cause }),
      expect.objectContaining({ type: "unavailable", ...USER, cause }),
    ]);
  });

  itUnless(!store.real && "only requests to DynamoDB have a price")(
    "events tell of every request, with its price",
    async () => {
      const events: LimiterEvent[] = [];
      const subject = await store.open();
      const { repo, time } = subject;
      const { address, table } = store.place;
      const url = `dynamodb://${table}?endpoint=${address}&namespace=${repo.namespaceName}`;
      const calls: string[] = [];
      const limiter = await RateLimiter.open(url, {
        clock: time.clock,
        timeoutMs: 20_000,
        events: (event) => events.push(event),
        onCall: ({ operation }) => calls.push(operation),
      });
      await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
      events.splice(0);
      calls.splice(0);
      await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
      await limiter.close();
      expect(events).toEqual([
        {
          type: "call",
          call: {
            operation: "UpdateItem",
            readUnits: 0,
            writeUnits: 1,
            indexUnits: 0,
            estimated: false,
            outcome: "ok",
            attempt: 1,
            durationMs: expect.any(Number),
          },
        },
        expect.objectContaining({ type: "acquired", ...USER }),
      ]);
      expect(calls).toEqual(["UpdateItem"]);
    },
  );
});
