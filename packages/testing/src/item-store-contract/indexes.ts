/** Indexes: which items are in them, under which keys, and what they copy. */

import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import type { Query } from "@zae-limiter/limiter/storage/item-store.ts";
import { INDEX_NAMES } from "@zae-limiter/limiter/storage/table.ts";
import type { Subject } from "./subject.ts";

export function indexesContract(subject: Subject): void {
  const { expect, test, describeEach } = subject.cases;
  describeEach(INDEX_NAMES)("%s", (index) => {
    const place = (partition: string, sort: string): Record<string, Value> => ({
      [`${index}PK`]: partition,
      [`${index}SK`]: sort,
    });
    const find = (partition: string, query: Partial<Query> = {}) =>
      subject.find({ index, partition, ...query });
    const keysFound = async (partition: string, query: Partial<Query> = {}) =>
      (await find(partition, query)).map((item) => item.PK);

    test("an index finds items of all partitions in the order of its sort key", async () => {
      const partition = subject.partition();
      const sorts = ["#b", "a", "a#", "a/1", "ab", "b", "\uff5e", "\u{1f600}"];
      const stored: Item[] = [];
      for (const sort of sorts.toReversed()) {
        stored.unshift(await subject.stored({ ...place(partition, sort), size: 1 }));
      }
      const expected = stored.map((item) => item.PK);
      const from = (at: number, to?: number) => expected.slice(at, to);
      expect(await keysFound(partition)).toStrictEqual(expected);
      expect(await keysFound(partition, { descending: true })).toStrictEqual(expected.toReversed());
      expect(await keysFound(partition, { sort: { beginsWith: "a" } })).toStrictEqual(from(1, 5));
      expect(await keysFound(partition, { sort: { from: "a#", to: "b" } })).toStrictEqual(
        from(2, 6),
      );
      expect(await keysFound(partition, { sort: { to: "a" } })).toStrictEqual(from(0, 2));
      expect(await keysFound(partition, { sort: { from: "\uff5e" } })).toStrictEqual(from(6));
      expect(await keysFound(partition, { limit: 3 })).toStrictEqual(from(0, 3));
    });

    test("an index hands out what it copies", async () => {
      const partition = subject.partition();
      const item = await subject.stored({ ...place(partition, "a"), size: 1, GSI9PK: "x" });
      const keys = { PK: item.PK, SK: item.SK, ...place(partition, "a") };
      const found = await find(partition);
      if (index === "GSI1") {
        expect(found).toStrictEqual([item]);
      } else if (index === "GSI2" && subject.options.gsi2Projection === "ALL") {
        expect(found).toMatchObject([keys]);
      } else {
        expect(found).toStrictEqual([keys]);
      }
    });

    test("an index leaves out items without both of its keys", async () => {
      const partition = subject.partition();
      await subject.stored({ [`${index}PK`]: partition });
      await subject.stored({ [`${index}SK`]: "a" });
      await subject.stored({ size: 1 });
      const inside = await subject.stored(place(partition, "a"));
      expect(await keysFound(partition)).toStrictEqual([inside.PK]);
    });

    test("an index follows its keys when they change", async () => {
      const [first, second] = [subject.partition(), subject.partition()];
      const item = await subject.stored({ ...place(first, "a"), size: 1 });
      await subject.store.update(item, { set: { [`${index}SK`]: "b" } });
      expect(await find(first, { sort: { beginsWith: "a" } })).toStrictEqual([]);
      expect(await keysFound(first, { sort: { beginsWith: "b" } })).toStrictEqual([item.PK]);
      await subject.store.update(item, { set: { [`${index}PK`]: second } });
      expect(await find(first)).toStrictEqual([]);
      expect(await keysFound(second)).toStrictEqual([item.PK]);
    });

    test("an index loses an item whose key is removed", async () => {
      const partition = subject.partition();
      const item = await subject.stored({ ...place(partition, "a"), size: 1 });
      await subject.store.update(item, { remove: [`${index}SK`] });
      expect(await find(partition)).toStrictEqual([]);
      await subject.store.update(item, { set: { [`${index}SK`]: "b" } });
      expect(await keysFound(partition)).toStrictEqual([item.PK]);
    });

    test("an index loses an item that is deleted or replaced by one without its keys", async () => {
      const partition = subject.partition();
      const item = await subject.stored(place(partition, "a"));
      const other = await subject.stored(place(partition, "b"));
      const third = await subject.stored(place(partition, "c"));
      await subject.store.delete(item);
      await subject.store.put({ PK: other.PK, SK: other.SK, size: 1 });
      expect(await keysFound(partition)).toStrictEqual([third.PK]);
      await subject.store.writeMany({ deletes: [third] });
      expect(await find(partition)).toStrictEqual([]);
    });

    test("an index follows transactions and batches", async () => {
      const partition = subject.partition();
      const item = await subject.stored(place(partition, "a"));
      const [put, batched] = [subject.key(), subject.key()];
      await subject.store.writeMany({ puts: [{ ...batched, ...place(partition, "c") }] });
      await subject.store.transact([
        { delete: item },
        { put: { ...put, ...place(partition, "b") } },
      ]);
      expect(await keysFound(partition)).toStrictEqual([put.PK, batched.PK]);
    });

    test("an index does not follow a write that was refused", async () => {
      const partition = subject.partition();
      const item = await subject.stored(place(partition, "a"));
      const no = [{ is: "exists", name: "none" }] as const;
      const change = { set: { [`${index}SK`]: "b" } };
      await subject.store.update(item, change, no);
      await subject.store.transact([
        { update: item, change },
        { check: subject.key(), condition: no },
      ]);
      const found = await find(partition);
      expect(found.map((one) => one[`${index}SK`])).toStrictEqual(["a"]);
    });

    test("an index tells partitions apart whose names begin alike", async () => {
      const prefix = subject.partition();
      const partitions = ["", "a", "a#", "a\u0001", "ab"].map((name) => prefix + name);
      for (const partition of partitions) await subject.stored(place(partition, "b"));
      for (const partition of partitions) {
        const found = await find(partition);
        expect(found.map((item) => item[`${index}PK`])).toStrictEqual([partition]);
      }
    });

    test("an index holds items with the same keys side by side", async () => {
      const partition = subject.partition();
      const PK = subject.partition();
      for (const SK of ["a", "b", "c"]) {
        await subject.store.put({ PK, SK, ...place(partition, "same") });
      }
      const found = await find(partition, { sort: { from: "same", to: "same" } });
      expect(found.map((item) => item.SK).toSorted()).toStrictEqual(["a", "b", "c"]);
    });
  });

  test("an item can be in several indexes", async () => {
    const [first, second] = [subject.partition(), subject.partition()];
    const keys = { GSI1PK: first, GSI1SK: "a", GSI4PK: second, GSI4SK: "b" };
    const item = await subject.stored({ ...keys, size: 1 });
    expect(await subject.find({ index: "GSI1", partition: first })).toStrictEqual([item]);
    expect(await subject.find({ index: "GSI4", partition: second })).toStrictEqual([
      { PK: item.PK, SK: item.SK, GSI4PK: second, GSI4SK: "b" },
    ]);
  });
}
