/** The parts that all records of one namespace share. */

import type { Random } from "../base/random.ts";
import type { Clock } from "../base/time.ts";
import type { Item } from "../storage/item.ts";
import type { ItemStore, Query } from "../storage/item-store.ts";
import type { RecordWarning } from "./record-warning.ts";

/** A store whose indexes are read through `queryRecords` alone, which checks what they show. */
interface RecordStore extends Omit<ItemStore, "query"> {
  query(query: Omit<Query, "index"> & { readonly index?: never }): AsyncIterable<Item>;
}

export interface RecordContext {
  readonly store: RecordStore;
  readonly namespaceId: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Called for stored records that were left out of an answer. */
  readonly onWarning?: ((warning: RecordWarning) => void) | undefined;
}
