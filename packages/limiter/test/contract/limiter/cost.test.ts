/** Costs of acquires: requests, and on the engines the units that DynamoDB would bill. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import {
  describeDynamo,
  describeItemStores,
  type LimiterStore,
  milliOf,
  type Subject,
  type SubjectOptions,
} from "./limiter-stores.ts";

const RESOURCE = "openai/gpt-4";
/** As long as most ids get. */
const ENTITY = "018f2b5e-7c3a-7d21-9f40-2b9c1e6a5d77";
const USER = { entityId: ENTITY, resource: RESOURCE };
const LIMITS = ["rpm:100", "tpm:100000", "rpd:5000/day", "tpd:9000000/day", "rps:50/sec"];
const DAY_MS = 86_400_000;

/** The cost of some work: the number of requests, and their units. */
interface Price {
  readonly calls: number;
  readonly read: number;
  readonly write: number;
  readonly index: number;
}

class Meter {
  readonly #calls: StoreCall[] = [];
  readonly onCall = (call: StoreCall): void => void this.#calls.push(call);

  async priceOf(work: () => Promise<unknown>): Promise<Price> {
    this.#calls.splice(0);
    await work();
    const sum = (units: (call: StoreCall) => number) =>
      this.#calls.reduce((total, call) => total + units(call), 0);
    return {
      calls: this.#calls.length,
      read: sum(({ readUnits }) => readUnits),
      write: sum(({ writeUnits }) => writeUnits),
      index: sum(({ indexUnits }) => indexUnits),
    };
  }
}

/** A limiter with stored limits that are remembered for as long as the test lasts. */
async function metered(
  store: LimiterStore,
  limits: readonly string[],
  options: SubjectOptions = {},
): Promise<Subject & { meter: Meter }> {
  const meter = new Meter();
  const subject = await store.open({
    onCall: meter.onCall,
    configCacheTtlSeconds: 1e9,
    ...options,
  });
  await subject.repo.limits.setSystem([...limits]);
  return { ...subject, meter };
}

function consumeOf(limits: readonly string[]): Record<string, number> {
  return Object.fromEntries(limits.map((limit) => [limit.split(":")[0] as string, 1]));
}

/** The expected price; only the engines report units. */
function price(store: LimiterStore, calls: number, units: { read?: number; write?: number } = {}) {
  const { read = 0, write = 0 } = units;
  return store.real ? { calls, read, write, index: 0 } : { calls, read: 0, write: 0, index: 0 };
}

