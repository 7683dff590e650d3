/** Concurrent writers: no write is lost, and of writes that exclude each other one succeeds. */

import { ITEM_ABSENT } from "@zae-limiter/limiter/storage/item-store.ts";
import { range, type Subject } from "./subject.ts";

const WRITERS = 20;

export function concurrencyContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  test("updates that add all count", async () => {
    const key = subject.key();
    const results = await Promise.all(
      range(WRITERS).map((at) => subject.store.update(key, { add: { n: at + 1 } })),
    );
    expect(results.every((result) => result.ok)).toBe(true);
    expect((await subject.read(key))?.n).toBe((WRITERS * (WRITERS + 1)) / 2);
    // Each saw the item right after its own write: no two saw the same.
    expect(new Set(results.map((result) => result.item?.n)).size).toBe(WRITERS);
  });

  test("one of several concurrent creations of an item wins", async () => {
    const key = subject.key();
    const results = await Promise.all(
      range(WRITERS).map((at) => subject.store.put({ ...key, at }, [ITEM_ABSENT])),
    );
    const winners = range(WRITERS).filter((at) => results[at]?.ok);
    expect(winners).toHaveLength(1);
    const stored = await subject.read(key);
    expect(stored).toStrictEqual({ ...key, at: winners[0] });
    for (const result of results.filter(({ ok }) => !ok)) expect(result.item).toStrictEqual(stored);
  });

  test("a condition lets through exactly what there is", async () => {
    const item = await subject.stored({ tokens: 7 });
    const results = await Promise.all(
      range(WRITERS).map(() =>
        subject.store.update(item, { add: { tokens: -1 } }, [
          { is: ">=", name: "tokens", value: 1 },
        ]),
      ),
    );
    expect(results.filter((result) => result.ok)).toHaveLength(7);
    expect(await subject.read(item)).toStrictEqual({ ...item, tokens: 0 });
  });

  test("transactions over the same items keep the sum", async () => {
    const [left, right] = [await subject.stored({ n: 100 }), await subject.stored({ n: 100 })];
    const results = await Promise.all(
      range(10).map((amount) =>
        subject.store.transact([
          { update: left, change: { add: { n: -amount } } },
          { update: right, change: { add: { n: amount } } },
        ]),
      ),
    );
    expect(results.every((result) => result.ok)).toBe(true);
    const [one, other] = await subject.store.getMany([left, right], { snapshot: true });
    expect([one?.n, other?.n]).toStrictEqual([100 - 45, 100 + 45]);
  });

  test("one transaction wins the race for an item, and the others see it", async () => {
    const [first, second] = [subject.key(), subject.key()];
    const results = await Promise.all(
      range(10).map((at) =>
        subject.store.transact([
          { put: { ...first, at }, condition: [ITEM_ABSENT] },
          { put: { ...second, at }, condition: [ITEM_ABSENT] },
        ]),
      ),
    );
    expect(results.filter((result) => result.ok)).toHaveLength(1);
    const [one, other] = await subject.store.getMany([first, second], { snapshot: true });
    expect(one?.at).toBe(other?.at);
    for (const result of results) {
      if (!result.ok) expect(result.failures.get(0)?.item).toStrictEqual(one);
    }
  });

  test("the same transaction sent twice at once is applied once", async () => {
    const key = subject.key();
    const token = subject.token();
    const send = () =>
      subject.store.transact([{ update: key, change: { add: { n: 1 } } }], { token });
    expect(await Promise.all([send(), send(), send()])).toStrictEqual(
      range(3).map(() => ({ ok: true })),
    );
    expect((await subject.read(key))?.n).toBe(1);
  });
}
