import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import type { AggregatorCounters } from "@zae-limiter/aws/aggregator/counters.ts";
import type { LogFields } from "@zae-limiter/aws/aggregator/log.ts";
import { LeaseItems } from "@zae-limiter/aws/aggregator/runner/lease-items.ts";
import { feedSource, type ShardSource } from "@zae-limiter/aws/aggregator/runner/shard-source.ts";
import { assign, StreamRunner } from "@zae-limiter/aws/aggregator/runner/stream-runner.ts";
import {
  InfrastructureNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";
import { AT, bucketItem, NAMESPACE } from "../changes.ts";
import { CrashingStore } from "../crashing-store.ts";
import { SimulatedStream } from "./simulated-stream.ts";

const LEASE_MS = 4000;

/** A process; several of them share a store and a time. */
class Process {
  readonly lines: { message: string; fields: LogFields }[] = [];
  readonly #stop = new AbortController();
  readonly ended: Promise<AggregatorCounters>;

  constructor(worker: string, source: ShardSource, store: MemoryItemStore, time: VirtualTime) {
    const { clock, timer } = time;
    const log = (_: string, message: string, fields: LogFields = {}) => {
      this.lines.push({ message, fields });
    };
    const runner = new StreamRunner({
      aggregator: new Aggregator({ store, clock, timer, log, windows: ["daily"] }),
      source,
      store,
      clock,
      timer,
      log,
      worker,
      leaseMs: LEASE_MS,
      batchMs: 500,
      batchSize: 100,
      reportMs: 60_000,
    });
    this.ended = runner.run(this.#stop.signal);
    // Its end is reported only to callers that wait for it.
    this.ended.catch(() => undefined);
  }

  stop(): void {
    this.#stop.abort();
  }

  said(message: string): LogFields[] {
    return this.lines.filter((line) => line.message === message).map(({ fields }) => fields);
  }
}

/** A world whose stream counts up buckets. */
function world(store: MemoryItemStore = new MemoryItemStore({ clock: () => AT })) {
  const time = new VirtualTime(AT);
  const stream = new SimulatedStream();
  const totals = new Map<string, number>();
  const use = (shard: string, entity: string, tokens: number) => {
    const before = totals.get(entity);
    const after = (before ?? 0) + tokens * 1000;
    totals.set(entity, after);
    const image = (tpm: number) => bucketItem({ entity, tc: { tpm } });
    stream.append(shard, before === undefined ? undefined : image(before), image(after));
  };
  const start = (worker: string) => new Process(worker, stream, store, time);
  const usage = async () => {
    const found: Record<string, number> = {};
    for (const entity of totals.keys()) {
      for await (const item of store.query({ partition: `${NAMESPACE}/ENTITY#${entity}` })) {
        found[entity] = decodeUsage(item)?.counters.tpm ?? 0;
      }
    }
    return found;
  };
  return { time, stream, store, use, start, usage };
}

describe("a runner", () => {
  test("a runner reads what is there and what comes, and stops in good order", async () => {
    const { time, stream, use, start, usage, store } = world();
    stream.add("a");
    use("a", "e1", 5);
    const process = start("w1");
    await time.pass(2000);
    expect(await usage()).toEqual({ e1: 5 });
    use("a", "e1", 2);
    use("a", "e2", 1);
    await time.pass(2000);
    expect(await usage()).toEqual({ e1: 7, e2: 1 });
    process.stop();
    expect(await time.until(process.ended)).toMatchObject({ records: 3, failures: 0 });
    const { leases, workers } = await new LeaseItems(store, "").read();
    expect(leases.get("a")).toMatchObject({ owner: undefined, checkpoint: "3", done: false });
    expect(workers.size).toBe(0);
  });

  test("what can never be written is given up, and does not hold up what follows", async () => {
    const { time, stream, use, start, store } = world();
    stream.add("a");
    const day = "2024-01-01T00:00:00Z";
    await store.put({
      PK: `${NAMESPACE}/ENTITY#bad`,
      SK: `#USAGE#gpt-4#daily#${day}`,
      tpm: "not a number",
    });
    use("a", "bad", 5);
    use("a", "good", 2);
    const process = start("w1");
    await time.pass(2000);
    process.stop();
    expect(await time.until(process.ended)).toMatchObject({ records: 2, failures: 1, skipped: 1 });
    const { leases } = await new LeaseItems(store, "").read();
    expect(leases.get("a")).toMatchObject({ checkpoint: "2" });
  });

  test("a runner goes on where the last one stopped, at once when it stopped in good order", async () => {
    const { time, stream, use, start, usage } = world();
    stream.add("a");
    use("a", "e1", 5);
    const first = start("w1");
    await time.pass(2000);
    first.stop();
    await time.until(first.ended);
    use("a", "e1", 3);
    start("w2");
    await time.pass(1500);
    expect(await usage()).toEqual({ e1: 8 });
    expect(stream.opened).toEqual(["a after nothing", "a after 1"]);
  });

  test("a runner takes over from one that died, when its lease is over and not before", async () => {
    const { time, stream, use, start, usage, store } = world();
    stream.add("a");
    use("a", "e1", 5);
    use("a", "e1", 3);
    const items = new LeaseItems(store, "");
    await items.sign("dead", AT);
    await items.take("a", undefined, "dead", AT);
    // It had counted the first change, and said so.
    await items.renew("a", "dead", { checkpoint: "1", done: false }, AT);
    start("w2");
    await time.pass(LEASE_MS - 500);
    expect(stream.opened).toEqual([]);
    await time.pass(2000);
    expect(stream.opened).toEqual(["a after 1"]);
    expect(await usage()).toEqual({ e1: 3 });
  });

  test("a child is read when its parent is read to its end, by whomever", async () => {
    const { time, stream, use, start, usage } = world();
    stream.add("parent");
    stream.add("left", "parent");
    stream.add("right", "parent");
    use("parent", "e1", 1);
    use("left", "e1", 10);
    use("right", "e2", 20);
    const process = start("w1");
    await time.pass(3000);
    expect(stream.opened).toEqual(["parent after nothing"]);
    stream.close("parent");
    await time.pass(4000);
    expect(stream.opened.slice(1).toSorted()).toEqual([
      "left after nothing",
      "right after nothing",
    ]);
    expect(await usage()).toEqual({ e1: 11, e2: 20 });
    expect(process.said("shard finished")).toEqual([{ shard: "parent" }]);
  });

  test("several processes share the shards, and take over those of one that is gone", async () => {
    const { time, stream, use, start, usage, store } = world();
    for (const shard of ["a", "b", "c", "d"]) stream.add(shard);
    const first = start("w1");
    await time.pass(2000);
    start("w2");
    await time.pass(2 * LEASE_MS);
    const owners = async () => {
      const { leases } = await new LeaseItems(store, "").read();
      return [...leases.values()].map(({ owner }) => owner).toSorted();
    };
    expect(await owners()).toEqual(["w1", "w1", "w2", "w2"]);
    for (const [at, shard] of ["a", "b", "c", "d"].entries()) use(shard, `e${at}`, at + 1);
    await time.pass(2000);
    expect(await usage()).toEqual({ e0: 1, e1: 2, e2: 3, e3: 4 });
    first.stop();
    await time.until(first.ended);
    await time.pass(2000);
    expect(await owners()).toEqual(["w2", "w2", "w2", "w2"]);
  });

  test("what failed is tried again until it works, and nothing counts twice", async () => {
    const store = new CrashingStore({ clock: () => AT });
    const { time, stream, use, start, usage } = world(store);
    stream.add("a");
    const process = start("w1");
    await time.pass(1000);
    for (let at = 0; at < 10; at += 1) use("a", `e${at % 3}`, 1);
    store.crashAfter(1, true);
    await time.pass(1500);
    store.restart();
    await time.pass(10_000);
    expect(await usage()).toEqual({ e0: 4, e1: 3, e2: 3 });
    expect(process.said("a snapshot could not be written").length).toBeGreaterThan(0);
  });

  test("a runner changes that are lost are said to be, and what follows is counted", async () => {
    const { time, stream, use, start, usage } = world();
    stream.add("a");
    use("a", "e1", 5);
    const discover = stream.discover.bind(stream);
    let lost = true;
    stream.discover = async () => {
      const found = await discover();
      return {
        ...found,
        open: (id, after) => {
          if (!lost) return found.open(id, after);
          lost = false;
          const error = new ValidationError("position", after, "not kept any more");
          return { next: () => Promise.reject(error), close: async () => {} };
        },
      };
    };
    const process = start("w1");
    await time.pass(4000);
    expect(await usage()).toEqual({ e1: 5 });
    expect(process.said("changes were lost: the stream does not keep them any more")).toHaveLength(
      1,
    );
  });

  test("a table that is not there ends it", async () => {
    const { time, stream, start } = world();
    stream.discover = () => Promise.reject(new InfrastructureNotFoundError("t"));
    await expect(time.until(start("w1").ended)).rejects.toThrow(InfrastructureNotFoundError);
  });

  test("a new stream of the table is read from its beginning, and its numbers start again", async () => {
    const { time, stream, use, start, usage } = world();
    stream.generation = "000000001.";
    stream.add("a");
    use("a", "e1", 5);
    start("w1");
    await time.pass(2000);
    stream.shards.length = 0;
    stream.generation = "000000002.";
    stream.add("a");
    use("a", "e1", 2);
    await time.pass(4000);
    expect(await usage()).toEqual({ e1: 7 });
    expect(stream.opened).toEqual(["a after nothing", "a after nothing"]);
  });

  test("the feed of a store is a stream of one shard", async () => {
    const time = new VirtualTime(AT);
    const store = new MemoryItemStore({ clock: time.clock });
    const item = bucketItem({ tc: { tpm: 4000 } });
    await store.put(item);
    const process = new Process("w1", feedSource(store), store, time);
    await time.pass(2000);
    await store.update(item, { add: { b_tpm_tc: 3000 } });
    await time.pass(2000);
    const [found] = await Promise.all([
      store.get({
        PK: `${NAMESPACE}/ENTITY#user-1`,
        SK: "#USAGE#gpt-4#daily#2024-01-01T00:00:00Z",
      }),
    ]);
    expect(found).toMatchObject({ tpm: 7, total_events: 2 });
    process.stop();
    await time.until(process.ended);
  });
});

describe("shards are shared out", () => {
  const shard = (id: string, parentId?: string) => ({ id, parentId });
  const lease = (shardId: string, owner: string | undefined, done = false) =>
    [shardId, { shardId, owner, beat: 1, checkpoint: undefined, done }] as const;
  const NONE_DEAD = new Set<string>();

  test("shards are shared out equally, and the rest to the next process", () => {
    const shards = ["a", "b", "c"].map((id) => shard(id));
    const workers = new Set(["w1", "w2"]);
    const plan = assign({ worker: "w1", shards, leases: new Map(), workers, dead: NONE_DEAD });
    expect(plan).toEqual({ take: ["a", "b"], release: [] });
    const leases = new Map(["a", "b", "c"].map((id) => lease(id, "w1")));
    expect(assign({ worker: "w1", shards, leases, workers, dead: NONE_DEAD }).release).toEqual([
      "c",
    ]);
    expect(assign({ worker: "w2", shards, leases, workers, dead: NONE_DEAD }).take).toEqual([]);
  });

  test("shards of the dead are shared out, but not children of what is not finished", () => {
    const shards = [shard("a"), shard("b", "a"), shard("c", "gone")];
    const workers = new Set(["w2"]);
    const dead = new Set(["a"]);
    const leases = new Map([lease("a", "w1")]);
    const { take } = assign({ worker: "w2", shards, leases, workers, dead });
    expect(take).toEqual(["a", "c"]);
    const finished = new Map([lease("a", "w1", true)]);
    expect(assign({ worker: "w2", shards, leases: finished, workers, dead }).take).toEqual([
      "b",
      "c",
    ]);
  });
});
