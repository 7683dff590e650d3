/** Buckets of a list, where one damaged record must not hide all others. */

import { DamagedRecordError } from "../domain/errors/errors.ts";
import { type Item, keyOf } from "../storage/item.ts";
import { decodeBucket, type StoredBucket } from "./bucket-item.ts";
import type { RecordContext } from "./record-context.ts";

/**
 * Returns the bucket in an item; `undefined` when it is none, and with a warning when it is
 * damaged.
 */
export function listedBucket(
  item: Item | undefined,
  onWarning?: RecordContext["onWarning"],
): StoredBucket | undefined {
  try {
    return item === undefined ? undefined : decodeBucket(item);
  } catch (cause) {
    if (!(cause instanceof DamagedRecordError)) throw cause;
    onWarning?.({ kind: "damaged_record", key: keyOf(item as Item), cause });
    return undefined;
  }
}
