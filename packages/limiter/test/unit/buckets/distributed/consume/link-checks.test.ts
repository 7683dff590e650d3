/**
 * A parent that appears while a bucket is made. The index of buckets lags, so creating the entity
 * does not find the bucket: here its record is written, and nothing else.
 */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { configOf, KEY, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

const CONFIG = configOf(["a:1000/day"]);
const PARENT = { cascade: true, parentId: "parent" };
const RELINKED = { outcome: "relinked", links: [PARENT] };

function appear(table: Table): Promise<unknown> {
  const record = { PK: `ns/ENTITY#${TARGET.entityId}`, SK: "#META" };
  return table.items.put({ ...record, cascade: true, parent_id: "parent" });
}

describe("a parent that the index missed", () => {
  test.each([1, 2000, 31_000, 100_000])(
    "a parent that the index missed is consumed from after %i ms, whenever the bucket is used",
    async (idleMs) => {
      const table = new Table();
      const maker = table.client();
      await maker.take(CONFIG, { a: 1000 });
      await appear(table);
      expect(await maker.take(CONFIG, { a: 1000 })).toMatchObject({
        legs: [{ link: { cascade: false } }],
      });
      table.nowMs += idleMs;
      await maker.later();
      const before = table.calls.length;
      expect(await maker.take(CONFIG, { a: 1000 })).toStrictEqual(RELINKED);
      // The bucket was written to, so it has to be read once; what was consumed is refunded.
      expect(table.calls.slice(before)).toStrictEqual(["get", "update", "transact"]);
      expect(table.item?.b_a_tc).toBe(2000);
      const child = { ...maker.leg(CONFIG, [1000]), link: PARENT };
      expect(await maker.store.consume([child])).toMatchObject({ legs: [{ link: PARENT }] });
      expect(table.calls.slice(before + 3)).toStrictEqual(["update"]);
    },
  );

  test("a parent that the index missed is noticed by a client that meets the bucket later", async () => {
    const table = new Table();
    await table.client().take(CONFIG, { a: 1000 });
    await appear(table);
    table.nowMs += 100_000;
    const other = table.client();
    expect(await other.store.linkOf(TARGET.entityId, TARGET.resource)).toEqual(PARENT);
    expect(table.item).toMatchObject({ cascade: true, parent_id: "parent" });
  });

  test("a parent that the index missed is noticed though the bucket was forgotten meanwhile", async () => {
    const table = new Table();
    const maker = table.client();
    await maker.take(CONFIG, { a: 1000 });
    await appear(table);
    // A consume that reads first has forgotten the cached state.
    await maker.store.consume([maker.leg(CONFIG, [1000])], { speculative: false });
    await maker.timer.sleep(30_000);
    await maker.later();
    expect(table.item).toMatchObject({ cascade: true, parent_id: "parent" });
  });

  test("a parent that the index missed costs one request for all buckets, and an acquire nothing", async () => {
    const table = new Table();
    const client = table.client();
    const resources = Array.from({ length: 300 }, (_, at) => `r${at}`);
    for (const resource of resources) {
      await client.store.consume([{ ...client.leg(CONFIG, [1000]), resource }]);
    }
    const before = table.calls.length;
    await client.timer.sleep(30_000);
    await client.later();
    expect(table.calls.slice(before)).toStrictEqual(["getMany"]);
    expect(client.timer.isIdle).toBe(true);
    for (const resource of resources) {
      await client.store.consume([{ ...client.leg(CONFIG, [1000]), resource }]);
    }
    expect(table.calls.slice(before + 1)).toStrictEqual(resources.map(() => "update"));
  });

  test("a parent that the index missed is looked for again where the store failed", async () => {
    const table = new Table();
    let down = true;
    const getMany: ItemStore["getMany"] = async (keys, options) => {
      if (!down) return table.items.getMany(keys, options);
      throw new RateLimiterUnavailable("down", { reason: "network", nothingWritten: true });
    };
    const maker = table.client(0, { getMany });
    await maker.take(CONFIG, { a: 1000 });
    await appear(table);
    await maker.later();
    down = false;
    expect(table.item).not.toHaveProperty("parent_id");
    // The next bucket that is young takes the first one along.
    await maker.store.consume([{ ...maker.leg(CONFIG, [1000]), resource: "other" }]);
    await maker.later();
    expect(table.item).toMatchObject({ cascade: true, parent_id: "parent" });
  });

  test("a parent that the index missed is looked for before a consume of a process that was asleep", async () => {
    const table = new Table();
    const maker = table.client();
    await maker.take(CONFIG, { a: 1000 });
    await appear(table);
    // Nothing in the background runs, and a minute is over.
    await maker.timer.sleep(61_000);
    expect(await maker.take(CONFIG, { a: 1000 })).toStrictEqual(RELINKED);
  });

  test("a parent that the index missed leaves nothing behind when the store is closed", async () => {
    const table = new Table();
    const maker = table.client();
    await maker.take(CONFIG, { a: 1000 });
    const before = table.calls.length;
    await maker.store.close();
    await maker.later();
    await maker.store.consume([{ ...maker.leg(CONFIG, [1000]), resource: "other" }]);
    expect(maker.timer.isIdle).toBe(true);
    expect(table.calls.slice(before)).toStrictEqual(["get", "put"]);
  });

  test("a parent that the index missed stays where it is when another client has updated the bucket", async () => {
    const table = new Table();
    const maker = table.client();
    await maker.take(CONFIG, { a: 1000 });
    await appear(table);
    await table.client().store.relink(TARGET.entityId, PARENT);
    const before = table.calls.length;
    await maker.later();
    // Both are read together, and there is nothing to correct.
    expect(table.calls.slice(before)).toStrictEqual(["getMany", "getMany"]);
    expect(table.items.readNow(KEY)).toMatchObject({ parent_id: "parent" });
  });
});
