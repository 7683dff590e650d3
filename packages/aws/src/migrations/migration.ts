/**
 * Migrations are rules that each know one way in which items of older tables differ.
 *
 * A rule reads what an item is, not what the version record claims, and each of its writes
 * holds only while everything it is based on is as it was read. So a migration may be repeated,
 * resumed anywhere, or run twice at once: the second run finds nothing left to do.
 */

import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Write } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";
import type { KnownNamespaces } from "./known-namespaces.ts";

export interface MigrationTable {
  readonly store: ScanStore;
  readonly clock: Clock;
  readonly namespaces: KnownNamespaces;
}

/** One way in which an item of an older version differs. */
export interface Rule {
  /** Names the changes in reports. */
  readonly name: string;
  /** Returns whether the item differs in that way. */
  concerns(item: Item, table: MigrationTable): boolean;
  /**
   * Returns one transaction that corrects the item; none if it must stay as it is. The written
   * items must be final: the scan may have passed their place already.
   */
  writes(item: Item, table: MigrationTable): Promise<readonly Write[]> | readonly Write[];
}

/** A step from one schema version to a later one. */
export interface Migration {
  /** The version that a table has afterwards; migrations are known by it. */
  readonly version: string;
  readonly description: string;
  readonly rules: readonly Rule[];
  /** The way back, where there is one. */
  readonly rollback?: readonly Rule[];
}
