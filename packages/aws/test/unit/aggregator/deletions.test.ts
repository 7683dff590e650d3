/** Records from before a deletion are not counted; later ones are. */

import type { StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { entityMark, namespaceMark } from "@zae-limiter/limiter/records/entities/deletion-mark.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ReadManyOptions } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describe, expect, test } from "vitest";
import { AT, bucketItem, change, NAMESPACE } from "./changes.ts";
import { aggregatorOver } from "./setup.ts";

const DELETED_AT = AT + 1000;
const MARK = entityMark(NAMESPACE, "user-1", DELETED_AT, DELETED_AT);
/** Consumed by a bucket from before the deletion, and by the one that follows it. */
const OLD = { rf: AT, acquires: 1 };
const NEW = { rf: DELETED_AT + 1, acquires: 1 };

const acquired = (fields: { rf: number; shard?: number }, tokens: number): StreamChange =>
  change(undefined, bucketItem({ ...fields, acquires: 1, tc: { tpm: tokens * 1000 } }));

/** A store in which `mark` appears between the writes of a batch and its last read of the marks. */
class RacingStore extends MemoryItemStore {
  mark: Item | undefined;
  dies = false;

  override async getMany(keys: readonly Key[], options?: ReadManyOptions) {
    if (options?.consistent === true && this.mark !== undefined) {
      await this.put(this.mark);
      this.mark = undefined;
      if (this.dies) throw new Error("the process died");
    }
    return super.getMany(keys, options);
  }
}

function racing(mark: Item) {
  const store = new RacingStore({ clock: () => AT });
  store.mark = mark;
  return aggregatorOver({ store, windows: ["hourly"] }) as ReturnType<typeof aggregatorOver> & {
    store: RacingStore;
  };
}

/** Tokens of every snapshot of the entity. */
async function counted(store: MemoryItemStore): Promise<number[]> {
  const found: number[] = [];
  const partition = `${NAMESPACE}/ENTITY#user-1`;
  for await (const item of store.query({ partition })) {
    found.push(decodeUsage(item)?.counters.tpm ?? 0);
  }
  return found;
}

describe("records from before the deletion of their entity", () => {
  test("records from before a deletion write nothing, and records after it are counted", async () => {
    const { aggregator, store, lines } = aggregatorOver({ windows: ["hourly"] });
    await store.put(MARK);
    const { counters } = await aggregator.process([acquired(OLD, 5)]);
    expect(counters).toMatchObject({ records: 1, snapshots: 0, failures: 0 });
    expect(await counted(store)).toEqual([]);
    const mixed = [acquired(OLD, 7), change(bucketItem(OLD), undefined), acquired(NEW, 3)];
    expect((await aggregator.process(mixed)).counters.snapshots).toBe(1);
    expect(await counted(store)).toEqual([3]);
    expect((await aggregator.process(mixed)).counters.snapshots).toBe(0);
    expect(await counted(store)).toEqual([3]);
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("records from before a deletion are removed again when it happens while they are written", async () => {
    const { aggregator, store } = racing(MARK);
    const { failedIds } = await aggregator.process([acquired(OLD, 5)]);
    expect(failedIds).toEqual([]);
    expect(await counted(store)).toEqual([]);
  });

  test("records from before a deletion are removed while later ones in the same snapshot stay", async () => {
    const { aggregator, store } = racing(MARK);
    await aggregator.process([acquired(OLD, 5), acquired(NEW, 2)]);
    expect(await counted(store)).toEqual([2]);
  });

  test("records from before a deletion are removed by the next delivery when the process dies", async () => {
    const { aggregator, store } = racing(MARK);
    store.dies = true;
    const batch = [acquired(OLD, 5)];
    const { failedIds } = await aggregator.process(batch);
    expect(failedIds).toEqual(batch.map(({ id }) => id));
    expect(await counted(store)).toEqual([5]);
    await aggregator.process(batch);
    expect(await counted(store)).toEqual([]);
  });

  test("records of a shard that lags do not remove what other shards have counted since", async () => {
    const { aggregator, store } = aggregatorOver({ windows: ["hourly"] });
    await store.put(MARK);
    await aggregator.process([acquired({ ...NEW, shard: 1 }, 4)]);
    await aggregator.process([acquired({ ...OLD, shard: 0 }, 9)]);
    expect(await counted(store)).toEqual([4]);
  });

  test("records from before a deletion do not refill the bucket that was created after it", async () => {
    const { aggregator, store } = aggregatorOver({ nowMs: AT + 60_000 });
    await store.put(MARK);
    const item = bucketItem({ ...OLD, tc: { tpm: 9_000_000 }, tk: { tpm: 1 } });
    await store.put(item);
    const { counters } = await aggregator.process([change(undefined, item)]);
    expect(counters).toMatchObject({ refills: 0, splits: 0, snapshots: 0 });
  });
});

describe("records of a namespace that is purged", () => {
  test("write nothing, however new they are", async () => {
    const { aggregator, store } = aggregatorOver();
    await store.put(namespaceMark(NAMESPACE, AT));
    await aggregator.process([acquired({ rf: AT + 3_600_000 }, 5)]);
    expect(await counted(store)).toEqual([]);
  });

  test("records of a namespace that is purged remove the bucket that a client created after the purge", async () => {
    const { aggregator, store } = aggregatorOver();
    const item = bucketItem({ ...NEW, tc: { tpm: 1000 } });
    await store.writeMany({ puts: [namespaceMark(NAMESPACE, AT), item] });
    await aggregator.process([change(undefined, item)]);
    expect(await store.get(item)).toBeUndefined();
  });

  test("records of a purged namespace are removed again when the purge begins while they are written", async () => {
    const { aggregator, store } = racing(namespaceMark(NAMESPACE, AT));
    await aggregator.process([acquired(OLD, 5), acquired(NEW, 2)]);
    expect(await counted(store)).toEqual([]);
  });
});

test("records after a deletion need no more writes than records without one", async () => {
  const writes: number[] = [];
  for (const mark of [undefined, MARK]) {
    const { aggregator, store } = aggregatorOver({ windows: ["hourly"] });
    if (mark !== undefined) await store.put(mark);
    const { update, transact } = store;
    let count = 0;
    Object.assign(store, {
      update: (...given: Parameters<typeof update>) => {
        count += 1;
        return update.apply(store, given);
      },
      transact: (...given: Parameters<typeof transact>) => {
        count += 1;
        return transact.apply(store, given);
      },
    });
    await aggregator.process([acquired(NEW, 7)]);
    writes.push(count);
    expect(await counted(store)).toEqual([7]);
  }
  expect(writes[1]).toBe(writes[0]);
});
