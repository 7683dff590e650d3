/** Reading a whole table, and going on after a key, on every store. */

import { type Item, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill } from "./tables.ts";

function items(count: number, bytes = 1): Item[] {
  return Array.from({ length: count }, (_, index) => ({
    PK: `p${index % 7}`,
    SK: `s${String(index).padStart(4, "0")}`,
    text: "x".repeat(bytes),
  }));
}

const nameOf = ({ PK, SK }: Item) => `${PK} ${SK}`;

describeTables("a scan", (tables) => {
  it("a scan hands out every item once, however many pages that takes", async () => {
    // More than the megabyte that DynamoDB reads at once, and more rows than SQLite does.
    await fill(tables.store, [...items(50, 30_000), ...items(250).slice(50)]);
    const found = (await contents(tables.store)).map(nameOf);
    expect(found).toEqual(items(250).map(nameOf).sort());
  });

  it("a scan hands out nothing of an empty table", async () => {
    expect(await contents(tables.store)).toEqual([]);
  });

  it("a scan goes on after a key, also when its item is gone", async () => {
    await fill(tables.store, items(30));
    const order: Item[] = [];
    for await (const item of tables.store.scan()) order.push(item);
    const middle = order[14] as Item;
    await tables.store.delete(keyOf(middle));
    const rest: Item[] = [];
    for await (const item of tables.store.scan({ after: keyOf(middle) })) rest.push(item);
    expect(rest.map(nameOf)).toEqual(order.slice(15).map(nameOf));
    const none: Item[] = [];
    const last = order.at(-1) as Item;
    for await (const item of tables.store.scan({ after: keyOf(last) })) none.push(item);
    expect(none).toEqual([]);
  });
});
