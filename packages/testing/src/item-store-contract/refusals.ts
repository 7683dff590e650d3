/**
 * Requests that could never work are refused by every store, with a `ValidationError` and before
 * anything is written: what an embedded store lets through would break on DynamoDB.
 */

import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import { type Change, ITEM_ABSENT } from "@zae-limiter/limiter/storage/item-store.ts";
import { attribute, collect, itemWith, padded, range, type Subject } from "./subject.ts";

const UNSTORABLE: readonly (readonly [what: string, value: Value])[] = [
  ["not a number", Number.NaN],
  ["infinity", Number.POSITIVE_INFINITY],
  ["more than 38 digits", 10n ** 38n + 1n],
  // Its last digits are lost already: it would have to be a bigint.
  ["a whole number beyond 2^53", 2 ** 53],
  ["a number within 10^-130 of zero", 1e-131],
  ["an empty set", new Set<string>()],
  ["an empty set in a map", { list: [new Set<string>()] }],
];

const CONTRADICTIONS: readonly (readonly [what: string, change: Change])[] = [
  ["set and add", { set: { a: 1 }, add: { a: 1 } }],
  ["set and setIfAbsent", { set: { a: 1 }, setIfAbsent: { a: 1 } }],
  ["set and remove", { set: { a: 1 }, remove: ["a"] }],
  ["remove twice", { remove: ["a", "a"] }],
  ["addToSet and deleteFromSet", { addToSet: { a: ["x"] }, deleteFromSet: { a: ["y"] } }],
];

const MISFITS: readonly (readonly [what: string, stored: Value, change: Change])[] = [
  ["adding to text", "5", { add: { a: 1 } }],
  ["adding to a set", new Set(["x"]), { add: { a: 1 } }],
  ["adding to null", null, { add: { a: 1 } }],
  ["adding a member to a number", 5, { addToSet: { a: ["x"] } }],
  ["deleting a member of text", "x", { deleteFromSet: { a: ["x"] } }],
];

