/**
 * Events for listeners. A limiter reports its own calls; splits and warnings in its namespace; and
 * all requests to the store, because they belong to no limiter.
 */

import { once } from "node:events";
import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";
import { Faults } from "./faults.ts";
import {
  describeItemStores,
  describeLimiterStores,
  type LimiterStore,
  type Subject,
} from "./limiter-stores.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };
const RPM = { ...USER, limits: ["rpm:10"] };

/** A limiter with a listener, on a repository that was opened before. */
class Heard {
  readonly events: LimiterEvent[] = [];
  readonly warnings: string[] = [];
  readonly limiter: RateLimiter;

  constructor(repo: Repository) {
    this.limiter = new RateLimiter(repo, {
      events: (event) => this.events.push(event),
      onWarning: ({ kind }) => this.warnings.push(kind),
    });
  }

  /** Events since the last time, without requests. */
  get news(): readonly LimiterEvent[] {
    return this.events.splice(0).filter(({ type }) => type !== "call");
  }

  get calls(): readonly LimiterEvent[] {
    return this.events.splice(0).filter(({ type }) => type === "call");
  }
}

async function pair(repo: Repository): Promise<readonly [Heard, Heard]> {
  return [new Heard(repo), new Heard(repo)];
}

describeLimiterStores("two limiters on one repository", (store) => {
  const extra = itUnless(store.slow);

  extra("two limiters on one repository hear of their own calls", async () => {
    const { repo } = await store.open();
    const [one, other] = await pair(repo);
    const lease = await one.limiter.acquire({ ...RPM, consume: { rpm: 4 } });
    await lease.consume({ rpm: 6 });
    expect([one.news, other.news]).toEqual([
      [
        expect.objectContaining({ type: "acquired", ...USER }),
        expect.objectContaining({ type: "acquired", ...USER }),
      ],
      [],
    ]);
    await refusalOf(other.limiter.acquire({ ...RPM, consume: { rpm: 1 } }));
    await lease.rollback();
    expect([one.news, other.news]).toEqual([
      [expect.objectContaining({ type: "restored", ...USER, amounts: { rpm: 10 } })],
      [expect.objectContaining({ type: "rejected", ...USER })],
    ]);
  });

  extra("two limiters on one repository hear of all requests, each once", async () => {
    const calls: string[] = [];
    const { repo } = await store.open({ onCall: ({ operation }) => calls.push(operation) });
    const [one, other] = await pair(repo);
    calls.splice(0);
    await repo.limits.setSystem(["rpm:10"]);
    await one.limiter.acquire({ ...USER, consume: { rpm: 1 } });
    const heard = calls.splice(0);
    expect(heard.length).toBeGreaterThan(0);
    for (const { calls: told } of [one, other]) {
      expect(told.map((event) => event.type === "call" && event.call.operation)).toEqual(heard);
    }
  });

  itUnless(
    ["items", "custom", "table", "postgres", "redis"].includes(store.name) && "it has no address",
  )("two limiters on one repository hear what one hears that opens its own store", async () => {
    const { repo } = await store.open();
    const events: LimiterEvent[] = [];
    const opened = await RateLimiter.open(addressOf(store, repo), {
      timeoutMs: 20_000,
      events: (event) => events.push(event),
    });
    const given = new Heard(repo);
    const stories = [];
    for (const [limiter, heard] of [
      [given.limiter, given.events],
      [opened, events],
    ] as const) {
      const { limits } = limiter.repository;
      await limits.setResource("gpt-4", ["rpm:10"]);
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      await limiter.tryAcquire({ ...USER, consume: { rpm: 1 } });
      await lease.rollback();
      const types = heard.splice(0).map(({ type }) => type);
      expect(types).toContain("call");
      stories.push(types.filter((type) => type !== "call"));
    }
    await opened.close();
    expect(stories).toEqual(Array(2).fill(["acquired", "rejected", "restored"]));
  });

  extra(
    "two limiters on one repository leave nothing behind in it without a listener",
    async () => {
      const { repo } = await store.open();
      const { listeners } = repo[INTERNALS];
      const before = listeners.size;
      for (let request = 0; request < 10; request += 1) {
        await new RateLimiter(repo).acquire({ ...RPM, consume: { rpm: 1 } });
      }
      expect(listeners.size).toBe(before);
    },
  );

  extra(
    "limiters hear nothing once they are closed, or when the listener of another fails",
    async () => {
      const { repo, limiter } = await store.open();
      await repo.namespaces.register("other-namespace");
      const [one, other] = await pair(await repo.namespace("other-namespace"));
      await one.limiter.close();
      const failing = new RateLimiter(repo, {
        events: () => {
          throw new Error("of the listener");
        },
      });
      const warned = once(process, "warning");
      await repo.limits.setSystem(["rpm:10"]);
      expect((await warned)[0]).toMatchObject({ code: "ZAEL_LISTENER_FAILED" });
      await failing.acquire({ ...USER, consume: { rpm: 1 } });
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      expect(one.events).toEqual([]);
      expect(other.calls.length).toBeGreaterThan(0);
    },
  );
});

