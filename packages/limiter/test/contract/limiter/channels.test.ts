/** Messages of the diagnostics channels, for telemetry that is no part of this package. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import type { ObservedCall } from "@zae-limiter/limiter/acquire/observed-call.ts";
import { failureOf, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, expect, vi } from "vitest";
import { describeLimiterStores } from "./limiter-stores.ts";

const RPM = { entityId: "user-1", resource: "gpt-4", limits: ["rpm:10"] };

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** The messages of a channel from now on. */
function messagesOf<T>(name: string, onMessage?: (message: T) => void): T[] {
  const messages: T[] = [];
  const listener = (message: unknown) => {
    messages.push(message as T);
    onMessage?.(message as T);
  };
  subscribe(name, listener);
  ends.push(() => unsubscribe(name, listener));
  return messages;
}

describeLimiterStores("the diagnostics channels", (store) => {
  const extra = itUnless(store.slow);

  extra(
    "the diagnostics channels carry the events of each limiter, with the limiter and its namespace",
    async () => {
      const { limiter, repo } = await store.open();
      const heard = messagesOf<{ limiter: object; namespaceId: string; event: LimiterEvent }>(
        "zae-limiter:event",
      );
      const lease = await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
      await refusalOf(limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
      lease.settle({ rpm: undefined });
      await lease.rollback();
      expect(heard.map(({ event }) => event.type)).toEqual([
        ...["acquired", "rejected", "warning", "restored"],
      ]);
      for (const message of heard) {
        expect(message.limiter).toBe(limiter);
        expect(message.namespaceId).toBe(repo.namespaceId);
      }
    },
  );

  extra(
    "the diagnostics channels let a subscriber run an acquire and the work of run in its context",
    async () => {
      const { limiter } = await store.open();
      const within: string[] = [];
      let depth = 0;
      const started = messagesOf<ObservedCall>("zae-limiter:acquire:start", (call) => {
        call.within = (work) => {
          depth += 1;
          try {
            return work();
          } finally {
            depth -= 1;
          }
        };
      });
      const ended = messagesOf<ObservedCall>("zae-limiter:acquire:end");
      const consume = { rpm: 1 };
      const answer = await limiter.run({ ...RPM, consume }, () => {
        within.push(depth === 1 ? "inside" : "outside");
        return "done";
      });
      expect([answer, within]).toEqual(["done", ["inside"]]);
      await failureOf(limiter.acquire({ ...RPM, consume: { rpm: -1 } }));
      expect(ended).toEqual(started);
      expect(ended[0]).toMatchObject({ attempts: 1, event: { type: "acquired" } });
      expect(ended[1]).toMatchObject({ event: undefined, error: { code: "ZAEL_VALIDATION" } });
    },
  );

  extra("the diagnostics channels cause no work while they have no subscriber", async () => {
    const { limiter } = await store.open();
    await limiter.acquire({ ...RPM, consume: { rpm: 10 } });
    messagesOf("zae-limiter:event");
    for (const end of ends.splice(0)) end();
    const read = vi.spyOn(Refusal.prototype, "statuses", "get");
    const decision = await limiter.tryAcquire({ ...RPM, consume: { rpm: 1 } });
    expect(read).not.toHaveBeenCalled();
    messagesOf("zae-limiter:event");
    await limiter.tryAcquire({ ...RPM, consume: { rpm: 1 } });
    expect(read).toHaveBeenCalled();
    read.mockRestore();
    expect(decision.granted).toBe(false);
  });
});
