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

/** Refuses a store without `scan`, which only a caller without types can pass. */
export function checkScannable(store: ScanStore): void {
  if (typeof store.scan !== "function") {
    throw new InfrastructureError("This store cannot be scanned");
  }
}
