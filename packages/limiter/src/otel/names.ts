/** Names of attributes. Those of databases follow the semantic conventions of OpenTelemetry. */

import type { Attributes } from "@opentelemetry/api";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import type { DatabaseName } from "../repository/backend.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { StoreCall } from "../storage/item-store.ts";

export const OUTCOME = "zae_limiter.outcome";
export const RESOURCE = "zae_limiter.resource";
export const NAMESPACE = "zae_limiter.namespace";
export const LIMIT = "zae_limiter.limit";
export const LEVEL = "zae_limiter.hierarchy.level";
export const ENTITY = "zae_limiter.entity";
export const DB_SYSTEM = "db.system.name";
export const DB_OPERATION = "db.operation.name";
const DB_COLLECTION = "db.collection.name";
const ERROR_TYPE = "error.type";

/** Returns the place of a refusing entity in the hierarchy; few values, however deep it is. */
export function levelName(level: number): string {
  return ["entity", "parent"][level] ?? "ancestor";
}

/** Returns the attributes of a request to the store, for every metric and span of it. */
export function callAttributes({ system, table }: DatabaseName, call: StoreCall): Attributes {
  const { operation, outcome = "ok" } = call;
  return {
    [DB_SYSTEM]: system,
    [DB_OPERATION]: operation,
    ...(table === undefined ? {} : { [DB_COLLECTION]: table }),
    ...(outcome === "ok" ? {} : { [ERROR_TYPE]: outcome }),
  };
}

/** Returns how a store is called in `db.system.name`, and its table on DynamoDB. */
export function databaseOf({ repository }: RateLimiter): DatabaseName {
  return repository[INTERNALS].database;
}
