/** Opens schemas on PostgreSQL. Loaded when one is first opened. */

import { defined } from "../../base/defined.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { AddressConnection, type PostgresConnection } from "../../storage/postgres/connection.ts";
import { PostgresItemTable } from "../../storage/postgres/item-table.ts";
import {
  checkSchemaVersion,
  type Migrated,
  migratePostgres,
} from "../../storage/postgres/migrate.ts";
import { checkRole, checkSchema, DEFAULT_SCHEMA } from "../../storage/postgres/schema/names.ts";
import type { Backend } from "../backend.ts";
import type { MigrateOptions, PostgresOptions } from "../options.ts";
import { openItemTable } from "./open-item-table.ts";
import { postgres, type SchemaLocation } from "./postgres.ts";
import { SHARED_OPTIONS } from "./shared-options.ts";

/** Migrations may wait for locks of others, and build indexes. */
const MIGRATION_TIMEOUT_MS = 60_000;

/** Opens the schema of an address. */
export async function openPostgres(
  location: SchemaLocation,
  options: PostgresOptions,
): Promise<Backend> {
  return openOn(await connectTo(location, timeoutOf(options)), options);
}

/** Creates the schema of an address, or brings it to this release. */
export async function migrateAt(
  location: SchemaLocation,
  { grant, rls, timeoutMs = MIGRATION_TIMEOUT_MS }: MigrateOptions,
): Promise<Migrated> {
  if (grant !== undefined) checkRole(grant);
  const connection = await connectTo(location, timeoutMs);
  try {
    return await migratePostgres(connection, { timeoutMs, ...defined({ grant, rls }) });
  } finally {
    await connection.close();
  }
}

/** Puts the records and the buckets on a connection, and closes it when that cannot be. */
export async function openOn(
  connection: PostgresConnection,
  options: PostgresOptions,
): Promise<Backend> {
  try {
    await checkSchemaVersion(connection, { timeoutMs: timeoutOf(options) });
  } catch (error) {
    await connection.close();
    throw error;
  }
  const { place, schema } = connection;
  const name = schema === DEFAULT_SCHEMA ? place : `${place} (schema ${schema})`;
  const known = { name, database: { system: "postgresql" }, traits: postgres.traits };
  const { durable } = options;
  return openItemTable(known, new PostgresItemTable(connection, { durable }), options);
}

/**
 * Refuses a client inside a transaction: its rollback would undo a grant. A block that commits is
 * allowed outside of one only.
 */
export async function refuseTransaction(
  connection: PostgresConnection,
  options: PostgresOptions,
): Promise<void> {
  try {
    await connection.query("DO $zael$ BEGIN COMMIT; END $zael$", [], {
      timeoutMs: timeoutOf(options),
    });
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
    if (code !== "2D000" && !/invalid transaction termination/i.test(String(error))) throw error;
    throw new ValidationError(
      "pool",
      undefined,
      "expected a pool, got a client inside a transaction: its rollback would undo what the " +
        "limiter has granted",
      { cause: error },
    );
  }
}

function connectTo(
  { connection, place, schema }: SchemaLocation,
  timeoutMs: number,
): Promise<AddressConnection> {
  const at = { place, schema: checkSchema(schema ?? DEFAULT_SCHEMA) };
  return AddressConnection.open(connection, at, timeoutMs);
}

function timeoutOf({ timeoutMs = SHARED_OPTIONS.timeoutMs.default }: PostgresOptions): number {
  return timeoutMs;
}
