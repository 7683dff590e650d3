import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import { ITEM_ABSENT, type ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import {
  SimulatedTable,
  type SimulatedTableOptions,
} from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";

const KEY: Key = { PK: "p", SK: "s" };
const WAS_NOTHING = { is: "=", name: "count", value: 0 } as const;

function tableWith(options: Partial<SimulatedTableOptions> = {}) {
  const time = new VirtualTime(1_800_000_000_000);
  const table = new SimulatedTable({ time, ...options });
  const [first, second] = [table.process(), table.process()];
  return { time, table, store: first.store, other: second.store, first, second };
}

function add(store: ItemStore, amount = 1): Promise<unknown> {
  return store.update(KEY, { add: { count: amount } });
}

/** Returns the error that a call ends with. */
async function refusalOf(work: Promise<unknown>): Promise<RateLimiterUnavailable> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof RateLimiterUnavailable) return error;
  throw new Error(`expected that it fails, got ${String(error)}`);
}

describe("a simulated table", () => {
  test("a simulated table does what a store does, and takes time for it", async () => {
    const { time, table, store, other } = tableWith();
    await time.until(store.put({ ...KEY, count: 1 }, [ITEM_ABSENT]));
    expect(time.timer.nowMs()).toBeGreaterThan(0.5);
    const refused = await time.until(other.put({ ...KEY, count: 9 }, [ITEM_ABSENT]));
    expect(refused).toEqual({ ok: false, item: { ...KEY, count: 1 } });
    expect(await time.until(other.get(KEY, { consistent: true }))).toEqual({ ...KEY, count: 1 });
    expect(table.usage).toMatchObject({
      calls: 3,
      writeUnits: 2,
      readUnits: 1,
      refusedConditions: 1,
    });
    expect(table.dollars).toBeCloseTo((2 * 0.625 + 0.125) / 1e6, 12);
  });

  test("one key takes 1,000 write units a second, and says which limit was reached", async () => {
    const { time, table, store } = tableWith({ latency: { spread: 0, slowShare: 0 } });
    const options = { timeoutMs: 50, hotKey: "raise" } as const;
    const calls = Array.from({ length: 1500 }, () =>
      store.update(KEY, { add: { count: 1 } }, undefined, options).catch((error: unknown) => error),
    );
    const results = await time.until(Promise.all(calls));
    const failed = results.filter((result) => result instanceof RateLimiterUnavailable);
    expect(table.read(KEY)?.count).toBe(1500 - failed.length);
    expect(failed.length).toBeGreaterThan(480);
    expect(failed.length).toBeLessThanOrEqual(500);
    expect(failed[0]).toMatchObject({ reason: "throttled", nothingWritten: true, keyRange: true });
    expect((failed[0] as RateLimiterUnavailable).cause).toMatchObject({
      throttlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }],
    });
    // Another key is not touched by that.
    const free = { PK: "q", SK: "s" };
    await time.until(store.update(free, { add: { count: 1 } }, undefined, options));
    await time.pass(1000);
    await time.until(store.update(KEY, { add: { count: 1 } }, undefined, options));
  });

  test("a throttled call is repeated until there is room, unless its caller knows better", async () => {
    const { time, table, store } = tableWith({
      throughput: { writeUnitsPerSecond: 10 },
      latency: { spread: 0, slowShare: 0 },
    });
    await time.until(Promise.all(Array.from({ length: 12 }, () => add(store))));
    expect(table.read(KEY)?.count).toBe(12);
    expect(table.usage.throttledKeys).toBeGreaterThan(0);
  });

  test("a lost answer is a timeout, although it was done; a read and a token are tried again", async () => {
    const { time, table, store } = tableWith({ faults: { lostResponses: 1 } });
    const error = await time.until(refusalOf(add(store)));
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: false, keyRange: false });
    expect(table.read(KEY)?.count).toBe(1);
    time.after(700, () => {
      table.faults = {};
    });
    const write = { update: KEY, change: { add: { count: 1 } } };
    await time.until(store.transact([write], { token: "once" }));
    expect(table.read(KEY)?.count).toBe(2);
  });

  test("a repeated transaction that is refused may still be done by its first attempt", async () => {
    const { time, table, store, other } = tableWith({ faults: { lateRequests: 1 } });
    await time.until(other.put({ ...KEY, count: 0 }, [], { timeoutMs: 5000 }).catch(() => {}));
    await time.pass(20_000);
    const write = { update: KEY, change: { add: { count: 1 } }, condition: [WAS_NOTHING] };
    const refused = refusalOf(store.transact([write], { token: "once", timeoutMs: 2000 }));
    await time.pass(500);
    table.faults = {};
    await time.until(add(other));
    expect(await time.until(refused)).toMatchObject({ reason: "timeout", nothingWritten: false });
    await time.until(add(other, -1));
    await time.pass(20_000);
    expect(table.read(KEY)?.count).toBe(1);
  });

  test("a lost request looks the same and does nothing; a refused connection is certain", async () => {
    const { time, table, store } = tableWith({ faults: { lostRequests: 1 } });
    expect((await time.until(refusalOf(add(store)))).nothingWritten).toBe(false);
    table.faults = { refusedConnections: 1 };
    expect(await time.until(refusalOf(add(store)))).toMatchObject({
      reason: "network",
      nothingWritten: true,
    });
    table.faults = { throttledTable: 1 };
    expect(await time.until(refusalOf(add(store)))).toMatchObject({
      reason: "throttled",
      keyRange: false,
    });
    expect(table.read(KEY)).toBeUndefined();
  });

  test("a server error leaves open whether it was done", async () => {
    const { time, table, store } = tableWith({ faults: { serverErrors: 1 } });
    for (let call = 0; call < 40; call += 1) {
      expect((await time.until(refusalOf(add(store)))).reason).toBe("server");
    }
    const done = Number(table.read(KEY)?.count);
    expect(done).toBeGreaterThan(5);
    expect(done).toBeLessThan(35);
  });

  test("plain writes to an item that a transaction holds are conflicts, and pass", async () => {
    const { time, table, store, other } = tableWith({ faults: { transactionMs: 400 }, seed: 3 });
    await time.until(add(store));
    const write = { update: KEY, change: { add: { count: 10 } } };
    const transacting = store.transact([write], { token: "t" });
    await time.pass(8);
    const adding = add(other);
    await time.until(Promise.all([transacting, adding]));
    expect(table.usage.conflicts).toBeGreaterThan(0);
    expect(table.read(KEY)?.count).toBe(12);
  });

  test("a token is good for one transaction only", async () => {
    const { time, table, store } = tableWith();
    const write = (amount: number) => ({ update: KEY, change: { add: { count: amount } } });
    await time.until(store.transact([write(1)], { token: "t" }));
    await time.until(store.transact([write(1)], { token: "t" }));
    expect(table.read(KEY)?.count).toBe(1);
    const other = store.transact([write(2)], { token: "t" });
    await expect(time.until(other)).rejects.toThrow(InfrastructureError);
  });

  test("indexes and reads that need not be the newest lag behind", async () => {
    const { time, store } = tableWith({ faults: { lagMs: 5000 }, latency: { medianMs: 1 } });
    const indexed = { ...KEY, GSI4PK: "ns", GSI4SK: "a" };
    await time.until(store.put(indexed));
    const found = async () => {
      const keys: string[] = [];
      for await (const { PK } of store.query({ index: "GSI4", partition: "ns" })) keys.push(PK);
      return keys;
    };
    const stale = [await time.until(found()), await time.until(store.get(KEY))];
    expect(stale).toEqual([[], undefined]);
    expect(await time.until(store.get(KEY, { consistent: true }))).toEqual(indexed);
    await time.pass(5000);
    expect(await time.until(found())).toEqual(["p"]);
    expect(await time.until(store.get(KEY))).toEqual(indexed);
  });

  test("what begins to lag later knows what was there before", async () => {
    const { time, table, store } = tableWith({ latency: { medianMs: 1 } });
    const indexed = (PK: string) => ({ PK, SK: "s", GSI4PK: "ns", GSI4SK: PK });
    const found = async () => {
      const keys: string[] = [];
      for await (const { PK } of store.query({ index: "GSI4", partition: "ns" })) keys.push(PK);
      return keys;
    };
    await time.until(store.put(indexed("a")));
    table.faults = { lagMs: 60_000 };
    await time.until(store.put(indexed("b")));
    expect(await time.until(found())).toEqual(["a"]);
    await time.pass(60_000);
    expect(await time.until(found())).toEqual(["a", "b"]);
  });

  test("records of the stream come again", async () => {
    const { time, store } = tableWith({ faults: { duplicateRecords: 1 } });
    const sequences: string[] = [];
    const following = (async () => {
      for await (const { sequence } of store.changes({ from: "oldest" })) {
        sequences.push(sequence);
        if (sequences.length === 6) return;
      }
    })();
    for (let write = 0; write < 4; write += 1) await time.until(add(store));
    await following;
    expect(new Set(sequences).size).toBeLessThan(6);
    // Every record comes first in its order.
    const firsts = [...new Set(sequences)];
    expect(firsts).toEqual([...firsts].sort());
  });

  test("a process that crashed hears of nothing any more; what it sent may still arrive", async () => {
    const { time, table, first } = tableWith();
    let heard = false;
    void add(first.store).then(() => {
      heard = true;
    });
    void first.timer.sleep(1).then(() => {
      heard = true;
    });
    first.crash();
    await time.pass(100);
    expect([heard, first.crashed, table.read(KEY)?.count]).toEqual([false, true, 1]);
    void add(first.store);
    await time.pass(100);
    expect(table.read(KEY)?.count).toBe(1);
  });

  test("a process that is cut off reaches nothing until it is connected again", async () => {
    const { time, table, first, other } = tableWith();
    first.cutOff();
    await expect(time.until(add(first.store))).rejects.toMatchObject({ nothingWritten: false });
    await time.until(add(other));
    expect(table.read(KEY)?.count).toBe(1);
    first.reconnect();
    await time.until(add(first.store));
    expect(table.read(KEY)?.count).toBe(2);
  });

  test("clocks differ by process, and calls say what theirs showed", async () => {
    const { time, table } = tableWith();
    const [ahead, behind] = [table.process({ skewMs: 250 }), table.process({ skewMs: -250 })];
    expect(ahead.clock() - behind.clock()).toBe(500);
    const calls: TableCall[] = [];
    table.watch({ landed: (call) => calls.push(call) });
    await time.until(add(ahead.store));
    expect(calls[0]?.plannedMs).toBe(1_800_000_000_250);
  });

  test("the same seed leads to the same run", async () => {
    const run = async (seed: number) => {
      const { time, table, store, other } = tableWith({ seed, faults: { lostResponses: 0.2 } });
      const seen: string[] = [];
      const call = async (from: ItemStore, name: string) => {
        const result = await add(from).then(
          () => "done",
          () => "lost",
        );
        seen.push(`${name} ${result} ${time.nowMs}`);
      };
      for (let round = 0; round < 10; round += 1) {
        await time.until(Promise.all([call(store, "a"), call(other, "b")]));
      }
      return [seen, table.usage];
    };
    expect(await run(5)).toEqual(await run(5));
    expect(await run(5)).not.toEqual(await run(6));
  });

  test("typos in options and faults are refused", () => {
    const time = new VirtualTime();
    const wrong = { time, sed: 1 } as unknown as SimulatedTableOptions;
    expect(() => new SimulatedTable(wrong)).toThrow(ValidationError);
    const faults = { lostAnswers: 1 } as object;
    expect(() => new SimulatedTable({ time, faults })).toThrow(/lostAnswers/);
    expect(() => new SimulatedTable({ time, seed: -1 })).toThrow(/seed/);
  });
});

