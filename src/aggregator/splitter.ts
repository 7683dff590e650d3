/** Makes shards with what the buckets themselves use. */

import type { Clock } from "../domain/clock.ts";
import type { ItemStore } from "../storage/item-store.ts";
import type { ShardSplitter } from "./bucket-upkeep.ts";

export interface SplitterOptions {
  readonly store: ItemStore;
  readonly clock: Clock;
}

/** `undefined` while buckets of this version have one shard. */
export function splitterOver(_options: SplitterOptions): ShardSplitter | undefined {
  return undefined;
}
