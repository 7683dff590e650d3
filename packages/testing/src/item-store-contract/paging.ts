/** Paging: large partitions come page by page, and a query can be continued where it ended. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Query } from "@zae-limiter/limiter/storage/item-store.ts";
import { padded, range, type Subject } from "./subject.ts";

/** 60 items of 20 KB are more than the megabyte that DynamoDB reads at once. */
const LARGE = 60;
const LARGE_BYTES = 20_000;

export function pagingContract(subject: Subject): void {
  const { beforeAll, describe, expect, test, testEach } = subject.cases;
  describe("large items", () => {
    let partition: string;
    const sort = (at: number) => `item#${padded(at)}`;

    beforeAll(async () => {
      partition = subject.partition();
      const text = "x".repeat(LARGE_BYTES);
      const puts = range(LARGE).map((at) => ({
        PK: partition,
        SK: sort(at),
        GSI1PK: partition,
        GSI1SK: sort(at),
        GSI2PK: partition,
        GSI2SK: sort(at),
        text,
      }));
      await subject.store.writeMany({ puts });
    });

    const places = async (query: Partial<Query>): Promise<string[]> =>
      (await subject.find({ partition, ...query })).map((item) => item.SK);

    testEach([undefined, "GSI1", "GSI2"] as const)(
      "all pages of %s are read in order",
      async (index) => {
        const expected = range(LARGE).map(sort);
        const where = index === undefined ? { consistent: true } : { index };
        expect(await places(where)).toStrictEqual(expected);
        expect(await places({ ...where, descending: true })).toStrictEqual(expected.toReversed());
        expect(await places({ ...where, limit: 55 })).toStrictEqual(expected.slice(0, 55));
        expect(await places({ ...where, sort: { from: sort(3) } })).toStrictEqual(
          expected.slice(3),
        );
        expect(await places({ ...where, sort: { beginsWith: "item#0005" } })).toStrictEqual(
          expected.slice(50),
        );
      },
    );

    test("an iteration can be broken off", async () => {
      const seen: string[] = [];
      for await (const item of subject.store.query({ partition, consistent: true })) {
        seen.push(item.SK);
        if (seen.length === 3) break;
      }
      expect(seen).toStrictEqual(range(3).map(sort));
    });

    test("two iterations do not disturb each other", async () => {
      const query = () => subject.store.query({ partition, consistent: true, limit: 58 });
      const other = query()[Symbol.asyncIterator]();
      const seen: string[] = [];
      for await (const item of query()) {
        seen.push(item.SK);
        expect((await other.next()).value?.SK).toBe(item.SK);
      }
      expect(seen).toHaveLength(58);
      expect((await other.next()).done).toBe(true);
    });
  });

  describe("continuing", () => {
    let partition: string;

    beforeAll(async () => {
      partition = subject.partition();
      // Items in threes share the sort key of the indexes, so that pages end between equals.
      const puts = range(subject.many).map((at) => ({
        PK: at % 2 === 0 ? partition : `${partition}#other`,
        SK: padded(at),
        GSI1PK: partition,
        GSI1SK: `at#${padded(Math.floor(at / 3))}`,
        GSI3PK: partition,
        GSI3SK: `at#${padded(Math.floor(at / 3))}`,
        text: `text ${at}`,
      }));
      await subject.store.writeMany({ puts });
    });

    const inSteps = async (query: Query, step: number, after: (item: Item) => Item) => {
      const pages: Item[][] = [];
      let last: Item | undefined;
      do {
        const start = last === undefined ? {} : { after: after(last) };
        const page = await subject.find({ ...query, limit: step, ...start });
        pages.push(page);
        last = page.at(-1);
      } while (last !== undefined);
      return pages.flat();
    };

    testEach([{ descending: false }, { descending: true }])(
      "after an item, nothing is missed or repeated: %j",
      async (direction) => {
        const query = { partition, consistent: true, ...direction };
        const expected = await subject.find(query);
        expect(expected).toHaveLength(Math.ceil(subject.many / 2));
        const keys = ({ PK, SK }: Item) => ({ PK, SK });
        expect(await inSteps(query, 7, (item) => item)).toStrictEqual(expected);
        expect(await inSteps(query, 11, keys)).toStrictEqual(expected);
        const ranged = { ...query, sort: { beginsWith: "0000" } };
        const within = expected.filter((item) => item.SK.startsWith("0000"));
        expect(await inSteps(ranged, 2, (item) => item)).toStrictEqual(within);
        const between = { ...query, sort: { from: "00003", to: "00020" } };
        const inside = expected.filter((item) => item.SK >= "00003" && item.SK <= "00020");
        expect(await inSteps(between, 2, (item) => item)).toStrictEqual(inside);
      },
    );

    testEach([
      { index: "GSI1", descending: false },
      { index: "GSI1", descending: true },
      { index: "GSI3", descending: false },
      { index: "GSI3", descending: true },
    ] as const)("continuing in an index misses and repeats nothing: %j", async (where) => {
      const query = { partition, ...where };
      const expected = await subject.find(query);
      expect(new Set(expected.map((item) => item.SK)).size).toBe(subject.many);
      const sorts = expected.map((item) => item[`${where.index}SK`] as string);
      const ordered = sorts.toSorted();
      expect(sorts).toStrictEqual(where.descending ? ordered.toReversed() : ordered);
      const [partitionName, sortName] = [`${where.index}PK`, `${where.index}SK`] as const;
      const keys = (item: Item): Item => ({
        PK: item.PK,
        SK: item.SK,
        [partitionName]: item[partitionName] as string,
        [sortName]: item[sortName] as string,
      });
      expect(await inSteps(query, 7, (item) => item)).toStrictEqual(expected);
      expect(await inSteps(query, 11, keys)).toStrictEqual(expected);
    });

    test("a query continues after an item that is gone by now", async () => {
      const PK = subject.partition();
      const items = range(4).map((at) => ({ PK, SK: padded(at), GSI1PK: PK, GSI1SK: padded(at) }));
      await subject.store.writeMany({ puts: items });
      const after = items[1] as Item;
      await subject.store.delete(after);
      const query = { partition: PK, after };
      expect(await subject.find({ ...query, consistent: true })).toStrictEqual(items.slice(2));
      expect(await subject.find({ ...query, index: "GSI1" })).toStrictEqual(items.slice(2));
      expect(await subject.find({ ...query, index: "GSI1", descending: true })).toStrictEqual(
        items.slice(0, 1),
      );
    });

    test("a query continues after an item that is not in the range", async () => {
      const PK = subject.partition();
      const items = range(6).map((at) => ({ PK, SK: padded(at), GSI1PK: PK, GSI1SK: padded(at) }));
      await subject.store.writeMany({ puts: items });
      const sort = { from: padded(2), to: padded(3) };
      const inside = items.slice(2, 4);
      for (const where of [{}, { index: "GSI1" }] as const) {
        const find = (after: Item | undefined, descending: boolean) =>
          subject.find({
            partition: PK,
            sort,
            descending,
            ...where,
            after: after as Item,
          });
        expect(await find(items[0], false)).toStrictEqual(inside);
        expect(await find(items[5], false)).toStrictEqual([]);
        expect(await find(items[5], true)).toStrictEqual(inside.toReversed());
        expect(await find(items[0], true)).toStrictEqual([]);
        // At the ends of the range, too.
        expect(await find(items[1], false)).toStrictEqual(inside);
        expect(await find(items[3], false)).toStrictEqual([]);
        expect(await find(items[4], true)).toStrictEqual(inside.toReversed());
        expect(await find(items[2], true)).toStrictEqual([]);
      }
    });

    test("after the last item there is nothing", async () => {
      const last = await subject.find({ partition, descending: true, limit: 1 });
      const query = { partition, after: last[0] as Item };
      expect(await subject.find(query)).toStrictEqual([]);
    });

    test("items may be deleted while a query goes over them", async () => {
      const PK = subject.partition();
      const items = range(40).map((at) => ({ PK, SK: padded(at) }));
      await subject.store.writeMany({ puts: items });
      const seen: string[] = [];
      for await (const item of subject.store.query({ partition: PK, consistent: true })) {
        seen.push(item.SK);
        await subject.store.delete(item);
      }
      expect(seen).toStrictEqual(items.map((item) => item.SK));
      expect(await subject.find({ partition: PK, consistent: true })).toStrictEqual([]);
    });
  });
}
