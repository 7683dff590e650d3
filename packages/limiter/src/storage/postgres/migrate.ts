/** Creates the schema of a store, or brings it to the version of this release. */

import { InfrastructureError, InfrastructureNotFoundError } from "../../domain/errors/errors.ts";
import { IncompatibleSchemaError } from "../../domain/errors/version-errors.ts";
import { CLIENT_VERSION } from "../../domain/version.ts";
import type { TableCallOptions } from "../item-table.ts";
import type { PostgresConnection } from "./connection.ts";
import { howToMigrate } from "./errors.ts";
import { MIGRATIONS, type Migration } from "./schema/migrations.ts";
import { literal, quoted } from "./schema/names.ts";
import { OTHER_VERSION, schemaText } from "./schema/schema-text.ts";

/** Two processes that migrate at once: the second begins again, with what the first has left. */
const ATTEMPTS_MAX = 3;

export interface MigratePostgresOptions {
  /** A role that may use the schema, and not change it. */
  readonly grant?: string | undefined;
  readonly rls?: boolean | undefined;
}

/** The versions of a schema before and after. */
export interface Migrated {
  readonly from: number;
  readonly to: number;
}

/** Brings the schema to the newest version; refuses one that is newer. */
export async function migratePostgres(
  connection: PostgresConnection,
  options: MigratePostgresOptions & TableCallOptions,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<Migrated> {
  const { schema } = connection;
  const { grant, rls } = options;
  const to = migrations.at(-1)?.version ?? 0;
  for (let attempt = 1; ; attempt += 1) {
    const from = (await versionOf(connection, options))?.version ?? 0;
    if (from > to) throw newer(schema, from, to);
    if (from === to && grant === undefined && rls !== true && from > 0) return { from, to };
    try {
      // Several statements in one text without values are one transaction.
      await connection.query(schemaText({ schema, from, grant, rls }, migrations), [], options);
      return { from, to };
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
      if (code !== OTHER_VERSION || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** Checks that this release can work with the schema. Writes nothing. */
export async function checkSchemaVersion(
  connection: PostgresConnection,
  options: TableCallOptions,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const { place, schema } = connection;
  const known = migrations.at(-1)?.version ?? 0;
  const found = await versionOf(connection, options);
  if (found === undefined || found.version < known) {
    const state = found === undefined ? "is missing" : `has version ${found.version} of ${known}`;
    const message = `The schema "${schema}" of ${place} ${state}. ${howToMigrate(schema)}`;
    throw new InfrastructureNotFoundError(`${place} ${schema}`, { message });
  }
  if (found.clientMin > known) throw newer(schema, found.version, known);
}

/** Returns the version of the schema; `undefined` when there is none. */
async function versionOf(
  connection: PostgresConnection,
  options: TableCallOptions,
): Promise<{ version: number; clientMin: number } | undefined> {
  const table = `${quoted(connection.schema)}.schema_version`;
  // Without a right to the schema, its table cannot be found either: that is an error to name.
  const [there] = await connection.query(
    `SELECT (to_regclass(${literal(table)}) IS NOT NULL)::text AS is_there`,
    [],
    options,
  );
  if (there?.["is_there"] !== "true") return undefined;
  const [row] = await connection.query(
    `SELECT version::text AS version, client_min::text AS client_min FROM ${table}`,
    [],
    options,
  );
  if (row === undefined) {
    throw new InfrastructureError(
      `The schema "${connection.schema}" of ${connection.place} shows this user no rows: row ` +
        "level security is on and has no policy for it. Add one with `zae-limiter db migrate " +
        "--rls --grant <role>`, or connect as the owner of the tables",
    );
  }
  return { version: Number(row["version"]), clientMin: Number(row["client_min"]) };
}

function newer(schema: string, found: number, known: number): IncompatibleSchemaError {
  return new IncompatibleSchemaError({
    clientVersion: CLIENT_VERSION,
    schemaVersion: String(found),
    message:
      `The schema "${schema}" on PostgreSQL is newer than this release, which knows versions up ` +
      `to ${known}: update the package zae-limiter`,
  });
}
