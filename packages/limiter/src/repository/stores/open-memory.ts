/** Opens `memory:`. Loaded with the library. */

import { processRandom } from "../../base/random.ts";
import { EmbeddedBucketStore } from "../../buckets/embedded/embedded-bucket-store.ts";
import { MemoryBucketTable } from "../../buckets/embedded/memory-table.ts";
import { onlyHolder } from "../../buckets/embedded/slot-sources.ts";
import { MemoryItemStore } from "../../storage/memory/item-store.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { countingParts, recordsIn, usageCounter } from "./embedded.ts";
import { MEMORY_USAGE, memory } from "./memory.ts";
import { memorySnapshots } from "./snapshot-items.ts";
import type { StoreLocation } from "./store-kind.ts";

/** Opens a store in this process. Awaits nothing. */
export async function openMemory(_location: StoreLocation, options: OpenOptions): Promise<Backend> {
  const shared = adapterOptions(options, processRandom);
  const { clock, random } = shared;
  const store = new MemoryItemStore(shared);
  const items = memorySnapshots(store);
  const countUsage = usageCounter(items, options.usage, MEMORY_USAGE);
  return {
    name: memory.name,
    database: { system: memory.name },
    traits: memory.traits,
    ...countingParts(store, shared, options),
    scannable: store,
    openBuckets: ({ namespaceId }, bucketOptions) => {
      const table = new MemoryBucketTable({
        ...recordsIn((key) => store.readNow(key), namespaceId),
        namespaceId,
        clock,
        countUsage,
        items,
        refuseClosed: () => store.refuseClosed(),
      });
      return new EmbeddedBucketStore(table, {
        clock,
        random,
        ordinaryTable: table,
        slots: onlyHolder(),
        ...bucketOptions,
      });
    },
  };
}