describeItemStores("the price of an acquire", (store) => {
  it.each([1, 2, 5])(
    "the price of an acquire is one write and no read once it is warm: %i limits (A062)",
    async (count) => {
      const limits = LIMITS.slice(0, count);
      const { limiter, meter, time } = await metered(store, limits);
      const request = { ...USER, consume: consumeOf(limits) };
      const warm = price(store, 1, { write: 1 });
      await limiter.acquire(request);
      expect(await meter.priceOf(() => limiter.acquire(request))).toEqual(warm);
      // Whatever has accrued meanwhile; the time to live is renewed along the way.
      for (const idleMs of [10, 1000, 1500, 20_000, 59_000, 61_000, 600_000, 3_000_000]) {
        time.advance(idleMs);
        expect(await meter.priceOf(() => limiter.acquire(request)), `${idleMs}`).toEqual(warm);
      }
    },
  );

  it("an acquire stays one write over days without use, where the bucket does not expire (A062)", async () => {
    const { limiter, repo, meter, time } = await metered(store, []);
    await repo.limits.setEntity(ENTITY, LIMITS, { resource: RESOURCE });
    const request = { ...USER, consume: consumeOf(LIMITS) };
    await limiter.acquire(request);
    for (const idleMs of [DAY_MS / 2, DAY_MS, 40 * DAY_MS]) {
      time.advance(idleMs);
      const found = await meter.priceOf(() => limiter.acquire(request));
      expect(found, `${idleMs}`).toEqual(price(store, 1, { write: 1 }));
    }
  });

  it("a warm acquire of a quota is one write and no read, and the first after its edge too", async () => {
    const { limiter, meter, time } = await metered(store, ["req:1000/day UTC", "tpm:1000/min"]);
    time.advance(DAY_MS - (time.clock() % DAY_MS) + 1000);
    const request = { ...USER, consume: { req: 1, tpm: 1 } };
    const warm = price(store, 1, { write: 1 });
    await limiter.acquire(request);
    for (const idleMs of [10, 60_000, DAY_MS / 2, DAY_MS / 2, DAY_MS]) {
      time.advance(idleMs);
      expect(await meter.priceOf(() => limiter.acquire(request)), `${idleMs}`).toEqual(warm);
    }
  });

  it("a spent quota costs no write, and at most two reads a minute", async () => {
    const subject = await metered(store, ["req:10/day UTC", "tpm:1000/min"]);
    const { limiter, meter, time } = subject;
    time.advance(DAY_MS - (time.clock() % DAY_MS) + 1000);
    const request = { ...USER, consume: { req: 1, tpm: 1 } };
    await limiter.acquire({ ...USER, consume: { req: 10 } });
    const { calls, write, index } = await meter.priceOf(async () => {
      for (let second = 0; second < 600; second += 1) {
        time.advance(1000);
        await refusalOf(limiter.acquire(request));
      }
    });
    expect({ write, index }).toEqual({ write: 0, index: 0 });
    expect(calls).toBeLessThanOrEqual(20);
    expect(calls).toBeGreaterThanOrEqual(19);
    // The refusals end with the period, whatever is known.
    time.advance(DAY_MS - (time.clock() % DAY_MS) - 1);
    await refusalOf(limiter.acquire(request));
    time.advance(1);
    await limiter.acquire(request);
  });

  it("a spent quota of an ancestor costs as little, once the balances of the call are known", async () => {
    const { limiter, meter, time, repo } = await metered(store, []);
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: ENTITY, parentId: "org", cascade: true });
    await repo.limits.setEntity("org", ["req:10/month UTC"], { resource: RESOURCE });
    await repo.limits.setEntity(ENTITY, ["req:1000/month UTC"], { resource: RESOURCE });
    await limiter.acquire({ ...USER, consume: { req: 10 } });
    const { calls, write } = await meter.priceOf(async () => {
      for (let second = 0; second < 120; second += 1) {
        time.advance(1000);
        await refusalOf(limiter.acquire({ ...USER, consume: { req: 1 } }));
      }
    });
    expect(write).toBe(0);
    expect(calls).toBeLessThanOrEqual(8);
  });

  it("the price of an acquire is at most three requests for the first one, cold", async () => {
    const { limiter, meter } = await metered(store, LIMITS);
    const request = { ...USER, consume: consumeOf(LIMITS) };
    const cold = await meter.priceOf(() => limiter.acquire(request));
    expect(cold.calls).toBeLessThanOrEqual(3);
    const other = await metered(store, LIMITS);
    // By another client, when the bucket is there already.
    await other.limiter.acquire(request);
    const meterOfAnother = new Meter();
    const another = await store.another(other, { onCall: meterOfAnother.onCall });
    const second = await meterOfAnother.priceOf(() => another.limiter.acquire(request));
    expect(second.calls).toBeLessThanOrEqual(3);
  });

  it("limits for children cost two reads more in a cold acquire of an entity, and none in a warm one", async () => {
    const subject = await metered(store, LIMITS);
    const { entities, limits } = subject.repo;
    await entities.create({ id: "team" });
    await entities.create({ id: ENTITY, parentId: "team" });
    const request = { ...USER, consume: consumeOf(LIMITS) };
    await subject.limiter.acquire(request);
    const coldOf = async (): Promise<[Price, Price]> => {
      const meter = new Meter();
      const { limiter } = await store.another(subject, { onCall: meter.onCall });
      const cold = await meter.priceOf(() => limiter.acquire(request));
      return [cold, await meter.priceOf(() => limiter.acquire(request))];
    };
    const warm = price(store, 1, { write: 1 });
    const [before, warmBefore] = await coldOf();
    await limits.setChildren("another", LIMITS, { resource: "another" });
    const [ofAnother, warmOfAnother] = await coldOf();
    await limits.setChildren("team", LIMITS);
    const [after, warmAfter] = await coldOf();
    expect([warmBefore, warmOfAnother, warmAfter]).toEqual([warm, warm, warm]);
    expect(ofAnother).toEqual(before);
    expect(after.calls - before.calls).toBe(2);
    expect([before.read, after.read - before.read]).toEqual(store.real ? [16, 3] : [0, 0]);
  });

  it("a new bucket costs one unit, without its indexes, and flags cost none (N4)", async () => {
    const { limiter, repo, meter } = await metered(store, LIMITS);
    const consume = consumeOf(LIMITS);
    const first = (entityId: string) =>
      meter.priceOf(() => limiter.acquire({ ...USER, entityId, consume }));
    await first("reads-the-limits");
    const plain = await first("plain");
    expect(plain.write - plain.index).toBe(store.real ? 1 : 0);
    await repo.limits.bypass({ resource: RESOURCE });
    await first("reads-the-flags");
    expect(await first("flagged")).toEqual(plain);
  });

  it("the price of an acquire is two writes with a parent, and no read", async () => {
    const { limiter, repo, meter, time } = await metered(store, LIMITS);
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: ENTITY, parentId: "team", cascade: true });
    const request = { ...USER, consume: consumeOf(LIMITS) };
    await limiter.acquire(request);
    for (const idleMs of [0, 1000, 9000, 90_000]) {
      time.advance(idleMs);
      expect(await meter.priceOf(() => limiter.acquire(request))).toEqual(
        price(store, 2, { write: 2 }),
      );
    }
  });

  it("the price of an acquire is nothing where the bucket is known to be empty", async () => {
    const { limiter, repo, meter } = await metered(store, ["rpm:2"]);
    const request = { ...USER, consume: { rpm: 2 } };
    await limiter.acquire(request);
    const refuse = () => refusalOf(limiter.acquire(request));
    for (let call = 0; call < 3; call += 1) {
      expect(await meter.priceOf(refuse)).toEqual(price(store, 0));
    }
    // The same through a child, once both have been seen.
    await repo.entities.create({ id: ENTITY });
    await repo.entities.create({ id: "child", parentId: ENTITY, cascade: true });
    await repo.limits.setEntity("child", ["rpm:50"]);
    const child = () => refusalOf(limiter.acquire({ ...request, entityId: "child" }));
    // Cached limits are read again once after a change.
    await child();
    await child();
    expect(await meter.priceOf(child)).toEqual(price(store, 0));
  });

  it("the price of an acquire is nothing to commit what was not adjusted", async () => {
    const { limiter, meter } = await metered(store, LIMITS);
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(await meter.priceOf(() => lease.commit())).toEqual(price(store, 0));
    const disposed = await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    const dispose = () => disposed[Symbol.asyncDispose]();
    expect(await meter.priceOf(dispose)).toEqual(price(store, 0));
  });

  it("the price of an adjustment is one request per entity, and so is that of a refund", async () => {
    const subject = await metered(store, LIMITS);
    const { limiter, repo, meter } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: ENTITY, parentId: "team", cascade: true });
    const request = { ...USER, consume: consumeOf(LIMITS) };
    await limiter.acquire(request);
    const more = await limiter.acquire(request);
    more.adjust({ tpm: 50, rpm: 1 });
    expect(await meter.priceOf(() => more.commit())).toEqual(price(store, 2, { write: 2 }));
    const less = await limiter.acquire(request);
    less.adjust({ tpm: -1 });
    expect((await meter.priceOf(() => less.commit())).calls).toBe(2);
    const back = await limiter.acquire(request);
    await back.consume({ tpm: 7 });
    back.adjust({ rpm: 3 });
    await back.flush();
    expect((await meter.priceOf(() => back.rollback())).calls).toBe(2);
    expect(await milliOf(subject, ENTITY, RESOURCE, "tpm")).toMatchObject({ consumed: 52_000 });
    expect(await milliOf(subject, "team", RESOURCE, "rpm")).toMatchObject({ consumed: 4000 });
  });

  it("an acquire costs one read more where each bucket has to be read first", async () => {
    const { limiter, meter } = await metered(store, LIMITS, { speculativeWrites: false });
    const request = { ...USER, consume: { rpm: 1 } };
    await limiter.acquire(request);
    expect(await meter.priceOf(() => limiter.acquire(request))).toEqual(
      price(store, 2, { read: 1, write: 1 }),
    );
  });
});

describeDynamo(
  "the price of an acquire on a table of the reference",
  (store) => {
    it("an acquire on a table of the reference costs one more unit, for the index that copies all", async () => {
      const { limiter, meter } = await metered(store, LIMITS);
      const request = { ...USER, consume: consumeOf(LIMITS) };
      await limiter.acquire(request);
      const found = await meter.priceOf(() => limiter.acquire(request));
      expect(found).toMatchObject({ calls: 1, read: 0 });
      expect(found.write - found.index).toBe(1);
      expect(found.write).toBeGreaterThan(1);
    });
  },
  { gsi2Projection: "ALL", lsis: true },
);
