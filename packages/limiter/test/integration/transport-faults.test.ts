/**
 * A real engine behind a network that resets, cuts, delays, damages and replaces answers. Each call
 * writes an item of its own, so that afterwards it is plain what became of it.
 */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { tellFigures } from "@zae-limiter/test-support/figures.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAULTS, type Fault, faultProxy } from "./transport/fault-proxy.ts";

const CALLS = process.env.ZAEL_SOAK === undefined ? 240 : 4000;
const IN_FLIGHT = 24;
/** A slow answer costs as much. */
const TIMEOUT_MS = 300;
/** A busy machine notices a deadline late. */
const SLACK_MS = 3000;

type Outcome = "done" | "nothing written" | "unknown";

/** Deals each fault once, in an order of the seed, and then again in another. */
function lots(seed: number): () => Fault {
  let state = seed;
  let deck: Fault[] = [];
  return () => {
    if (deck.length === 0) deck = [...FAULTS];
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const [fault] = deck.splice(Math.floor((state / 2_147_483_648) * deck.length), 1);
    return fault as Fault;
  };
}

/**
 * For calls that are repeated until they succeed, which every third does. A slow answer would take
 * half of the time that is left.
 */
function withoutSlow(next: () => Fault): () => Fault {
  let calls = 0;
  return () => {
    calls += 1;
    const fault = calls % 3 === 0 ? "none" : next();
    // For one item, `{}` means that there is none: a true answer may be the same.
    return fault === "slowAnswer" || fault === "emptyObject" ? "damagedAnswer" : fault;
  };
}

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  const startedAt = performance.now();
  try {
    await call;
    return "done";
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    return (error as RateLimiterUnavailable).nothingWritten ? "nothing written" : "unknown";
  } finally {
    expect(performance.now() - startedAt).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  }
}

