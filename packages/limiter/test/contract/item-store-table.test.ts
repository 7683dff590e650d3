/** The contract of an item store on the table of `examples/own-store`. */

import type { ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";

const EXAMPLE = new URL("../../../../examples/own-store/map-table.js", import.meta.url).href;

itemStoreContract(
  "the table of an example",
  async () => {
    const { MapTable } = (await import(EXAMPLE)) as { MapTable: new () => ItemTable };
    const store = new MapTable();
    return { store, close: () => store.close() };
  },
  {},
);
