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
import { balanceMilli, type EmbeddedBucket } from "./embedded-bucket.ts";

/** Items of the store, read and written within the step of the caller. */
export interface StepItems {
  read(key: Key): Item | undefined;
  update(key: Key, change: Change): void;
}

/** Makes the operation, or returns what came of it when it was made before. */
export function operateRow(
  items: StepItems,
  namespaceId: string,
  operation: BalanceOperation,
  row: EmbeddedBucket | undefined,
  nowMs: number,
  write: (bucket: EmbeddedBucket) => void,
): OperationResult {
  const { entityId } = operation;
  const incarnation = incarnationOf(items.read(entityKey(namespaceId, entityId)));
  const record = items.read(operationKey(namespaceId, operation));
  const before = madeBefore(record, operation, incarnation, nowMs);
  if (before !== undefined) return before;
  const amounts: Record<string, number> = {};
  const limits = row?.limits.map((limit) => {
    const addition = operation.additionOf(limit.name);
    if (addition === undefined) return limit;
    const room = limit.rate.capacityMilli - balanceMilli(limit, nowMs);
    const added = Math.max(0, Math.min(addition, room));
    amounts[limit.name] = Math.floor(added / 1000);
    const { level } = limit;
    return { ...limit, level: { ...level, tokensMilli: level.tokensMilli + added } };
  });
  const result = { shards: row === undefined ? 0 : 1, amounts };
  for (const item of operation.recordsOf(result, { incarnation, nowMs })) {
    const { PK, SK, ...set } = item;
    items.update({ PK, SK }, { set: set as Record<string, Value> });
  }
  if (row !== undefined && limits !== undefined) write({ ...row, limits });
  return result;
}
