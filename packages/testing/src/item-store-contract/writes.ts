/** Writing one item: what put, update and delete do, and what they hand out. */

import { ITEM_ABSENT, ITEM_EXISTS, type Test } from "@zae-limiter/limiter/storage/item-store.ts";
import { padded, range, type Subject } from "./subject.ts";

const NEVER: Test = { is: "=", name: "version", value: -1 };

export function writesContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  test("a put stores the item and hands out nothing", async () => {
    const item = { ...subject.key(), size: 1 };
    expect(await subject.store.put(item)).toStrictEqual({ ok: true, item: undefined });
    expect(await subject.read(item)).toStrictEqual(item);
  });

  test("a put replaces the whole item", async () => {
    const item = await subject.stored({ size: 1, color: "red" });
    const next = { PK: item.PK, SK: item.SK, size: 2 };
    expect(await subject.store.put(next)).toStrictEqual({ ok: true, item: undefined });
    expect(await subject.read(item)).toStrictEqual(next);
  });

  test("an item may be nothing but its key", async () => {
    const key = subject.key();
    await subject.store.put(key as typeof key & Record<string, never>);
    expect(await subject.read(key)).toStrictEqual(key);
  });

  test("an update hands out the whole item after it", async () => {
    const item = await subject.stored({ size: 1, color: "red" });
    const after = { ...item, size: 2 };
    const result = await subject.store.update(item, { set: { size: 2 } });
    expect(result).toStrictEqual({ ok: true, item: after });
    expect(await subject.read(item)).toStrictEqual(after);
  });

  test("an update creates the item", async () => {
    const key = subject.key();
    const after = { ...key, size: 2 };
    const result = await subject.store.update(key, { set: { size: 2 } });
    expect(result).toStrictEqual({ ok: true, item: after });
    expect(await subject.read(key)).toStrictEqual(after);
  });

  test("an update with no change creates the item too", async () => {
    const key = subject.key();
    expect(await subject.store.update(key, {})).toStrictEqual({ ok: true, item: key });
    expect(await subject.read(key)).toStrictEqual(key);
  });

  test("a delete hands out the item before it", async () => {
    const item = await subject.stored({ size: 1 });
    expect(await subject.store.delete(item)).toStrictEqual({ ok: true, item });
    expect(await subject.read(item)).toBeUndefined();
  });

  test("deleting what is not there is fine", async () => {
    const key = subject.key();
    expect(await subject.store.delete(key)).toStrictEqual({ ok: true, item: undefined });
  });

  test("a key may be given as a whole item", async () => {
    const item = await subject.stored({ size: 1, color: "red" });
    expect(await subject.store.get(item, { consistent: true })).toStrictEqual(item);
    expect((await subject.store.update(item, { add: { size: 1 } })).item).toStrictEqual({
      ...item,
      size: 2,
    });
    expect((await subject.store.delete(item)).ok).toBe(true);
  });

  test("an update with a whole item as its key creates only the key", async () => {
    const item = { ...subject.key(), size: 1 };
    const after = { PK: item.PK, SK: item.SK, color: "red" };
    const result = await subject.store.update(item, { set: { color: "red" } });
    expect(result).toStrictEqual({ ok: true, item: after });
    expect(await subject.read(item)).toStrictEqual(after);
  });

  test("a write whose condition passes answers like one without", async () => {
    const item = { ...subject.key(), size: 1 };
    const put = await subject.store.put(item, [ITEM_ABSENT]);
    expect(put).toStrictEqual({ ok: true, item: undefined });
    const after = { ok: true, item: { ...item, size: 2 } };
    const updated = await subject.store.update(item, { add: { size: 1 } }, [ITEM_EXISTS]);
    expect(updated).toStrictEqual(after);
    expect(await subject.store.delete(item, [ITEM_EXISTS])).toStrictEqual(after);
  });

  test("a failed condition carries the stored item and changes nothing", async () => {
    const item = await subject.stored({ version: 1, tags: new Set(["a"]) });
    const refused = { ok: false, item };
    expect(await subject.store.put({ ...item, version: 2 }, [NEVER])).toStrictEqual(refused);
    expect(await subject.store.update(item, { set: { version: 2 } }, [NEVER])).toStrictEqual(
      refused,
    );
    expect(await subject.store.delete(item, [NEVER])).toStrictEqual(refused);
    expect(await subject.read(item)).toStrictEqual(item);
  });

  test("a failed condition on no item carries none and creates none", async () => {
    const key = subject.key();
    const refused = { ok: false, item: undefined };
    expect(await subject.store.put({ ...key, version: 2 }, [NEVER])).toStrictEqual(refused);
    expect(await subject.store.update(key, { set: { version: 2 } }, [NEVER])).toStrictEqual(
      refused,
    );
    expect(await subject.store.delete(key, [ITEM_EXISTS])).toStrictEqual(refused);
    expect(await subject.read(key)).toBeUndefined();
  });

  test("a failed condition is the answer even where the change would not fit", async () => {
    const item = await subject.stored({ text: "a" });
    const change = { add: { text: 1 } };
    expect(await subject.store.update(item, change, [NEVER])).toStrictEqual({ ok: false, item });
    expect(
      await subject.store.transact([{ update: item, change, condition: [NEVER] }]),
    ).toStrictEqual({ ok: false, failures: new Map([[0, { item }]]) });
  });

  test("items of many attributes are stored", async () => {
    const attributes = Object.fromEntries(range(300).map((at) => [`b_limit-${at}_tk`, at]));
    const item = await subject.stored(attributes);
    expect(await subject.read(item)).toStrictEqual(item);
    const names = range(100).map((at) => `b_limit-${at}_tk`);
    const change = { add: Object.fromEntries(names.map((name) => [name, -1])) };
    const result = await subject.store.update(
      item,
      change,
      names.slice(0, 50).map((name) => ({ is: ">=", name, value: 0 })),
    );
    const added = Object.fromEntries(names.map((name, at) => [name, at - 1]));
    expect(result).toStrictEqual({ ok: true, item: { ...item, ...added } });
  });

  test("a call may be given little time", async () => {
    const item = await subject.stored({ size: 1 });
    const options = { timeoutMs: 10_000 };
    expect(await subject.store.get(item, { ...options, consistent: true })).toStrictEqual(item);
    expect(await subject.store.getMany([item], { ...options, consistent: true })).toHaveLength(1);
    expect((await subject.store.put(item, undefined, options)).ok).toBe(true);
    expect((await subject.store.update(item, {}, undefined, options)).ok).toBe(true);
    expect((await subject.store.transact([{ put: item }], options)).ok).toBe(true);
    expect((await subject.store.delete(item, undefined, options)).ok).toBe(true);
  });

  test("writes to one item do not touch its neighbours", async () => {
    const PK = subject.partition();
    const items = range(3).map((at) => ({ PK, SK: padded(at), at }));
    for (const item of items) await subject.store.put(item);
    await subject.store.update({ PK, SK: padded(1) }, { set: { at: 10 } });
    await subject.store.delete({ PK, SK: padded(2) });
    expect(await subject.readMany(items)).toStrictEqual([
      items[0],
      { PK, SK: padded(1), at: 10 },
      undefined,
    ]);
  });
}
