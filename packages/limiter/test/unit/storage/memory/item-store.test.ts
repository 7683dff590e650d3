import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

test("many items are written and read in memory while virtual time stands still", async () => {
  const time = new VirtualTime(1_900_000_000_000);
  const store = new MemoryItemStore({ clock: time.clock });
  const keys = Array.from({ length: 1200 }, (_, at) => ({
    PK: "ns/ENTITY#a",
    SK: `#${1000 + at}`,
  }));
  // Nothing is planned: work that leaves its promises would end the wait with an error.
  await time.until(store.writeMany({ puts: keys }));
  expect(await time.until(store.getMany(keys))).toEqual(keys);
  const queried = async () => {
    const found = [];
    for await (const item of store.query({ partition: "ns/ENTITY#a" })) found.push(item);
    return found;
  };
  expect(await time.until(queried())).toEqual(keys);
  expect(time.clock()).toBe(1_900_000_000_000);
});
