/** Reading by key: one item, many, and many as of one moment. */

import { TRANSACT_MAX } from "@zae-limiter/limiter/storage/item-store.ts";
import { padded, range, type Subject } from "./subject.ts";

export function readsContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  test("an item that is not there is undefined", async () => {
    expect(await subject.store.get(subject.key())).toBeUndefined();
  });

  test("a consistent read sees the write before it", async () => {
    const item = await subject.stored({ size: 1 });
    expect(await subject.store.get(item, { consistent: true })).toStrictEqual(item);
  });

  test("the sort key belongs to the key", async () => {
    const PK = subject.partition();
    await subject.store.put({ PK, SK: "one", at: 1 });
    await subject.store.put({ PK, SK: "two", at: 2 });
    expect(await subject.read({ PK, SK: "one" })).toStrictEqual({ PK, SK: "one", at: 1 });
    expect(await subject.read({ PK, SK: "two" })).toStrictEqual({ PK, SK: "two", at: 2 });
    expect(await subject.read({ PK, SK: "on" })).toBeUndefined();
  });

  test("keys that look alike when joined are different keys", async () => {
    const prefix = subject.partition();
    const keys = ["#", "/", "\u0001", "\uffff"].flatMap((mark) => [
      { PK: `${prefix}a${mark}b`, SK: "c" },
      { PK: `${prefix}a`, SK: `b${mark}c` },
      { PK: `${prefix}a${mark}`, SK: "bc" },
    ]);
    const items = keys.map((key, at) => ({ ...key, at }));
    for (const item of items) await subject.store.put(item);
    expect(await subject.readMany(keys)).toStrictEqual(items);
  });

  test("getMany keeps the order of the keys", async () => {
    const items = await Promise.all(range(5).map((at) => subject.stored({ at })));
    const shuffled = [3, 0, 4, 1, 2].map((at) => items[at] as (typeof items)[number]);
    expect(await subject.readMany(shuffled)).toStrictEqual(shuffled);
  });

  test("getMany says undefined where there is no item", async () => {
    const [first, second] = [await subject.stored({ at: 1 }), await subject.stored({ at: 2 })];
    const keys = [subject.key(), first, subject.key(), second, subject.key()];
    const expected = [undefined, first, undefined, second, undefined];
    expect(await subject.readMany(keys)).toStrictEqual(expected);
    expect(await subject.store.getMany(keys, { snapshot: true })).toStrictEqual(expected);
  });

  test("getMany answers a key as often as it is asked for", async () => {
    const [first, second] = [await subject.stored({ at: 1 }), await subject.stored({ at: 2 })];
    const missing = subject.key();
    const keys = [first, missing, second, first, missing, first];
    const expected = [first, undefined, second, first, undefined, first];
    expect(await subject.readMany(keys)).toStrictEqual(expected);
    expect(await subject.store.getMany(keys, { snapshot: true })).toStrictEqual(expected);
  });

  test("getMany of nothing is nothing", async () => {
    expect(await subject.store.getMany([])).toStrictEqual([]);
    expect(await subject.store.getMany([], { snapshot: true })).toStrictEqual([]);
  });

  test("getMany takes more keys than a request of DynamoDB", async () => {
    const PK = subject.partition();
    const items = range(30).map((at) => ({ PK, SK: padded(at * 8), at }));
    await subject.store.writeMany({ puts: items });
    const found = await subject.store.getMany(
      range(240).map((at) => ({ PK, SK: padded(at) })),
      { consistent: true },
    );
    expect(found).toHaveLength(240);
    expect(found).toStrictEqual(range(240).map((at) => (at % 8 === 0 ? items[at / 8] : undefined)));
  });

  test("getMany takes more than a response of DynamoDB holds", async () => {
    // 50 items of 350 KB are more than the 16 MB at which DynamoDB leaves keys unprocessed.
    const PK = subject.partition();
    const items = range(50).map((at) => ({ PK, SK: padded(at), text: "x".repeat(350_000) }));
    await subject.store.writeMany({ puts: items });
    const found = await subject.readMany(items);
    expect(found.map((item) => item?.SK)).toStrictEqual(items.map((item) => item.SK));
  });

  test(`a snapshot holds ${TRANSACT_MAX} items`, async () => {
    const PK = subject.partition();
    const items = range(TRANSACT_MAX).map((at) => ({ PK, SK: padded(at), at }));
    await subject.store.writeMany({ puts: items });
    expect(await subject.store.getMany(items, { snapshot: true })).toStrictEqual(items);
  });

  test("a snapshot sees all of a transaction or nothing of it", async () => {
    const [left, right] = [await subject.stored({ n: 0 }), await subject.stored({ n: 0 })];
    const writer = (async () => {
      for (const n of range(15)) {
        const change = { set: { n: n + 1 } };
        await subject.store.transact([
          { update: left, change },
          { update: right, change },
        ]);
      }
    })();
    for (const _ of range(15)) {
      const [one, other] = await subject.store.getMany([left, right], { snapshot: true });
      expect(one?.n).toBe(other?.n);
    }
    await writer;
    const [one] = await subject.store.getMany([left, right], { snapshot: true });
    expect(one?.n).toBe(15);
  });
}
