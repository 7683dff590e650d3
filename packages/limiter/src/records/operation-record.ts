/**
 * The record of a reset or a top-up, which makes it happen once per key. It lies next to the first
 * shard of its bucket, and belongs to one incarnation of the entity: one that was deleted and
 * created again may use its keys once more.
 */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type Item, jsonAt, type Key, numberAt, textAt, type Value } from "../storage/item.ts";
import { type Condition, ITEM_ABSENT } from "../storage/item-store.ts";
import { bucketKey, inNamespace } from "./keys.ts";

export type OperationKind = "reset" | "top_up";

/** Result of a reset or a top-up. */
export interface OperationResult {
  /** How many shards of the bucket were changed; 0 where there was no bucket. */
  readonly shards: number;
  /** Whole tokens that were added, per limit. */
  readonly amounts: Readonly<Record<string, number>>;
}

export interface Operation {
  readonly entityId: string;
  readonly resource: string;
  readonly kind: OperationKind;
  /** The idempotency key that the caller gave, or one that was drawn for the operation. */
  readonly key: string;
}

const PREFIX = "#OP#";
/** In GSI4. */
const INDEX_PREFIX = "OP#";
const KEPT_SECONDS = 3 * 86_400;
const KEY_PATTERN = /^[A-Za-z0-9._:-]{1,64}$/;

/** Checks the key that a caller gives. */
export function checkIdempotencyKey(value: unknown): string {
  if (typeof value === "string" && KEY_PATTERN.test(value)) return value;
  throw new ValidationError(
    "idempotencyKey",
    value,
    `expected 1 to 64 letters, digits and . _ : -, got ${show(value)}`,
  );
}

export function operationKey(namespaceId: string, operation: Operation): Key {
  const { entityId, resource, key } = operation;
  return { PK: bucketKey(namespaceId, entityId, resource, 0).PK, SK: PREFIX + key };
}

/** Returns the prefix of the records of an entity in GSI4. */
export function operationsOf(entityId: string): string {
  return `${INDEX_PREFIX}${entityId}#`;
}

/**
 * Returns the incarnation of an entity that a record belongs to; `-` for one that was never
 * created.
 */
export function incarnationOf(entity: Item | undefined): string {
  if (entity === undefined) return "-";
  return textAt(entity, "pinc") ?? textAt(entity, "created_at") ?? "-";
}

export function encodeOperation(
  namespaceId: string,
  operation: Operation,
  { shards, amounts }: OperationResult,
  { incarnation, nowMs, writer }: { incarnation: string; nowMs: number; writer: string },
): Item {
  const { entityId, resource, kind, key } = operation;
  return {
    ...operationKey(namespaceId, operation),
    ...inNamespace(namespaceId, `${operationsOf(entityId)}${resource}#${key}`),
    entity_id: entityId,
    resource,
    operation: kind,
    amounts: amounts as Value,
    shards,
    ent: incarnation,
    writer,
    ttl: Math.floor(nowMs / 1000) + KEPT_SECONDS,
  };
}

/**
 * Returns the result of an operation that was made before; `undefined` where the record is of
 * another incarnation, or its time is over. Refuses a key that was used for the other kind.
 */
export function madeBefore(
  record: Item | undefined,
  { kind, key }: Operation,
  incarnation: string,
  nowMs: number,
): OperationResult | undefined {
  if (record === undefined || textAt(record, "ent") !== incarnation) return undefined;
  if ((numberAt(record, "ttl") ?? Number.POSITIVE_INFINITY) * 1000 <= nowMs) return undefined;
  const stored = textAt(record, "operation");
  if (stored !== kind) {
    const reason = `the key "${key}" was used for a ${stored}, and cannot be used for a ${kind}`;
    throw new ValidationError("idempotencyKey", key, reason);
  }
  const amounts = Object.entries(jsonAt(record, "amounts")).flatMap(([name, amount]) =>
    typeof amount === "number" ? [[name, amount] as const] : [],
  );
  return { shards: numberAt(record, "shards") ?? 0, amounts: Object.fromEntries(amounts) };
}

/** Passes while the record is as it was read. */
export function asRead(record: Item | undefined): Condition {
  if (record === undefined) return [ITEM_ABSENT];
  const writer = textAt(record, "writer") ?? "";
  return [{ is: "=", name: "writer", value: writer, orAbsent: writer === "" }];
}