/** All numbers below `count`, `IN_FLIGHT` at a time. */
async function each(count: number, work: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

describeEngine("dynoxide", "a bad network", ({ endpoint }) => {
  const table = `faults-${crypto.randomUUID()}`;
  const straight = new DynamoItemStore({ table, endpoint, timeoutMs: 20_000 });
  beforeAll(() => createTable({ table, endpoint }));
  afterAll(async () => {
    await straight.close();
    await deleteTable({ table, endpoint });
  });

  describe.each(["lean", "sdk"] as const)("with the transport %s", (transport) => {
    const count = transport === "lean" ? CALLS : CALLS / 4;

    it("a transport says of every write what became of it, and writes nothing twice", async () => {
      await using proxy = await faultProxy(endpoint, lots(8));
      const store = new DynamoItemStore({
        table,
        transport,
        endpoint: proxy.endpoint,
        timeoutMs: TIMEOUT_MS,
      });
      const outcomes: Outcome[] = [];
      const key = (at: number) => ({ PK: `${transport}-update-${at}`, SK: "#STATE" });
      await each(count, async (at) => {
        outcomes[at] = await outcomeOf(store.update(key(at), { add: { n: 1 } }));
      });
      await store.close();
      const keys = Array.from({ length: count }, (_, at) => key(at));
      const items = await straight.getMany(keys, { consistent: true });
      const written = items.map((item: Item | undefined) => item?.n ?? 0);
      outcomes.forEach((outcome, at) => {
        if (outcome === "done") expect(written[at], `call ${at}`).toBe(1);
        else if (outcome === "nothing written") expect(written[at], `call ${at}`).toBe(0);
        else expect(written[at], `call ${at}`).toBeLessThanOrEqual(1);
      });
      const told = (outcome: Outcome) => outcomes.filter((each) => each === outcome).length;
      tellFigures({
        transport,
        writes: count,
        done: told("done"),
        nothingWritten: told("nothing written"),
        unknown: told("unknown"),
        ...Object.fromEntries(proxy.seen),
      });
      // The lots were fair enough to mean something.
      for (const fault of FAULTS) expect(proxy.seen.get(fault), fault).toBeGreaterThan(0);
      expect(outcomes).toContain("done");
      expect(outcomes).toContain("unknown");
      expect(items.filter((_, at) => outcomes[at] === "unknown")).toContain(undefined);
    });
  });

  it("a transaction with a token is repeated on a bad network until it is known, and applied once", async () => {
    await using proxy = await faultProxy(endpoint, withoutSlow(lots(9)));
    const store = new DynamoItemStore({ table, endpoint: proxy.endpoint, timeoutMs: 20_000 });
    const key = (at: number) => ({ PK: `token-${at}`, SK: "#STATE" });
    await each(IN_FLIGHT, async (at) => {
      const write = { update: key(at), change: { add: { n: 1 } } };
      await store.transact([write], { token: crypto.randomUUID() });
    });
    await store.close();
    const keys = Array.from({ length: IN_FLIGHT }, (_, at) => key(at));
    const items = await straight.getMany(keys, { consistent: true });
    expect(items.map((item) => item?.n)).toStrictEqual(keys.map(() => 1));
  });

  it("a read on a bad network returns what is there, however often it takes", async () => {
    await using proxy = await faultProxy(endpoint, withoutSlow(lots(11)));
    const store = new DynamoItemStore({ table, endpoint: proxy.endpoint, timeoutMs: 20_000 });
    const item = { PK: "read", SK: "#STATE", n: 1_234_567, text: "as it was written 1" };
    await straight.put(item);
    await each(IN_FLIGHT, async () => {
      expect(await store.get(item, { consistent: true })).toStrictEqual(item);
    });
    await store.close();
  });

  it.each([
    ["emptyBody", "lean"],
    ["emptyObject", "lean"],
    ["emptyBody", "sdk"],
    ["emptyObject", "sdk"],
  ] as const)(
    "a bad network makes no %s the answer that there are no limits (%s)",
    async (fault, transport) => {
      const root = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
      await root.limits.setSystem(["slow:100/day"]);
      let broken = 0;
      await using proxy = await faultProxy(endpoint, () => (broken-- > 0 ? fault : "none"));
      const limiter = await RateLimiter.open(`dynamodb://${table}`, {
        endpoint: proxy.endpoint,
        timeoutMs: 20_000,
        transport,
      });
      broken = 2;
      const lease = await limiter.acquire({
        entityId: `${fault}-${transport}`,
        resource: "api",
        consume: { slow: 1 },
      });
      expect(lease.consumed).toEqual({ slow: 1 });
      expect(proxy.seen.get(fault)).toBe(2);
      await Promise.all([limiter.close(), root.close()]);
    },
  );

  it("an acquire is never admitted beyond the limit, and what was taken is counted", async () => {
    const root = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    const capacity = Math.round(CALLS / 4);
    await root.limits.setSystem([`slow:${capacity}/day`]);
    const faults = lots(12);
    let isBad = false;
    let requests = 0;
    // For a namespace, `{}` means that it is not registered: a true answer may be the same.
    const believable = (fault: Fault) => (fault === "emptyObject" ? "emptyBody" : fault);
    await using proxy = await faultProxy(endpoint, () => {
      requests += 1;
      return isBad && requests % 2 === 0 ? believable(faults()) : "none";
    });
    const limiter = await RateLimiter.open(`dynamodb://${table}`, {
      endpoint: proxy.endpoint,
      timeoutMs: TIMEOUT_MS,
    });
    await limiter.status({ entityId: "user", resource: "api" });
    isBad = true;
    const request = { entityId: "user", resource: "api", consume: { slow: 1 } };
    let granted = 0;
    let unknown = 0;
    await each(CALLS, async () => {
      try {
        if ((await limiter.tryAcquire(request)).granted) granted += 1;
      } catch (error) {
        expect(error).toBeInstanceOf(RateLimiterUnavailable);
        if (!(error as RateLimiterUnavailable).nothingWritten) unknown += 1;
      }
    });
    const [state] = await root.buckets.list("user");
    const consumed = Number(state?.totalConsumed);
    tellFigures({ acquires: CALLS, granted, unknown, consumed, capacity, requests });
    expect(granted).toBeGreaterThan(0);
    expect(granted).toBeLessThanOrEqual(capacity);
    expect(consumed).toBeGreaterThanOrEqual(granted);
    expect(consumed).toBeLessThanOrEqual(granted + unknown);
    await Promise.all([limiter.close(), root.close()]);
  });

  it("requests that are delivered twice may consume more, and never grant more", async () => {
    const root = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    await root.limits.setSystem(["slow:20/day"]);
    let isBad = false;
    await using proxy = await faultProxy(endpoint, () => (isBad ? "deliveredTwice" : "none"));
    const limiter = await RateLimiter.open(`dynamodb://${table}`, {
      endpoint: proxy.endpoint,
      timeoutMs: 20_000,
    });
    const target = { entityId: "twice", resource: "api" };
    await limiter.status(target);
    isBad = true;
    let granted = 0;
    for (let call = 0; call < 20; call += 1) {
      if ((await limiter.tryAcquire({ ...target, consume: { slow: 1 } })).granted) granted += 1;
    }
    const [state] = await root.buckets.list("twice");
    // Twice each; the first makes the bucket, and the second delivery of that is a third consume.
    expect(granted).toBe(9);
    expect(state).toMatchObject({ tokens: 20 - Number(state?.totalConsumed) });
    expect(state?.totalConsumed).toBeGreaterThanOrEqual(granted);
    expect(state?.totalConsumed).toBeLessThanOrEqual(20);
    await Promise.all([limiter.close(), root.close()]);
  });
});
