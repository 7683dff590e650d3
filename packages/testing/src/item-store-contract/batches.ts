/** Batches: any number of puts and deletes in one call. */

import { padded, range, type Subject } from "./subject.ts";

export function batchesContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  const manyItems = (count: number) => {
    const PK = subject.partition();
    return range(count).map((at) => ({ PK, SK: padded(at), at }));
  };
  const all = (partition: string) => subject.find({ partition, consistent: true });

  test("a batch without writes does nothing", async () => {
    await subject.store.writeMany({});
    await subject.store.writeMany({ puts: [], deletes: [] });
  });

  test("a batch takes more puts than a request of DynamoDB", async () => {
    const items = manyItems(subject.many);
    await subject.store.writeMany({ puts: items });
    expect(await all((items[0] as { PK: string }).PK)).toStrictEqual(items);
  });

  test("puts replace whole items", async () => {
    const item = await subject.stored({ old: 1 });
    const next = { PK: item.PK, SK: item.SK, next: 1 };
    await subject.store.writeMany({ puts: [next] });
    expect(await subject.read(item)).toStrictEqual(next);
  });

  test("a batch takes more deletes than a request, given as whole items", async () => {
    const items = manyItems(60);
    const PK = (items[0] as { PK: string }).PK;
    await subject.store.writeMany({ puts: items });
    await subject.store.writeMany({ deletes: items.slice(0, 55) });
    expect(await all(PK)).toStrictEqual(items.slice(55));
  });

  test("a batch may delete items that do not exist", async () => {
    const item = await subject.stored({ n: 1 });
    await subject.store.writeMany({ deletes: [subject.key(), item, subject.key()] });
    expect(await subject.read(item)).toBeUndefined();
  });

  test("a batch takes puts and deletes together", async () => {
    const items = manyItems(60);
    const PK = (items[0] as { PK: string }).PK;
    await subject.store.writeMany({ puts: items.slice(0, 30) });
    const replaced = items.slice(0, 10).map((item) => ({ ...item, at: -1 }));
    await subject.store.writeMany({
      puts: [...replaced, ...items.slice(30)],
      deletes: items.slice(10, 30),
    });
    expect(await all(PK)).toStrictEqual([...replaced, ...items.slice(30)]);
  });

  test("a batch takes large items", async () => {
    // 25 items of 350 KB are within what a request may carry in number, but not each in size.
    const items = manyItems(25).map((item) => ({ ...item, text: "x".repeat(350_000) }));
    await subject.store.writeMany({ puts: items });
    const found = await subject.readMany(items);
    expect(found.map((item) => item?.at)).toStrictEqual(range(25));
  });
}
