/** The cost of a request, as DynamoDB reports it. */

import type { ConsumedCapacity } from "@aws-sdk/client-dynamodb";
import { itemSizeBytes } from "../../item-size.ts";
import type { StoreCall } from "../../item-store.ts";
import type { ConditionFailures } from "../errors.ts";
import { CAPACITY_KIND, type OperationName } from "./operations.ts";

const WRITE_UNIT_BYTES = 1024;

interface Units {
  readonly CapacityUnits?: number | undefined;
  readonly ReadCapacityUnits?: number | undefined;
  readonly WriteCapacityUnits?: number | undefined;
}

type Reports = ConsumedCapacity | readonly ConsumedCapacity[];

/** The last report, and what came of it: nearly all writes cost the same. */
let last: { readonly consumed: Reports; readonly call: StoreCall } | undefined;

/** Returns the report of an answered request. Requests to several tables report several times. */
export function reported(operation: OperationName, output: object): StoreCall {
  const { ConsumedCapacity: consumed } = output as { ConsumedCapacity?: Reports };
  if (consumed === undefined) return callOf(operation, undefined);
  if (last?.consumed !== consumed || last.call.operation !== operation) {
    last = { consumed, call: callOf(operation, consumed) };
  }
  return last.call;
}

function callOf(operation: OperationName, consumed: Reports | undefined): StoreCall {
  const parts = consumed === undefined ? [] : [consumed].flat();
  const indexes = parts.flatMap((part) => [
    ...Object.values(part.GlobalSecondaryIndexes ?? {}),
    ...Object.values(part.LocalSecondaryIndexes ?? {}),
  ]);
  return {
    operation,
    readUnits: sum(parts, (part) => unitsOf(operation, part, "read")),
    writeUnits: sum(parts, (part) => unitsOf(operation, part, "write")),
    indexUnits: sum(indexes, (part) => allUnits(part)),
    // The request did not ask for its consumed capacity.
    estimated: consumed === undefined && CAPACITY_KIND.has(operation),
  };
}

/**
 * Estimates a refused condition, which is billed by the size of the stored item, but not reported.
 */
export function estimated(operation: OperationName, failures: ConditionFailures): StoreCall {
  const writeUnits = sum([...failures.values()], ({ item }) =>
    item === undefined ? 1 : Math.ceil(itemSizeBytes(item) / WRITE_UNIT_BYTES),
  );
  return { operation, readUnits: 0, writeUnits, indexUnits: 0, estimated: true };
}

/**
 * Returns the report of a request that was sent and failed. Its cost is unknown, mostly nothing.
 */
export function unreported(operation: OperationName): StoreCall {
  return { operation, readUnits: 0, writeUnits: 0, indexUnits: 0, estimated: true };
}

/**
 * Returns the units of one kind. Only transactions report both; else the operation has one kind.
 */
function unitsOf(operation: OperationName, units: Units, kind: "read" | "write"): number {
  const told = kind === "read" ? units.ReadCapacityUnits : units.WriteCapacityUnits;
  if (units.ReadCapacityUnits !== undefined || units.WriteCapacityUnits !== undefined) {
    return told ?? 0;
  }
  return CAPACITY_KIND.get(operation) === kind ? (units.CapacityUnits ?? 0) : 0;
}

function allUnits(units: Units): number {
  return units.CapacityUnits ?? (units.ReadCapacityUnits ?? 0) + (units.WriteCapacityUnits ?? 0);
}

function sum<T>(parts: readonly T[], units: (part: T) => number): number {
  return parts.reduce((total, part) => total + units(part), 0);
}
