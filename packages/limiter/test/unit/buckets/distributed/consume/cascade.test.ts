/** The legs of a cascading call on a table: which requests they are, and what is left of them. */

import { type Leg, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { configOf, NAMESPACE, Table } from "@zae-limiter/test-support/table.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";

const RESOURCE = "r";

function leg(entityId: string, limit: string, amount: number): Leg {
  const amountsMilli = [amount * 1000];
  const config = configOf([limit]);
  return { entityId, resource: RESOURCE, config, amountsMilli, link: UNLINKED, linkIsFresh: true };
}

/** Tokens that were consumed from each bucket. */
function consumedIn(table: Table, ...entityIds: readonly string[]): readonly unknown[] {
  return entityIds.map((entityId) => {
    const item = table.items.readNow(bucketKey(NAMESPACE, entityId, RESOURCE, 0));
    return item === undefined ? undefined : Number(item.b_a_tc) / 1000;
  });
}

describe("the legs of a call", () => {
  test("the legs of a call are read where unknown, then consumed together, with one write each", async () => {
    const table = new Table();
    const { store } = table.client();
    const legs = [leg("child", "a:10/day", 1), leg("parent", "a:10/day", 1)];
    expect(await store.consume(legs)).toMatchObject({ outcome: "granted" });
    expect(table.calls).toEqual(["get", "get", "put", "put"]);
    table.calls.length = 0;
    expect(await store.consume(legs)).toMatchObject({ outcome: "granted" });
    expect(table.calls).toEqual(["update", "update"]);
    expect(consumedIn(table, "child", "parent")).toEqual([2, 2]);
  });

  test("the legs of a call refuse together: the child is refunded when the parent has too little", async () => {
    const table = new Table();
    const client = table.client();
    await table.client().store.consume([leg("parent", "a:3/day", 3)]);
    const legs = [leg("child", "a:10/day", 1), leg("parent", "a:3/day", 1)];
    expect(await client.store.consume(legs)).toMatchObject({ outcome: "refused" });
    expect(consumedIn(table, "child", "parent")).toEqual([undefined, 3]);
  });

  test("the legs of a call begin with the one that is scarce, so that nothing has to be refunded", async () => {
    const table = new Table();
    const client = table.client();
    const both = [leg("child", "a:10/day", 1), leg("parent", "a:3/day", 1)];
    await client.store.consume(both);
    await table.client().store.consume([leg("parent", "a:3/day", 1)]);
    await client.store.consume(both);
    table.calls.length = 0;
    // One token is left in the parent by the cached state, and none in the store.
    expect(await client.store.consume(both)).toMatchObject({ outcome: "refused" });
    expect(consumedIn(table, "child", "parent")).toEqual([2, 3]);
    expect(table.calls.length).toBeLessThanOrEqual(1);
  });

  test("the legs of a call fail together: a leg that was consumed is refunded when another one fails", async () => {
    const table = new Table();
    const legs = [leg("child", "a:10/day", 1), leg("parent", "a:10/day", 1)];
    await table.client().store.consume(legs);
    const parentKey = bucketKey(NAMESPACE, "parent", RESOURCE, 0).PK;
    const client = table.client(0, {
      update: async (key, change, condition) => {
        if (key.PK !== parentKey) return table.items.update(key, change, condition);
        throw new RateLimiterUnavailable("no answer", { reason: "timeout", nothingWritten: true });
      },
    });
    await expect(client.store.consume(legs)).rejects.toThrow(RateLimiterUnavailable);
    expect(consumedIn(table, "child", "parent")).toEqual([1, 1]);
  });
});

describe("a parent that has too little, while the other buckets cannot be read", () => {
  const CONSUME = { resource: "api", consume: { rpd: 5 } };

  /** The child is known to one process, and the parent is emptied by another one. */
  async function emptied() {
    const time = new VirtualTime();
    const table = new SimulatedTable({ time });
    const [limiter, other] = [
      await time.until(table.process().open({ timeoutMs: 800 })),
      await time.until(table.process().open({ timeoutMs: 800 })),
    ];
    const { entities, limits } = limiter.repository;
    await time.until(limits.setSystem(["rpd:10/day"]));
    await time.until(entities.create({ id: "team" }));
    await time.until(entities.create({ id: "child", parentId: "team", cascade: true }));
    await time.until(limiter.acquire({ ...CONSUME, entityId: "child" }));
    await time.until(other.acquire({ ...CONSUME, entityId: "team" }));
    const refused = await time.until(limiter.tryAcquire({ ...CONSUME, entityId: "child" }));
    expect(refused.granted).toBe(false);
    /** Asks while all answers but the first are lost. */
    const ask = (entityId: string) => {
      table.watch({
        answered: () => {
          table.faults = { lostResponses: 1 };
        },
      });
      return time.until(limiter.tryAcquire({ ...CONSUME, entityId }));
    };
    return { time, other, ask };
  }

  test("a parent refuses no child that was moved away more than a second ago", async () => {
    const { time, other, ask } = await emptied();
    await time.until(other.repository.entities.setParent("child", null));
    await time.pass(2000);
    await expect(ask("child")).rejects.toThrow(RateLimiterUnavailable);
  });

  test("a parent refuses a call for itself all the same", async () => {
    const { time, ask } = await emptied();
    await time.pass(2000);
    expect((await ask("team")).granted).toBe(false);
  });
});
