/** Time to live: a store may remove what is over, and then says so in its feed. */

import { expect, test } from "vitest";
import { TTL_ATTRIBUTE } from "../../../src/storage/table.ts";
import { collect, type Subject } from "./subject.ts";

/** Seconds; DynamoDB Local looks at the real time, so nothing may be over by accident. */
const FAR_FUTURE_S = 4_000_000_000;
const DAY_MS = 86_400_000;
const GUARD_MS = 20_000;

export function expiryContract(subject: Subject): void {
  test("what is not over stays", async () => {
    const item = await subject.stored({ [TTL_ATTRIBUTE]: FAR_FUTURE_S });
    await subject.stored();
    expect(await subject.read(item)).toStrictEqual(item);
  });

  test("what is over is removed from table, index and feed", async (context) => {
    const { advance, store } = subject;
    if (advance === undefined) return context.skip("this store cannot be told the time");
    const partition = subject.partition();
    const first = await subject.stored();
    const key = subject.key();
    // The store's own time is read from its feed, so that no test reads a clock.
    let nowMs = 0;
    const signal = AbortSignal.timeout(GUARD_MS);
    for await (const record of store.changes({ from: "oldest", signal })) {
      nowMs = Math.max(nowMs, record.atMs);
      if (record.key.PK === first.PK) break;
    }
    const seconds = Math.floor(nowMs / 1000);
    const keys = { GSI1PK: partition, GSI1SK: "a" };
    const item = { ...key, ...keys, [TTL_ATTRIBUTE]: seconds + 3600 };
    await store.put(item);
    const kept = await subject.stored({ [TTL_ATTRIBUTE]: seconds + 10 * 86_400 });
    advance(DAY_MS);
    // The removal is the business of later writes, or of nobody's.
    await subject.stored();
    await subject.stored();
    const images: unknown[] = [];
    for await (const record of store.changes({ from: "oldest", signal })) {
      if (record.key.PK !== key.PK) continue;
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

  test("a transaction over an item whose time is over keeps the feed in order", async (context) => {
    const { advance, store } = subject;
    if (advance === undefined) return context.skip("this store cannot be told the time");
    const first = await subject.stored();
    let nowMs = 0;
    const signal = AbortSignal.timeout(GUARD_MS);
    for await (const record of store.changes({ from: "oldest", signal })) {
      nowMs = Math.max(nowMs, record.atMs);
      if (record.key.PK === first.PK) break;
    }
    const item = await subject.stored({ [TTL_ATTRIBUTE]: Math.floor(nowMs / 1000) + 60, n: 1 });
    advance(DAY_MS);
    await store.transact([
      { put: { ...subject.key() } },
      { put: { ...subject.key() } },
      { update: item, change: { add: { n: 1 } } },
    ]);
    await store.put({ PK: item.PK, SK: item.SK, last: true });
    let before: unknown;
    for await (const record of store.changes({ from: "oldest", signal })) {
      if (record.key.PK !== item.PK) continue;
      // Each change starts from where the one before it ended.
      expect(record.before).toStrictEqual(before);
      before = record.after;
      if (record.after?.last === true) break;
    }
    expect(before).toStrictEqual({ PK: item.PK, SK: item.SK, last: true });
  });
}
