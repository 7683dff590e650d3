/** Opens a store for work that reads the whole of it. */

import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Backend } from "@zae-limiter/limiter/repository/backend.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import type { StoreLocation } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";

/** No user waits for one of its calls, and a table that is busy or new may take its time. */
const TIMEOUT_MS = 30_000;

/** An open store that can be scanned, and its clock. */
interface Scannable {
  readonly store: ScanStore;
  readonly clock: Clock;
}

/** Opens the store at a location. Writes nothing. */
export async function openScannable(
  location: StoreLocation,
  options: DynamoOptions,
): Promise<Scannable> {
  return scannableOf(await openBackend(location, { timeoutMs: TIMEOUT_MS, ...options }));
}

/** Returns what a migration needs of an open store; closes and refuses one without `scan`. */
export async function scannableOf(backend: Backend): Promise<Scannable> {
  const { name, store, scannable, clock } = backend;
  if (scannable !== undefined) return { store: scannable, clock };
  await store.close();
  throw new InfrastructureError(`Cannot migrate ${name}: this store cannot be scanned`);
}
