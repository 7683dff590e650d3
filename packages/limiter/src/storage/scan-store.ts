/**
 * A store that hands out everything it holds. Only migrations need that: it reads the whole table,
 * so nothing that users wait for may use it.
 */

import { InfrastructureError } from "../domain/errors/errors.ts";
import type { Item, Key } from "./item.ts";
import type { ItemStore } from "./item-store.ts";

export interface ScanOptions {
  /** Continue after this key, which an earlier scan handed out; its item may be gone by now. */
  readonly after?: Key | undefined;
}

export interface ScanStore extends ItemStore {
  /**
   * Yields every item that exists from beginning to end, once, in an order that stays the same.
   * Items that are written or removed meanwhile may be yielded or not.
   */
  scan(options?: ScanOptions): AsyncIterable<Item>;
}

/** The same store, if it can be scanned. */
export function scannable(store: ItemStore): ScanStore {
  if ("scan" in store && typeof store.scan === "function") return store as ScanStore;
  throw new InfrastructureError("This store cannot be scanned");
}