export function refusalsContract(subject: Subject): void {
  const { expect, test, testEach } = subject.cases;
  const expectRefused = (call: Promise<unknown>) => subject.expectRefused(call);

  testEach(UNSTORABLE)("%s cannot be stored", async (_, value) => {
    const key = subject.key();
    await expectRefused(subject.store.put(itemWith(key, attribute("a", value))));
    await expectRefused(subject.store.update(key, { set: attribute("a", value) }));
    await expectRefused(subject.store.update(key, { setIfAbsent: attribute("a", value) }));
    await expectRefused(subject.store.transact([{ put: itemWith(key, attribute("a", value)) }]));
    await expectRefused(subject.store.writeMany({ puts: [itemWith(key, attribute("a", value))] }));
    expect(await subject.read(key)).toBeUndefined();
  });

  test("what is not a number cannot be added", async () => {
    const item = await subject.stored({ a: 1 });
    await expectRefused(subject.store.update(item, { add: { a: Number.NaN } }));
    await expectRefused(subject.store.update(item, { add: { a: 2 ** 53 } }));
    await expectRefused(subject.store.update(item, { add: { b: Number.POSITIVE_INFINITY } }));
    expect(await subject.read(item)).toStrictEqual(item);
  });

  testEach(CONTRADICTIONS)("one attribute cannot be changed in two ways: %s", async (_, change) => {
    const key = subject.key();
    await expectRefused(subject.store.update(key, change));
    await expectRefused(subject.store.transact([{ update: key, change }]));
    expect(await subject.read(key)).toBeUndefined();
  });

  testEach(MISFITS)("a change is refused: %s", async (_, stored, change) => {
    const item = await subject.stored(attribute("a", stored));
    const other = subject.key();
    await expectRefused(subject.store.update(item, change));
    await expectRefused(
      subject.store.transact([{ put: { ...other, a: 1 } }, { update: item, change }]),
    );
    expect(await subject.read(item)).toStrictEqual(item);
    expect(await subject.read(other)).toBeUndefined();
  });

  testEach([
    { set: { PK: "other" } },
    { set: { SK: "other" } },
    { setIfAbsent: { SK: "other" } },
    { remove: ["PK"] },
    { add: { SK: 1 } },
    { addToSet: { SK: ["x"] } },
  ] as Change[])("a key cannot be changed: %j", async (change) => {
    const item = await subject.stored({ a: 1 });
    await expectRefused(subject.store.update(item, change));
    await expectRefused(subject.store.transact([{ update: item, change }]));
    expect(await subject.read(item)).toStrictEqual(item);
  });

  testEach([
    ["empty", ""],
    // SQLite would cut the text there.
    ["text with a NUL", "a\u0000b"],
  ])("a key cannot be %s", async (_, part) => {
    for (const key of [
      { PK: subject.partition(), SK: part },
      { PK: part, SK: "x" },
    ]) {
      await expectRefused(subject.store.put({ ...key, a: 1 }));
      await expectRefused(subject.store.update(key, { set: { a: 1 } }));
      await expectRefused(subject.store.delete(key));
      await expectRefused(subject.store.get(key));
      await expectRefused(subject.store.getMany([key]));
      await expectRefused(subject.store.getMany([key], { snapshot: true }));
      await expectRefused(subject.store.transact([{ put: { ...key, a: 1 } }]));
      await expectRefused(subject.store.transact([{ check: key, condition: [ITEM_ABSENT] }]));
      await expectRefused(subject.store.writeMany({ puts: [{ ...key, a: 1 }] }));
      await expectRefused(subject.store.writeMany({ deletes: [key] }));
    }
  });

  testEach([
    ["empty", ""],
    ["text with a NUL", "a\u0000b"],
    ["a number", 5],
    ["null", null],
  ] as [string, Value][])("a key of an index cannot be %s", async (_, value) => {
    const key = subject.key();
    const item = { ...key, GSI1PK: subject.partition(), GSI1SK: value };
    await expectRefused(subject.store.put(item));
    await expectRefused(subject.store.update(key, { set: { GSI1PK: value } }));
    await expectRefused(subject.store.transact([{ put: item }]));
    await expectRefused(subject.store.writeMany({ puts: [item] }));
    expect(await subject.read(key)).toBeUndefined();
  });

  test("a refused write in a transaction refuses all of it", async () => {
    const [first, second] = [subject.key(), subject.key()];
    await expectRefused(
      subject.store.transact([
        { put: { ...first, a: 1 } },
        { update: second, change: { set: { PK: "other" } } },
      ]),
    );
    expect(await subject.read(first)).toBeUndefined();
  });

  test("a snapshot of more than 100 keys is refused", async () => {
    const PK = subject.partition();
    const keys = range(101).map((at) => ({ PK, SK: padded(at) }));
    await expectRefused(subject.store.getMany(keys, { snapshot: true }));
  });

  test("one key twice in a batch is refused", async () => {
    const item = { ...subject.key(), a: 1 };
    await expectRefused(subject.store.writeMany({ puts: [item, item] }));
    await expectRefused(subject.store.writeMany({ puts: [item], deletes: [item] }));
    await expectRefused(subject.store.writeMany({ deletes: [item, item] }));
    const others = range(30).map((at) => ({ PK: item.PK, SK: padded(at) }));
    // In separate requests of 25 items the store would not notice the duplicate.
    await expectRefused(subject.store.writeMany({ deletes: [item, ...others, item] }));
    expect(await subject.read(item)).toBeUndefined();
  });

  test("a consistent read of an index is refused", async () => {
    const query = { index: "GSI1", partition: subject.partition(), consistent: true } as const;
    await expectRefused(subject.find(query));
  });

  test("a query of an index after an item without its keys is refused", async () => {
    const partition = subject.partition();
    const query = { index: "GSI1", partition, after: { ...subject.key() } } as const;
    await expectRefused(subject.find(query));
  });

  testEach(["nonsense", ""])("a feed after the position %j is refused", async (after) => {
    // A store that accepted it as a position would wait for changes.
    const signal = subject.guard(5000);
    await expectRefused(collect(subject.store.changes({ from: { after }, signal })));
  });
}