describeItemStores("two limiters on one repository", (store) => {
  const extra = itUnless(store.slow);

  extra(
    "two limiters on one repository hear which legs of their own calls were refunded",
    async () => {
      const subject = await store.open();
      const { repo } = subject;
      await repo.entities.create({ id: "team" });
      await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
      await repo.limits.setSystem(["rpm:100"]);
      const [one, other] = await pair(repo);
      await one.limiter.acquire({ ...USER, consume: { rpm: 1 } });
      const elsewhere = await store.another(subject);
      await elsewhere.limiter.acquire({
        entityId: "team",
        resource: "gpt-4",
        consume: { rpm: 99 },
      });
      one.events.splice(0);
      await refusalOf(one.limiter.acquire({ ...USER, consume: { rpm: 1 } }));
      expect(one.news.map(({ type }) => type)).toEqual(["restored", "rejected"]);
      expect(other.news).toEqual([]);
    },
  );

  extra(
    "two limiters on one repository hear what was refunded because a link had changed",
    async () => {
      const subject = await store.open();
      const { repo } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      await repo.limits.setEntity("team", ["rpm:5"]);
      const [one, other] = await pair(repo);
      await one.limiter.acquire({ ...USER, consume: { rpm: 1 } });
      const elsewhere = await store.another(subject);
      await elsewhere.repo.entities.create({ id: "team" });
      await elsewhere.repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
      one.events.splice(0);
      await refusalOf(one.limiter.acquire({ ...USER, consume: { rpm: 6 } }));
      expect(one.news).toEqual([
        expect.objectContaining({ type: "restored", ...USER }),
        expect.objectContaining({ type: "rejected" }),
      ]);
      expect(other.news).toEqual([]);
    },
  );

  extra(
    "two limiters on one repository hear of splits in their namespace, whichever limiter called",
    async () => {
      const subject = await store.open();
      const { repo, time, limiter } = subject;
      await repo.namespaces.register("neighbour");
      const [one, other] = await pair(repo);
      const neighbour = new Heard(await repo.namespace("neighbour"));
      await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
      time.advance(1000);
      await exhaust(store, subject);
      await one.limiter.acquire({ ...RPM, consume: { rpm: 1 } });
      const split = { type: "split", ...USER, shardCount: 2 };
      expect(one.news).toEqual(expect.arrayContaining([split]));
      expect(other.news).toEqual([split]);
      expect(neighbour.news).toEqual([]);
    },
  );

  extra(
    "two limiters on one repository hear of warnings in their namespace, whichever limiter called",
    async () => {
      const faults = new Faults();
      const { repo } = await store.open({ faults });
      await repo.namespaces.register("neighbour");
      const [one, other] = await pair(repo);
      const neighbour = new Heard(await repo.namespace("neighbour"));
      const lease = await one.limiter.acquire({ ...RPM, consume: { rpm: 1 } });
      faults.rule = ({ operation }) => (operation === "transact" ? "cancelled" : undefined);
      await lease.rollback();
      await expect.poll(() => one.warnings).toEqual(["restore_failed"]);
      expect(other.warnings).toEqual(["restore_failed"]);
      expect(neighbour.warnings).toEqual([]);
    },
  );

  itUnless(!store.real && "only requests to DynamoDB have a price")(
    "two limiters on one repository are told the price as a limiter that opens its own is",
    async () => {
      const { repo, time } = await store.open();
      const given = new Heard(repo);
      const events: LimiterEvent[] = [];
      const opened = await RateLimiter.open(addressOf(store, repo), {
        clock: time.clock,
        timeoutMs: 20_000,
        events: (event) => events.push(event),
      });
      const price = { readUnits: 0, writeUnits: 1, indexUnits: 0, estimated: false };
      for (const [limiter, heard] of [
        [given.limiter, given.events],
        [opened, events],
      ] as const) {
        await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
        heard.splice(0);
        await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
        expect(heard).toEqual([
          { type: "call", call: expect.objectContaining({ operation: "UpdateItem", ...price }) },
          expect.objectContaining({ type: "acquired", ...USER }),
        ]);
      }
      await opened.close();
    },
  );
});

function addressOf({ name, place }: LimiterStore, repo: Repository): string {
  if (name === "memory") return "memory:";
  const namespace = `namespace=${repo.namespaceName}`;
  if (name === "sqlite") return `sqlite:${place.address}?${namespace}`;
  return `dynamodb://${place.table}?endpoint=${place.address}&${namespace}`;
}

/** As if a thousand writes too many had come within a second. */
async function exhaust({ place }: LimiterStore, { repo, time }: Subject): Promise<void> {
  const key = bucketKey(repo.namespaceId, USER.entityId, USER.resource, 0);
  await place.items?.update(key, { set: { wm: time.nowMs + 1000 } });
}
