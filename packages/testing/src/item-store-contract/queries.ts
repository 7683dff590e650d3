/** Queries of the table: one partition, in the order of the sort key, within a range. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Query } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Subject } from "./subject.ts";

/** In the order of their UTF-8 bytes. */
const SORT_KEYS = [
  "!",
  "#CONFIG",
  "#CONFIG#gpt-4",
  "#CONFIG#gpt-4/turbo",
  "#META",
  "#STATE",
  "#USAGE#a#2024-01-01T00:00:00Z",
  "#USAGE#a#2024-01-02T00:00:00Z",
  "/",
  "0",
  "10",
  "9",
  "A",
  "Z",
  "a",
  "a\u0001",
  "a ",
  "a#",
  "aa",
  "ab",
  "b",
  "\u00e9",
  "\u6570",
  "\uff5e",
  "\u{1f600}",
];

export function queriesContract(subject: Subject): void {
  const { expect, test, testEach } = subject.cases;
  const seed = async (sortKeys: readonly string[]): Promise<string> => {
    const PK = subject.partition();
    // Stored from the middle outwards, so that no order comes from the order of writing.
    const shuffled = sortKeys.toSorted((left, right) => hash(left) - hash(right));
    await subject.store.writeMany({ puts: shuffled.map((SK) => ({ PK, SK, text: `at ${SK}` })) });
    return PK;
  };
  const sortKeys = async (query: Query): Promise<string[]> =>
    (await subject.find({ consistent: true, ...query })).map((item) => item.SK);

  test("a query gives whole items in the order of the sort key's bytes", async () => {
    const partition = await seed(SORT_KEYS);
    const found = await subject.find({ partition, consistent: true });
    expect(found).toStrictEqual(SORT_KEYS.map((SK) => ({ PK: partition, SK, text: `at ${SK}` })));
  });

  test("a descending query gives the reverse order", async () => {
    const partition = await seed(SORT_KEYS);
    expect(await sortKeys({ partition, descending: true })).toStrictEqual(SORT_KEYS.toReversed());
    expect(await sortKeys({ partition, descending: false })).toStrictEqual(SORT_KEYS);
  });

  test("a partition that is empty gives nothing", async () => {
    expect(await sortKeys({ partition: subject.partition() })).toStrictEqual([]);
    const partition = subject.partition();
    expect(await sortKeys({ partition, descending: true })).toStrictEqual([]);
    expect(await sortKeys({ partition, sort: { beginsWith: "a" } })).toStrictEqual([]);
  });

  test("partitions whose names begin alike do not leak", async () => {
    const prefix = subject.partition();
    const partitions = ["", "a", "a#", "a\u0001", "aa", "ab", "b"].map((name) => prefix + name);
    for (const PK of partitions) {
      for (const SK of ["a", "b"]) await subject.store.put({ PK, SK });
    }
    for (const partition of partitions) {
      const expected = ["a", "b"].map((SK) => ({ PK: partition, SK }));
      const found = (query: Partial<Query>) =>
        subject.find({ partition, consistent: true, ...query });
      expect(await found({})).toStrictEqual(expected);
      expect(await found({ descending: true })).toStrictEqual(expected.toReversed());
      expect(await found({ sort: { from: "b" } })).toStrictEqual(expected.slice(1));
      expect(await found({ sort: { to: "a" } })).toStrictEqual(expected.slice(0, 1));
      expect(await found({ sort: { beginsWith: "b" } })).toStrictEqual(expected.slice(1));
    }
  });

  testEach(["#", "#CONFIG", "#CONFIG#gpt-4", "a", "0", "\u{1f600}", "none", "!"])(
    "a query finds what begins with %j",
    async (beginsWith) => {
      const partition = await seed(SORT_KEYS);
      const expected = SORT_KEYS.filter((key) => key.startsWith(beginsWith));
      const sort = { beginsWith };
      expect(await sortKeys({ partition, sort })).toStrictEqual(expected);
      expect(await sortKeys({ partition, sort, descending: true })).toStrictEqual(
        expected.toReversed(),
      );
    },
  );

  test("a beginning of nothing is everything", async () => {
    const partition = await seed(["a", "b"]);
    expect(await sortKeys({ partition, sort: { beginsWith: "" } })).toStrictEqual(["a", "b"]);
    expect(await sortKeys({ partition, sort: {} })).toStrictEqual(["a", "b"]);
    expect(await sortKeys({ partition, sort: { from: "" } })).toStrictEqual(["a", "b"]);
  });

  testEach([
    ["#META", undefined],
    [undefined, "#META"],
    ["#CONFIG", "#USAGE#a#2024-01-01T00:00:00Z"],
    ["a", "a"],
    ["a", "aa"],
    ["a\u0001"],
    ["B", "\u00e8"],
    ["\uff5e", undefined],
    [undefined, "\uff5e"],
    ["~~", "~~~"],
  ] as [string | undefined, string | undefined][])(
    "a query finds what lies from %j to %j",
    async (from, to) => {
      const partition = await seed(SORT_KEYS);
      const expected = SORT_KEYS.filter(
        (key) => (from === undefined || !below(key, from)) && (to === undefined || !below(to, key)),
      );
      const sort = defined({ from, to });
      expect(await sortKeys({ partition, sort })).toStrictEqual(expected);
      expect(await sortKeys({ partition, sort, descending: true })).toStrictEqual(
        expected.toReversed(),
      );
    },
  );

  test("a range that ends before it begins is empty", async () => {
    const partition = await seed(["a", "b", "c"]);
    expect(await sortKeys({ partition, sort: { from: "c", to: "a" } })).toStrictEqual([]);
  });

  test("a query gives at most its limit", async () => {
    const partition = await seed(["a", "b", "c"]);
    expect(await sortKeys({ partition, limit: 0 })).toStrictEqual([]);
    expect(await sortKeys({ partition, limit: 1 })).toStrictEqual(["a"]);
    expect(await sortKeys({ partition, limit: 2, descending: true })).toStrictEqual(["c", "b"]);
    expect(await sortKeys({ partition, limit: 3 })).toStrictEqual(["a", "b", "c"]);
    expect(await sortKeys({ partition, limit: 4 })).toStrictEqual(["a", "b", "c"]);
    expect(await sortKeys({ partition, limit: 1, sort: { from: "b" } })).toStrictEqual(["b"]);
  });
}

/** Returns a number that orders keys in a fixed way, other than their own order. */
function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 97, 7);
}

function below(left: string, right: string): boolean {
  return Buffer.compare(Buffer.from(left), Buffer.from(right)) < 0;
}
