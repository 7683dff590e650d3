/** Opens a table for migrations: whatever its version is, and without changing anything. */

import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import { checkOpenOptions, parseStoreUrl } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";

/** No user waits for a call of a migration, and a busy table may throttle it for long. */
const TIMEOUT_MS = 30_000;

/** A table, whatever its version. */
export interface OpenTable {
  /** The items of the table. */
  readonly store: ScanStore;
  /** Closes the connection. */
  close(): Promise<void>;
}

/**
 * Opens a table by its address. `Repository.open` refuses a table that is too old; this one takes
 * it as it is.
 *
 * @example
 * ```ts
 * import { openTable, planMigrations } from 'zae-limiter/infra';
 * const table = await openTable('memory:');
 * const { schemaVersion } = await planMigrations(table.store);
 * console.log(schemaVersion); // undefined
 * await table.close();
 * ```
 */
export async function openTable(url: string, options: DynamoOptions = {}): Promise<OpenTable> {
  const location = parseStoreUrl(url);
  checkOpenOptions(options, location);
  const { store } = await openBackend(location, { timeoutMs: TIMEOUT_MS, ...options });
  return { store: store, close: () => store.close() };
}
