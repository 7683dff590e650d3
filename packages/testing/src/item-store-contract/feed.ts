/** The feed of changes: every change once, in order per item, with the item before and after. */

import { type Item, type Key, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import {
  type ChangeRecord,
  type ChangesOptions,
  ITEM_ABSENT,
  ITEM_EXISTS,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { collect, padded, range, type Subject } from "./subject.ts";

type Images = [before: Item | undefined, after: Item | undefined];

function images({ before, after }: ChangeRecord): Images {
  return [before, after];
}

export function feedContract(subject: Subject): void {
  const { beforeAll, describe, expect, test, testUnless } = subject.cases;
  /** Reads the first `count` records of items in these partitions. */
  const take = async (
    count: number,
    partitions: readonly string[],
    from: ChangesOptions["from"],
  ): Promise<ChangeRecord[]> => {
    const found: ChangeRecord[] = [];
    if (from === undefined) throw new Error("A feed from now on must be attached first");
    const signal = subject.guard();
    for await (const record of subject.store.changes({ from, signal })) {
      if (partitions.includes(record.key.PK)) found.push(record);
      if (found.length === count) break;
    }
    return found;
  };

  /**
   * Follows the feed from now on. A feed over a network is attached some time after the call, so
   * markers are written until one comes through.
   */
  const attach = async () => {
    const marker = subject.key();
    const signal = subject.guard();
    const feed = subject.store.changes({ signal })[Symbol.asyncIterator]();
    let attached = false;
    const first = feed.next().then((result) => {
      attached = true;
      return result;
    });
    while (!attached) {
      await subject.store.update(marker, { add: { n: 1 } });
      await subject.pause();
    }
    return { feed, first: await first };
  };

  /** Returns the images of an item in its first changes. */
  const imagesOf = async (count: number, { PK }: Key) =>
    (await take(count, [PK], start)).map(images);

  /** Position at which tests start to read; a feed from there is deterministic on every store. */
  let start: { readonly after: string };
  beforeAll(async () => {
    const { feed, first } = await attach();
    start = { after: (first.value as ChangeRecord).position };
    await feed.return?.();
  });

  test("an item's life in order, with both images", async () => {
    const key = subject.key();
    const inserted = { ...key, n: 1, tags: new Set(["a"]) };
    await subject.store.put(inserted);
    const { item: updated } = await subject.store.update(key, { add: { n: 1 }, remove: ["tags"] });
    const replaced = { ...key, text: "new" };
    await subject.store.put(replaced);
    await subject.store.delete(key);
    await subject.store.put(inserted);
    expect(await imagesOf(5, key)).toStrictEqual([
      [undefined, inserted],
      [inserted, updated],
      [updated, replaced],
      [replaced, undefined],
      [undefined, inserted],
    ]);
  });

  test("each record has its key and position, and says that no item has expired", async () => {
    const key = subject.key();
    for (const n of range(3)) await subject.store.put({ ...key, n });
    const records = await take(3, [key.PK], start);
    expect(records.map((record) => record.key)).toStrictEqual([key, key, key]);
    expect(records.map((record) => record.expired)).toStrictEqual([false, false, false]);
    expect(new Set(records.map((record) => record.shard)).size).toBe(1);
    const sequences = records.map((record) => BigInt(record.sequence));
    expect(sequences).toStrictEqual(sequences.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(sequences).size).toBe(3);
    expect(new Set(records.map((record) => record.position)).size).toBe(3);
    for (const { atMs } of records) expect(Number.isSafeInteger(atMs)).toBe(true);
    const times = records.map((record) => record.atMs);
    expect(times).toStrictEqual(times.toSorted((a, b) => a - b));
  });

  test("what changed nothing does not appear", async () => {
    const key = subject.key();
    const never = [{ is: "=", name: "n", value: -1 }] as const;
    await subject.store.delete(key);
    await subject.store.put({ ...key, n: 1 }, [ITEM_EXISTS]);
    await subject.store.put({ ...key, n: 1 });
    await subject.store.put({ ...key, n: 2 }, [ITEM_ABSENT]);
    await subject.store.update(key, { set: { n: 3 } }, never);
    await subject.store.delete(key, never);
    await subject.store.transact([
      { update: key, change: { set: { n: 4 } } },
      { check: subject.key(), condition: [ITEM_EXISTS] },
    ]);
    await subject.store.transact([{ check: key, condition: [ITEM_EXISTS] }]);
    await subject.store.update(key, { set: { n: 5 } });
    expect(await imagesOf(2, key)).toStrictEqual([
      [undefined, { ...key, n: 1 }],
      [
        { ...key, n: 1 },
        { ...key, n: 5 },
      ],
    ]);
  });

  const changing = testUnless(subject.options.unchangedAppear);
  changing("a write that leaves the item as it was does not appear", async () => {
    const item = await subject.stored({ n: 1, map: { list: ["a"] }, set: new Set(["x", "y"]) });
    await subject.store.put(item);
    await subject.store.update(item, { set: { n: 1 }, addToSet: { set: ["x"] } });
    await subject.store.update(item, { add: { n: 0 }, remove: ["none"] });
    await subject.store.update(item, {});
    await subject.store.update(item, { add: { n: 1 } });
    expect(await imagesOf(2, item)).toStrictEqual([
      [undefined, item],
      [item, { ...item, n: 2 }],
    ]);
  });

  test("transactions appear, once, without their checks", async () => {
    const { put, updated, deleted, checked, writes } = await subject.eachKindOfWrite();
    const token = subject.token();
    for (const _ of range(2)) await subject.store.transact(writes, { token });
    const last = (key: Key) => ({ ...keyOf(key), last: true });
    for (const key of [put, updated, deleted, checked]) await subject.store.put(last(key));
    expect(await imagesOf(2, put)).toStrictEqual([
      [undefined, put],
      [put, last(put)],
    ]);
    expect(await imagesOf(3, updated)).toStrictEqual([
      [undefined, updated],
      [updated, { ...updated, n: 11 }],
      [{ ...updated, n: 11 }, last(updated)],
    ]);
    expect(await imagesOf(3, deleted)).toStrictEqual([
      [undefined, deleted],
      [deleted, undefined],
      [undefined, last(deleted)],
    ]);
    expect(await imagesOf(2, checked)).toStrictEqual([
      [undefined, checked],
      [checked, last(checked)],
    ]);
  });

  test("batches appear in the feed", async () => {
    const PK = subject.partition();
    const items = range(30).map((at) => ({ PK, SK: padded(at), at }));
    await subject.store.writeMany({ puts: items });
    await subject.store.writeMany({ deletes: items.slice(0, 5) });
    const records = await take(35, [PK], start);
    const bySort = (a: Item, b: Item) => (a.SK < b.SK ? -1 : 1);
    const inserted = records.flatMap(({ after }) => (after === undefined ? [] : [after]));
    expect(inserted.toSorted(bySort)).toStrictEqual(items);
    const removed = records.flatMap(({ before }) => (before === undefined ? [] : [before]));
    expect(removed.toSorted(bySort)).toStrictEqual(items.slice(0, 5));
  });

  test("after a position, nothing is missed or repeated", async () => {
    const key = subject.key();
    for (const n of range(10)) await subject.store.put({ ...key, n });
    let from: ChangesOptions["from"] = start;
    const seen: unknown[] = [];
    while (seen.length < 10) {
      const [record] = await take(1, [key.PK], from);
      seen.push(record?.after?.n);
      from = { after: record?.position ?? "" };
    }
    expect(seen).toStrictEqual(range(10));
  });

  test("what is written while the feed is read comes too", async () => {
    const key = subject.key();
    const seen: unknown[] = [];
    await subject.store.put({ ...key, n: 0 });
    const signal = subject.guard();
    for await (const record of subject.store.changes({ from: start, signal })) {
      if (record.key.PK !== key.PK) continue;
      seen.push(record.after?.n);
      if (seen.length === 5) break;
      await subject.store.put({ ...key, n: seen.length });
    }
    expect(seen).toStrictEqual(range(5));
  });

  test("the oldest that is kept comes first on request", async () => {
    const key = subject.key();
    for (const n of range(3)) await subject.store.put({ ...key, n });
    const records = await take(3, [key.PK], "oldest");
    expect(records.map((record) => record.after?.n)).toStrictEqual(range(3));
  });

  test("two readers see the same", async () => {
    const key = subject.key();
    for (const n of range(5)) await subject.store.put({ ...key, n });
    const [one, other] = await Promise.all([take(5, [key.PK], start), take(5, [key.PK], start)]);
    expect(one).toHaveLength(5);
    expect(other).toStrictEqual(one);
  });

  describe("from now on", () => {
    test("a feed from now on sees what comes, and not what was", async () => {
      const key = subject.key();
      await subject.store.put({ ...key, n: 0 });
      const { feed } = await attach();
      await subject.store.put({ ...key, n: 1 });
      await subject.store.delete(key);
      const seen: Images[] = [];
      while (seen.length < 2) {
        const { done, value } = await feed.next();
        if (done === true) break;
        if (value.key.PK === key.PK) seen.push(images(value));
      }
      await feed.return?.();
      expect(seen).toStrictEqual([
        [
          { ...key, n: 0 },
          { ...key, n: 1 },
        ],
        [{ ...key, n: 1 }, undefined],
      ]);
    });
  });

  test("a feed that waits can be broken off", async () => {
    const feed = subject.store.changes()[Symbol.asyncIterator]();
    const next = feed.next();
    await feed.return?.();
    expect((await next).done).toBe(true);
    expect((await feed.next()).done).toBe(true);
  });

  describe("the signal", () => {
    test("the signal ends a feed that waits", async () => {
      const controller = new AbortController();
      const all = collect(subject.store.changes({ signal: controller.signal }));
      controller.abort();
      expect(Array.isArray(await all)).toBe(true);
    });

    test("the signal ends a feed that was attached", async () => {
      const key = subject.key();
      await subject.store.put({ ...key, n: 1 });
      const controller = new AbortController();
      const seen: ChangeRecord[] = [];
      const { signal } = controller;
      for await (const record of subject.store.changes({ from: start, signal })) {
        seen.push(record);
        controller.abort();
      }
      expect(seen).toHaveLength(1);
    });

    test("the signal ends a feed before it begins", async () => {
      const signal = AbortSignal.abort();
      expect(await collect(subject.store.changes({ signal, from: "oldest" }))).toStrictEqual([]);
    });
  });
}
