/** Time to live: a store may remove expired items, and then reports that in its feed. */

import { TTL_ATTRIBUTE } from "@zae-limiter/limiter/storage/table.ts";
import { collect, type Subject } from "./subject.ts";

/** Seconds; DynamoDB Local uses the real time, so nothing may expire by accident. */
const FAR_FUTURE_S = 4_000_000_000;
const DAY_MS = 86_400_000;

export function expiryContract(subject: Subject): void {
  const { expect, test, testUnless } = subject.cases;
  const timed = testUnless(subject.options.noTimePasses);
  /** Reads the store's own time, in seconds, from its feed: no test reads a clock. */
  const storeSeconds = async (): Promise<number> => {
    const { PK } = await subject.stored();
    for await (const record of allChanges()) {
      if (record.key.PK === PK) return Math.floor(record.atMs / 1000);
    }
    throw new Error("The feed ended before the item that was just written");
  };
  const allChanges = () => subject.store.changes({ from: "oldest", signal: subject.guard() });

  test("what is not over stays", async () => {
    const item = await subject.stored({ [TTL_ATTRIBUTE]: FAR_FUTURE_S });
    await subject.stored();
    expect(await subject.read(item)).toStrictEqual(item);
  });

  timed("what is over is removed from table, index and feed", async () => {
    const { store } = subject;
    const now = await storeSeconds();
    const partition = subject.partition();
    const keys = { GSI1PK: partition, GSI1SK: "a" };
    const item = await subject.stored({ ...keys, [TTL_ATTRIBUTE]: now + 3600 });
    const kept = await subject.stored({ [TTL_ATTRIBUTE]: now + 10 * 86_400 });
    subject.advance(DAY_MS);
    // Expired items are removed by other writes.
    await subject.stored();
    await subject.stored();
    const images: unknown[] = [];
    for await (const record of allChanges()) {
      if (record.key.PK !== item.PK) continue;
      images.push([record.before, record.after, record.expired]);
      if (images.length === 2) break;
    }
    expect(images).toStrictEqual([
      [undefined, item, false],
      [item, undefined, true],
    ]);
    expect(await subject.read(item)).toBeUndefined();
    expect(await collect(store.query({ index: "GSI1", partition }))).toStrictEqual([]);
    expect(await subject.read(kept)).toStrictEqual(kept);
  });

  timed("a transaction over an item whose time is over keeps the feed in order", async () => {
    const { store } = subject;
    const item = await subject.stored({ [TTL_ATTRIBUTE]: (await storeSeconds()) + 60, n: 1 });
    subject.advance(DAY_MS);
    await store.transact([
      { put: { ...subject.key() } },
      { put: { ...subject.key() } },
      { update: item, change: { add: { n: 1 } } },
    ]);
    const last = { PK: item.PK, SK: item.SK, last: true };
    await store.put(last);
    let before: unknown;
    for await (const record of allChanges()) {
      if (record.key.PK !== item.PK) continue;
      // Each change starts from where the one before it ended.
      expect(record.before).toStrictEqual(before);
      before = record.after;
      if (record.after?.last === true) break;
    }
    expect(before).toStrictEqual(last);
  });
}
