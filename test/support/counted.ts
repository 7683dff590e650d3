/** A store in memory that its owner closes, with the requests of one borrower counted. */

import { CallListeners, freeCall } from "@zae-limiter/limiter/storage/call-listeners.ts";
import type { CallListener, ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";

export function counted(items: ItemStore): ItemStore {
  const listeners = new CallListeners();
  return new Proxy<ItemStore>(items, {
    get: (_, operation: keyof ItemStore) => {
      if (operation === "close") return async () => undefined;
      if (operation === "listen") return (listener: CallListener) => listeners.add(listener);
      return (...parameters: unknown[]) => {
        listeners.tell(freeCall(operation));
        return Reflect.apply(items[operation], items, parameters) as unknown;
      };
    },
  });
}