describe("a limiter on a simulated table", () => {
  test("several processes share what there is", async () => {
    const { time, table, first, second } = tableWith();
    const one = await time.until(first.open());
    const two = await time.until(second.open());
    await time.until(one.repository.limits.setSystem(["rpm:5"]));
    const request = { entityId: "key-1", resource: "api", consume: { rpm: 1 } };
    const decisions = await time.until(
      Promise.all(
        Array.from({ length: 12 }, (_, call) => (call % 2 === 0 ? one : two).tryAcquire(request)),
      ),
    );
    expect(decisions.filter((decision) => decision.granted)).toHaveLength(5);
    expect(table.usage.calls).toBeGreaterThan(12);
  });

  test("a limiter hears of its calls", async () => {
    const { time, first } = tableWith();
    const operations: string[] = [];
    const limiter = await time.until(
      first.open({ onCall: ({ operation }) => operations.push(operation) }),
    );
    operations.length = 0;
    await time.until(limiter.repository.entities.get("unknown"));
    expect(operations).toEqual(["GetItem"]);
    const heard: string[] = [];
    const events = (event: LimiterEvent) => heard.push(event.type);
    const other = new RateLimiter(limiter.repository, { events });
    await time.until(limiter.repository.entities.get("unknown"));
    await time.until(other.close());
    expect(heard).toEqual(["call"]);
  });

  test("a bucket that is too busy to be read makes a cascade wait, not fail", async () => {
    const { time, first, other } = tableWith({ throughput: { readUnitsPerSecond: 20 } });
    const limiter = await time.until(first.open({ speculativeWrites: false }));
    const { repository } = limiter;
    await time.until(repository.limits.setSystem(["rpm:100"]));
    await time.until(repository.entities.create({ id: "team" }));
    await time.until(repository.entities.create({ id: "key", parentId: "team", cascade: true }));
    const request = { entityId: "key", resource: "api", consume: { rpm: 1 } };
    await time.until(limiter.acquire(request));
    await time.pass(2000);
    const busy = bucketKey(repository.namespaceId, "team", "api", 0);
    const reads = Array.from({ length: 60 }, () =>
      other.get(busy, { consistent: true, hotKey: "raise" }).catch(() => undefined),
    );
    await time.until(Promise.all(reads));
    expect((await time.until(limiter.tryAcquire(request))).granted).toBe(true);
  });
});
