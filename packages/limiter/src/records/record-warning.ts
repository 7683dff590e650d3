/** Warnings about stored records that were left out of an answer. */

import type { DamagedRecordError } from "../domain/errors/errors.ts";
import type { Key } from "../storage/item.ts";
import type { IndexName } from "../storage/table.ts";

/** Items of an index were dropped, because their own keys do not belong there. */
interface ForeignItemsWarning {
  readonly kind: "foreign_items";
  readonly index: IndexName;
  /** The partition of the index that was read. */
  readonly partition: string;
  readonly dropped: number;
  /** The key of the first dropped item, which says where it came from. */
  readonly example: Key;
}

/** A record was left out, because it cannot be what it says. */
interface DamagedRecordWarning {
  readonly kind: "damaged_record";
  readonly key: Key;
  readonly cause: DamagedRecordError;
}

export type RecordWarning = ForeignItemsWarning | DamagedRecordWarning;
