/** Transactions: all or nothing, and the condition that failed. */

import {
  ITEM_ABSENT,
  ITEM_EXISTS,
  TRANSACT_MAX,
  type Write,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { padded, range, type Subject } from "./subject.ts";

export function transactionsContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  const manyPuts = (count: number): { PK: string; SK: string; at: number }[] => {
    const PK = subject.partition();
    return range(count).map((at) => ({ PK, SK: padded(at), at }));
  };

  test("all kinds of writes are applied together", async () => {
    const { put, updated, deleted, checked, writes } = await subject.eachKindOfWrite();
    const result = await subject.store.transact(writes);
    expect(result).toStrictEqual({ ok: true });
    const keys = [put, updated, deleted, checked];
    expect(await subject.readMany(keys)).toStrictEqual([
      put,
      { ...updated, n: 11 },
      undefined,
      checked,
    ]);
  });

  test("a transaction whose conditions pass is written", async () => {
    const [updated, deleted] = [await subject.stored({ n: 1 }), await subject.stored({ n: 2 })];
    const put = { ...subject.key(), n: 4 };
    const result = await subject.store.transact([
      { put, condition: [ITEM_ABSENT] },
      {
        update: updated,
        change: { add: { n: 10 } },
        condition: [ITEM_EXISTS, { is: "<=", name: "n", value: 1 }],
      },
      { delete: deleted, condition: [{ is: "=", name: "n", value: 2 }] },
    ]);
    expect(result).toStrictEqual({ ok: true });
    expect((await subject.read(updated))?.n).toBe(11);
    expect(await subject.read(deleted)).toBeUndefined();
  });

  test("one failed condition undoes all, and says what is stored", async () => {
    const [updated, deleted] = [await subject.stored({ n: 1 }), await subject.stored({ n: 2 })];
    const put = { ...subject.key(), n: 4 };
    const result = await subject.store.transact([
      { put },
      { update: updated, change: { add: { n: 10 } }, condition: [ITEM_ABSENT] },
      { delete: deleted },
    ]);
    expect(result).toStrictEqual({ ok: false, failures: new Map([[1, { item: updated }]]) });
    const keys = [put, updated, deleted];
    expect(await subject.readMany(keys)).toStrictEqual([undefined, updated, deleted]);
  });

  test("each failed condition is named by its place", async () => {
    const [a, b, c, d] = [
      await subject.stored({ n: 0 }),
      await subject.stored({ n: 1 }),
      await subject.stored({ n: 2 }),
      await subject.stored({ n: 3 }),
    ];
    const missing = subject.key();
    const no = [{ is: "=", name: "n", value: -1 }] as const;
    const result = await subject.store.transact([
      { put: { ...a, n: 10 }, condition: no },
      { update: b, change: { add: { n: 10 } } },
      { delete: c, condition: no },
      { check: d, condition: no },
      { update: missing, change: { add: { n: 1 } }, condition: [ITEM_EXISTS] },
      { check: subject.key(), condition: [ITEM_ABSENT] },
    ]);
    expect(result).toStrictEqual({
      ok: false,
      failures: new Map([
        [0, { item: a }],
        [2, { item: c }],
        [3, { item: d }],
        [4, { item: undefined }],
      ]),
    });
    expect(await subject.store.getMany([a, b, c, d, missing], { consistent: true })).toStrictEqual([
      a,
      b,
      c,
      d,
      undefined,
    ]);
  });

  test("a check writes nothing", async () => {
    const item = await subject.stored({ n: 1 });
    const missing = subject.key();
    const result = await subject.store.transact([
      { check: item, condition: [{ is: "=", name: "n", value: 1 }] },
      { check: missing, condition: [ITEM_ABSENT] },
    ]);
    expect(result).toStrictEqual({ ok: true });
    expect(await subject.read(item)).toStrictEqual(item);
    expect(await subject.read(missing)).toBeUndefined();
  });

  test("a failed check keeps the others from being written", async () => {
    const put = { ...subject.key(), n: 1 };
    const result = await subject.store.transact([
      { put },
      { check: subject.key(), condition: [ITEM_EXISTS] },
    ]);
    expect(result).toStrictEqual({ ok: false, failures: new Map([[1, { item: undefined }]]) });
    expect(await subject.read(put)).toBeUndefined();
  });

  test("a transaction with nothing to do is done", async () => {
    expect(await subject.store.transact([])).toStrictEqual({ ok: true });
  });

  test("one write is a transaction too", async () => {
    const item = await subject.stored({ n: 1 });
    const update: Write = { update: item, change: { add: { n: 1 } }, condition: [ITEM_EXISTS] };
    expect(await subject.store.transact([update])).toStrictEqual({ ok: true });
    expect(await subject.read(item)).toStrictEqual({ ...item, n: 2 });
  });

  test("an update creates the item, a delete needs none, an empty change is one", async () => {
    const [updated, deleted, touched] = [subject.key(), subject.key(), subject.key()];
    const result = await subject.store.transact([
      { update: updated, change: { add: { n: 1 }, addToSet: { s: ["a"] } }, condition: [] },
      { delete: deleted },
      { update: touched, change: {} },
    ]);
    expect(result).toStrictEqual({ ok: true });
    expect(await subject.read(updated)).toStrictEqual({ ...updated, n: 1, s: new Set(["a"]) });
    expect(await subject.read(touched)).toStrictEqual(touched);
  });

  test(`${TRANSACT_MAX} writes are allowed`, async () => {
    const items = manyPuts(TRANSACT_MAX);
    const result = await subject.store.transact(items.map((put) => ({ put })));
    expect(result).toStrictEqual({ ok: true });
    expect(await subject.readMany(items)).toStrictEqual(items);
  });

  test("the last of many can be the one in the way", async () => {
    const items = manyPuts(TRANSACT_MAX);
    const last = items[TRANSACT_MAX - 1] as (typeof items)[number];
    await subject.store.put(last);
    const writes = items.map((put) => ({ put, condition: [ITEM_ABSENT] }));
    expect(await subject.store.transact(writes)).toStrictEqual({
      ok: false,
      failures: new Map([[TRANSACT_MAX - 1, { item: last }]]),
    });
    const found = await subject.readMany(items);
    expect(found.filter((item) => item !== undefined)).toStrictEqual([last]);
  });

  test("a transaction with more writes than that is refused", async () => {
    const items = manyPuts(TRANSACT_MAX + 1);
    const call = subject.store.transact(items.map((put) => ({ put })));
    await subject.expectRefused(call);
    const found = await subject.readMany(items);
    expect(found.every((item) => item === undefined)).toBe(true);
  });

  test("two writes to one item are refused", async () => {
    const item = { ...subject.key(), n: 1 };
    const twice = (write: Write) => subject.store.transact([{ put: item }, write]);
    await subject.expectRefused(twice({ put: item }));
    await subject.expectRefused(twice({ update: item, change: {} }));
    await subject.expectRefused(twice({ delete: item }));
    await subject.expectRefused(twice({ check: item, condition: [ITEM_ABSENT] }));
    expect(await subject.read(item)).toBeUndefined();
  });

  test("items whose keys only look alike may be written together", async () => {
    const prefix = subject.partition();
    const items = [
      { PK: `${prefix}a`, SK: "bc" },
      { PK: `${prefix}ab`, SK: "c" },
    ];
    const writes = items.map((put) => ({ put }));
    expect(await subject.store.transact(writes)).toStrictEqual({ ok: true });
    await subject.store.writeMany({ puts: items });
    expect(await subject.store.getMany(items, { snapshot: true })).toStrictEqual(items);
  });

  test("a token makes a repetition harmless", async () => {
    const [one, other] = [subject.key(), subject.key()];
    const token = subject.token();
    const writes: Write[] = [
      { update: one, change: { add: { n: 5 } } },
      { update: other, change: { add: { n: -5 } } },
    ];
    for (const _ of range(3)) {
      expect(await subject.store.transact(writes, { token })).toStrictEqual({ ok: true });
    }
    expect((await subject.read(one))?.n).toBe(5);
    expect((await subject.read(other))?.n).toBe(-5);
    await subject.store.transact(writes, { token: subject.token() });
    await subject.store.transact(writes);
    expect((await subject.read(one))?.n).toBe(15);
  });

  test("a repetition is harmless when its condition would not hold any more", async () => {
    const item = { ...subject.key(), n: 1 };
    const token = subject.token();
    const writes: Write[] = [{ put: item, condition: [ITEM_ABSENT] }];
    expect(await subject.store.transact(writes, { token })).toStrictEqual({ ok: true });
    expect(await subject.store.transact(writes, { token })).toStrictEqual({ ok: true });
  });

  test("a transaction that failed may be tried again under its token", async () => {
    const key = subject.key();
    const token = subject.token();
    const writes: Write[] = [
      { update: key, change: { add: { n: 1 } }, condition: [{ is: ">=", name: "n", value: 1 }] },
    ];
    expect((await subject.store.transact(writes, { token })).ok).toBe(false);
    await subject.store.put({ ...key, n: 1 });
    expect((await subject.store.transact(writes, { token })).ok).toBe(true);
    expect((await subject.read(key))?.n).toBe(2);
  });
}
