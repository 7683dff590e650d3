/** An item store in memory whose every request takes a time that the test decides. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";

const REQUESTS = new Set(["get", "getMany", "put", "update", "delete", "transact"]);

/** `delayMs`: of a request, given the time and how many are under way, this one included. */
export function slowStore(
  timer: Timer,
  delayMs: (nowMs: number, underWay: number) => number,
): ItemStore {
  const store = new MemoryItemStore();
  let underWay = 0;
  const slowly =
    (name: keyof ItemStore) =>
    async (...args: unknown[]) => {
      underWay += 1;
      try {
        const ms = delayMs(timer.nowMs(), underWay);
        if (ms > 0) await timer.sleep(ms);
        return await (store[name] as (...args: unknown[]) => unknown).apply(store, args);
      } finally {
        underWay -= 1;
      }
    };
  return new Proxy(store, {
    get: (target, name) => {
      if (REQUESTS.has(name as string)) return slowly(name as keyof ItemStore);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
