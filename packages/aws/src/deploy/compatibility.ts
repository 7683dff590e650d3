/** Which version a table has, and whether this client may change anything about it. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import {
  CLIENT_VERSION,
  type Compatibility,
  checkCompatibility,
  SCHEMA_VERSION,
} from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { decodeVersion, type VersionRecord } from "@zae-limiter/limiter/records/version-record.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import type { StoreLocation } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Aws } from "../client/aws.ts";
import { readState } from "../migrations/migration-state.ts";
import { isAfter } from "../migrations/registry.ts";
import { readTableVersion, type TableVersion } from "../migrations/table-version.ts";
import { describeTable, isLimiterTable } from "../stack/live-table.ts";
import { openRecords } from "../stack/table-records.ts";

/** What a table says about itself, and what that means for this client. */
interface VersionFinding {
  readonly record: VersionRecord;
  readonly compatibility: Compatibility;
  /** The version it really has: records from before there were namespaces counted differently. */
  readonly effective: string;
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

/** The same as `refuseNewer`, where the table may be missing or not made by this library. */
export async function refuseNewerTable(
  aws: Aws,
  table: string,
  options: DynamoOptions,
): Promise<void> {
  const live = await describeTable(aws, table);
  if (live === undefined || !isLimiterTable(live)) return;
  if (!ANSWERING.includes(live.TableStatus ?? "ACTIVE")) return;
  const records = await openRecords(table, options);
  try {
    await refuseNewer(records.store);
  } finally {
    await records.close();
  }
}

/**
 * Throws where the table is too new for this client. One that is too old, or halfway, may be
 * brought up to date: that is what deploying and upgrading are for.
 */
export async function refuseNewer(store: ItemStore): Promise<void> {
  const found = await versionIn(store);
  if (found === undefined || found.compatibility.compatible) return;
  const { record, compatibility, effective } = found;
  if (compatibility.needsMigration && !isAfter(effective, SCHEMA_VERSION)) return;
  const reason = compatibility.needsMigration
    ? `The newest that it knows is ${SCHEMA_VERSION}`
    : compatibility.message;
  throw new IncompatibleSchemaError({
    clientVersion: CLIENT_VERSION,
    schemaVersion: record.schemaVersion,
    message: `${reason}. Nothing was changed; install a newer zae-limiter`,
  });
}

async function versionIn(store: ItemStore): Promise<VersionFinding | undefined> {
  const { record, unprefixed, effective } = await visibleVersion(store);
  const item = record ?? unprefixed;
  if (item === undefined) return undefined;
  const decoded = decodeVersion(item);
  const compatibility = checkCompatibility({
    client: CLIENT_VERSION,
    schema: effective,
    clientMin: decoded.clientMinVersion,
    lambda: decoded.aggregatorVersion,
  });
  return { record: decoded, compatibility, effective };
}

/** Tenants may read the registry, and nothing outside of it: for them its record counts. */
async function visibleVersion(
  store: ItemStore,
): Promise<Pick<TableVersion, "record" | "unprefixed" | "effective">> {
  try {
    return await readTableVersion(store, (await readState(store))?.reached);
  } catch (error) {
    if (error instanceof RateLimiterUnavailable) throw error;
    const record = await store.get(versionKey(), { consistent: true });
    if (record === undefined) throw error;
    const effective = decodeVersion(record).schemaVersion;
    return { record, unprefixed: undefined, effective };
  }
}
