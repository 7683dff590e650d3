/** The record that says which versions a table was made and is served by. */

import { defined } from "../base/defined.ts";
import { SHARDS_MAX } from "../core/bucket.ts";
import { isoSeconds } from "../core/windows.ts";
import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { IncompatibleSchemaError } from "../domain/errors/version-errors.ts";
import { RESERVED_NAMESPACE } from "../domain/names.ts";
import { CLIENT_VERSION, checkCompatibility, SCHEMA_VERSION } from "../domain/version.ts";
import { type Item, integerAt, type Key, textAt } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";
import { inNamespace, versionKey } from "./keys.ts";

/**
 * The versions a table was made and is served by.
 *
 * @example
 * ```ts
 * import { Repository, type VersionRecord } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const version: VersionRecord | undefined = await repo.version();
 * console.log(version?.schemaVersion); // 0.11.0
 * await repo.close();
 * ```
 */
export interface VersionRecord {
  readonly schemaVersion: string;
  /** The version of the Python library's Lambda; absent where ours runs. */
  readonly lambdaVersion?: string;
  /** The version of our Lambda; absent where none was deployed. */
  readonly aggregatorVersion?: string;
  /** Older clients must not use the table. */
  readonly clientMinVersion: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly updatedAt: string;
  /** The client that wrote the record. */
  readonly updatedBy?: string;
  /** The most shards that a hot bucket is split into; absent: 64. */
  readonly maxShards?: number;
}

/** Ours: the Python library leaves it. */
const MAX_SHARDS = "max_shards";

/** Checks the most shards of a bucket: counts double, so it is a power of two. */
export function checkMaxShards(value: unknown): number {
  const count = typeof value === "number" ? value : Number.NaN;
  const fits = Number.isInteger(Math.log2(count)) && count >= 1 && count <= SHARDS_MAX;
  if (fits) return count;
  const reason = `expected a power of two from 1 to ${SHARDS_MAX}, got ${show(value)}`;
  throw new ValidationError("maxShards", value, reason);
}

/** Checks a release of the Python library: three numbers. */
export function checkRelease(field: string, value: unknown): string {
  if (typeof value === "string" && /^[0-9]+\.[0-9]+\.[0-9]+$/.test(value)) return value;
  throw new ValidationError(field, value, `expected a release like 0.17.0, got ${show(value)}`);
}

/** Returns the record of a new table. Without a Lambda version Python clients do not update it. */
export function newVersionItem(
  nowMs: number,
  { maxShards, pythonLambdaVersion }: NewVersion = {},
): Item {
  const key = versionKey();
  return {
    ...key,
    ...inNamespace(RESERVED_NAMESPACE, key.PK),
    schema_version: SCHEMA_VERSION,
    lambda_version: pythonLambdaVersion ?? null,
    client_min_version: "0.0.0",
    updated_at: isoSeconds(nowMs),
    updated_by: `client:${CLIENT_VERSION}`,
    ...defined({ [MAX_SHARDS]: maxShards }),
  };
}

/** Optional fields of a new table's record. */
export interface NewVersion {
  readonly maxShards?: number;
  /** Claims a Lambda of the Python library; none when absent. */
  readonly pythonLambdaVersion?: string;
}

export function decodeVersion(item: Item): VersionRecord {
  return defined({
    schemaVersion: textAt(item, "schema_version") ?? "1.0.0",
    lambdaVersion: textAt(item, "lambda_version"),
    aggregatorVersion: textAt(item, "aggregator_version"),
    clientMinVersion: textAt(item, "client_min_version") ?? "0.0.0",
    updatedAt: textAt(item, "updated_at") ?? "",
    updatedBy: textAt(item, "updated_by"),
    maxShards: integerAt(item, MAX_SHARDS, 1, SHARDS_MAX),
  });
}

/** Why this client must not use a table. */
export interface Incompatibility {
  readonly schemaVersion: string;
  readonly message: string;
}

/** Returns what a version record says against this client; `undefined` when it fits. */
export function incompatibleIn(item: Item | undefined): Incompatibility | undefined {
  if (item === undefined) return undefined;
  const { schemaVersion, clientMinVersion, lambdaVersion } = decodeVersion(item);
  const { compatible, message } = checkCompatibility({
    client: CLIENT_VERSION,
    schema: schemaVersion,
    clientMin: clientMinVersion,
    lambda: lambdaVersion,
  });
  return compatible ? undefined : { schemaVersion, message };
}

/** Returns the error for a table that this client must not use. */
export function incompatibleError(found: Incompatibility): IncompatibleSchemaError {
  return new IncompatibleSchemaError({ clientVersion: CLIENT_VERSION, ...found });
}

/** The updatable fields of the record. Only migrations change the schema. */
interface VersionUpdate {
  /** The version of our Lambda; `null` when there is none any more. */
  readonly aggregatorVersion?: string | null;
  /** The version of the Python library's Lambda; `null` when ours has taken its place. */
  readonly lambdaVersion?: string | null;
  readonly clientMinVersion?: string;
  readonly updatedBy?: string;
  readonly maxShards?: number;
}

/** Returns the version record of a table, whether or not this client may use it. */
export async function readVersion(store: ItemStore): Promise<VersionRecord | undefined> {
  const item = await store.get(versionKey(), { consistent: true });
  return item === undefined ? undefined : decodeVersion(item);
}

/** Updates only the given fields; a table without a record gets one of the newest schema. */
export async function writeVersion(
  store: ItemStore,
  update: VersionUpdate,
  nowMs: number,
): Promise<VersionRecord> {
  const changed = defined({
    aggregator_version: update.aggregatorVersion,
    lambda_version: update.lambdaVersion,
    client_min_version: update.clientMinVersion,
    [MAX_SHARDS]: update.maxShards,
    updated_at: isoSeconds(nowMs),
    updated_by: update.updatedBy ?? `client:${CLIENT_VERSION}`,
  });
  const { PK, SK, ...fresh } = newVersionItem(nowMs);
  const defaults = Object.entries(fresh).filter(([name]) => !Object.hasOwn(changed, name));
  const { item } = await store.update(
    { PK, SK },
    { set: changed, setIfAbsent: Object.fromEntries(defaults) },
  );
  return decodeVersion(item as Item);
}

/** Returns the key of the record from before there were namespaces. */
export function unprefixedVersionKey(): Key {
  return { PK: "SYSTEM#", SK: versionKey().SK };
}
