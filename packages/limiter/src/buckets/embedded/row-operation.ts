/** Resets and top-ups of a row, in one step with the record that makes them happen once. */

import { entityKey } from "../../records/keys.ts";
import {
  incarnationOf,
  madeBefore,
  type OperationResult,
  operationKey,
} from "../../records/operation-record.ts";
import type { Item, Key, Value } from "../../storage/item.ts";
import type { Change } from "../../storage/item-store.ts";
import type { BalanceOperation } from "../bucket-admin.ts";
import type { Bucket } from "./bucket.ts";

/** Items of the store, read and written within the step of the caller. */
export interface StepItems {
  /** Returns an item; `along` are keys that are read next. */
  read(key: Key, along?: readonly Key[]): Item | undefined;
  update(key: Key, change: Change): void;
}

/** Applies the operation to a row, or returns the result of the time it was applied before. */
export function operateRow(
  items: StepItems,
  namespaceId: string,
  operation: BalanceOperation,
  row: Bucket | undefined,
  nowMs: number,
  write: (bucket: Bucket) => void,
): OperationResult {
  const { entityId } = operation;
  const incarnation = incarnationOf(items.read(entityKey(namespaceId, entityId)));
  const record = items.read(operationKey(namespaceId, operation));
  const before = madeBefore(record, operation, incarnation, nowMs);
  if (before !== undefined) return before;
  const amounts: Record<string, number> = {};
  row?.build.names.forEach((name, at) => {
    const addition = operation.additionOf(name);
    if (addition === undefined) return;
    amounts[name] = Math.floor(row.add(at, addition, nowMs) / 1000);
  });
  const result = { shards: row === undefined ? 0 : 1, amounts };
  for (const item of operation.recordsOf(result, { incarnation, nowMs })) {
    const { PK, SK, ...set } = item;
    items.update({ PK, SK }, { set: set as Record<string, Value> });
  }
  if (row !== undefined) write(row);
  return result;
}
