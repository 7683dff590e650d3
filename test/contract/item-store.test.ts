/** Every adapter passes the one contract. */

import { systemClock } from "../../src/domain/clock.ts";
import { MemoryItemStore } from "../../src/storage/memory/item-store.ts";
import { itemStoreContract } from "./item-store/contract.ts";

itemStoreContract(
  "memory",
  async () => {
    let ahead = 0;
    const store = new MemoryItemStore({ clock: () => systemClock() + ahead });
    return {
      store,
      advance: (milliseconds) => {
        ahead += milliseconds;
      },
      close: () => store.close(),
    };
  },
  { many: 500 },
);
