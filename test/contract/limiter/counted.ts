/** A store in memory that somebody else closes, with the requests of one borrower counted. */

import type { ItemStore, StoreCall } from "../../../src/storage/item-store.ts";

export function counted(
  items: ItemStore,
  onCall: ((call: StoreCall) => void) | undefined,
): ItemStore {
  return new Proxy<ItemStore>(items, {
    get: (_, operation: keyof ItemStore) => {
      if (operation === "close") return async () => undefined;
      return (...parameters: unknown[]) => {
        onCall?.({ operation, readUnits: 0, writeUnits: 0, indexUnits: 0, estimated: false });
        return Reflect.apply(items[operation], items, parameters) as unknown;
      };
    },
  });
}
