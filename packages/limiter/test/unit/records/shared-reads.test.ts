import { readShared } from "@zae-limiter/limiter/records/shared-reads.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ReadManyOptions } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { expect, test } from "vitest";

const [A, B, C] = ["a", "b", "c"].map((SK) => ({ PK: "ns/ENTITY#1", SK })) as [Key, Key, Key];

/** A store with two items, which writes down what it is asked for. */
async function counted() {
  const items = new MemoryItemStore();
  for (const key of [A, C]) await items.put({ ...key, name: key.SK });
  const asked: { keys: string[]; options: ReadManyOptions }[] = [];
  const getMany = async (keys: readonly Key[], options: ReadManyOptions = {}) => {
    asked.push({ keys: keys.map(({ SK }) => SK), options });
    return items.getMany(keys, options);
  };
  return { store: { getMany }, asked };
}

const names = (items: readonly (Item | undefined)[]) => items.map((item) => item?.name);

test("reads for one bucket at once share a request, each key once, with the longer time", async () => {
  const { store, asked } = await counted();
  const [first, second] = await Promise.all([
    readShared(store, "bucket", [A, B], 100),
    readShared(store, "bucket", [C, A], 300),
  ]);
  expect([names(first), names(second)]).toEqual([
    ["a", undefined],
    ["c", "a"],
  ]);
  expect(asked).toEqual([{ keys: ["a", "b", "c"], options: { consistent: true, timeoutMs: 300 } }]);
});

test("reads for other buckets, and later ones, have requests of their own", async () => {
  const { store, asked } = await counted();
  await Promise.all([readShared(store, "one", [A]), readShared(store, "other", [C], 100)]);
  await readShared(store, "one", [A]);
  expect(asked.map(({ keys, options }) => [keys, options.timeoutMs])).toEqual([
    [["a"], undefined],
    [["c"], 100],
    [["a"], undefined],
  ]);
});

test("a request that fails fails all reads that share it", async () => {
  const failure = new Error("no answer");
  const store = { getMany: () => Promise.reject(failure) };
  const reads = [readShared(store, "bucket", [A]), readShared(store, "bucket", [B])];
  const results = await Promise.allSettled(reads);
  expect(results).toEqual(results.map(() => ({ status: "rejected", reason: failure })));
});
