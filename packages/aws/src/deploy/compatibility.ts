/** Which version a table has, and whether this client may change anything about it. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import {
  CLIENT_VERSION,
  type Compatibility,
  checkCompatibility,
  SCHEMA_VERSION,
  WITHOUT_NAMESPACES,
} from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { decodeVersion, type VersionRecord } from "@zae-limiter/limiter/records/version-record.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import type { StoreLocation } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Aws } from "../client/aws.ts";
import { readVersionItems, type VersionItems } from "../migrations/table-version.ts";
import { describeTable, isLimiterTable } from "../stack/live-table.ts";
import { openRecords } from "../stack/table-records.ts";

/** The version record of a table, and its meaning for this client. */
interface VersionFinding {
  readonly record: VersionRecord;
  readonly compatibility: Compatibility;
}

/** A table that is being created is empty, and does not answer yet. */
const ANSWERING: readonly string[] = ["ACTIVE", "UPDATING"];

/** Returns `undefined` where the store has no version record. Changes nothing. */
export async function findVersion(
  location: StoreLocation,
  options: DynamoOptions,
): Promise<VersionFinding | undefined> {
  const { store } = await openBackend(location, options);
  try {
    return await versionIn(store);
  } finally {
    await store.close();
  }
}

/** Does what `refuseUnusable` does, where the table may be missing or not made by this library. */
export async function refuseUnusableTable(
  aws: Aws,
  table: string,
  options: DynamoOptions,
): Promise<void> {
  const live = await describeTable(aws, table);
  if (live === undefined || !isLimiterTable(live)) return;
  if (!ANSWERING.includes(live.TableStatus ?? "ACTIVE")) return;
  const records = await openRecords(table, options);
  try {
    await refuseUnusable(records.store);
  } finally {
    await records.close();
  }
}

/**
 * Throws where this client must not change the table: where it is too new, or its layout is older
 * than all that this client can migrate.
 */
export async function refuseUnusable(store: ItemStore): Promise<void> {
  const found = await versionIn(store);
  if (found === undefined || found.compatibility.compatible) return;
  const { needsMigration, isTooOld, message } = found.compatibility;
  const reason = needsMigration ? `The newest that it knows is ${SCHEMA_VERSION}` : message;
  throw new IncompatibleSchemaError({
    clientVersion: CLIENT_VERSION,
    schemaVersion: found.record.schemaVersion,
    message: `${reason}. Nothing was changed${isTooOld ? "" : "; install a newer zae-limiter"}`,
  });
}

async function versionIn(store: ItemStore): Promise<VersionFinding | undefined> {
  const { record, unprefixed } = await visibleRecords(store);
  const item = record ?? unprefixed;
  if (item === undefined) return undefined;
  const decoded = decodeVersion(item);
  if (unprefixed !== undefined) return { record: decoded, compatibility: WITHOUT_NAMESPACES };
  const compatibility = checkCompatibility({
    client: CLIENT_VERSION,
    schema: decoded.schemaVersion,
    clientMin: decoded.clientMinVersion,
    lambda: decoded.aggregatorVersion,
  });
  return { record: decoded, compatibility };
}

/** Tenants may read the registry, and nothing outside of it: for them its record counts. */
async function visibleRecords(store: ItemStore): Promise<VersionItems> {
  try {
    return await readVersionItems(store);
  } catch (error) {
    if (error instanceof RateLimiterUnavailable) throw error;
    const record = await store.get(versionKey(), { consistent: true });
    if (record === undefined) throw error;
    return { record, unprefixed: undefined };
  }
}
