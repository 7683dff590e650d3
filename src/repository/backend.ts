/** Opens the store that a location names. Each adapter is loaded only when it is used. */

import { systemRandom } from "../domain/chance.ts";
import { systemClock } from "../domain/clock.ts";
import type { ItemStore } from "../storage/item-store.ts";
import type { DynamoOptions } from "./options.ts";
import type { StoreLocation } from "./store-url.ts";

/**
 * What a store can do.
 *
 * @example
 * ```ts
 * import { Repository, type BackendCapabilities } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const { supportsInfrastructureManagement }: BackendCapabilities = repo.capabilities;
 * console.log(supportsInfrastructureManagement); // false
 * await repo.close();
 * ```
 */
export interface BackendCapabilities {
  readonly supportsAuditLogging: boolean;
  readonly supportsUsageSnapshots: boolean;
  readonly supportsInfrastructureManagement: boolean;
  readonly supportsChangeStreams: boolean;
  readonly supportsBatchOperations: boolean;
}

/** An open store, and what is known of it. */
export interface Backend {
  readonly kind: StoreLocation["kind"];
  /** The table on DynamoDB; the file on SQLite. */
  readonly name: string;
  readonly store: ItemStore;
  readonly capabilities: BackendCapabilities;
}

export async function openBackend(
  location: StoreLocation,
  options: DynamoOptions,
): Promise<Backend> {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const { timeoutMs, onCall } = options;
  const shared = {
    clock,
    random,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(onCall === undefined ? {} : { onCall }),
  };
  const { kind } = location;
  const capabilities = capabilitiesOf(kind);
  if (kind === "memory") {
    const { MemoryItemStore } = await import("../storage/memory/item-store.ts");
    return { kind, name: "memory", store: new MemoryItemStore(shared), capabilities };
  }
  if (kind === "sqlite") {
    const { openSqlite } = await import("../storage/sqlite/open.ts");
    const { store } = await openSqlite({ path: location.path, ...shared });
    return { kind, name: location.path, store, capabilities };
  }
  const { DynamoItemStore } = await import("../storage/dynamodb/item-store.ts");
  const store = new DynamoItemStore({ ...dynamoOptions(location, options), ...shared });
  return { kind, name: location.table, store, capabilities };
}

/** Where the table is: options beat the URL. */
export function dynamoOptions(
  location: Extract<StoreLocation, { kind: "dynamodb" }>,
  options: DynamoOptions,
) {
  const region = options.region ?? location.region;
  const endpoint = options.endpoint ?? location.endpoint;
  const { credentials, requestHandler, maxAttempts } = options;
  return {
    table: location.table,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    ...(requestHandler === undefined ? {} : { requestHandler }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  };
}

function capabilitiesOf(kind: StoreLocation["kind"]): BackendCapabilities {
  return Object.freeze({
    supportsAuditLogging: true,
    supportsUsageSnapshots: true,
    supportsInfrastructureManagement: kind === "dynamodb",
    supportsChangeStreams: true,
    supportsBatchOperations: true,
  });
}
