import { openScannable, scannableOf } from "@zae-limiter/aws/migrations/open-scannable.ts";
import { customBackend } from "@zae-limiter/limiter/repository/stores/custom.ts";
import { parseStoreUrl } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { expect, test } from "vitest";

test("a store that an address names is opened with everything that it holds", async () => {
  expect.assertions(1);
  const { store } = await openScannable(parseStoreUrl("memory:"), {});
  await store.put({ PK: "a", SK: "b" });
  for await (const item of store.scan()) expect(item).toEqual({ PK: "a", SK: "b" });
  await store.close();
});

test("a store that cannot be scanned is refused by its name, and closed", async () => {
  const store = new MemoryItemStore();
  const backend = await customBackend("toy", store, {});
  expect(backend.scannable).toBeUndefined();
  await expect(scannableOf(backend)).rejects.toThrow("Cannot migrate toy: this store cannot be");
  await expect(store.get({ PK: "a", SK: "b" })).rejects.toThrow("closed");
});
