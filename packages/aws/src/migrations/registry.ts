/** All migrations, and which of them lead from one version to another. */

import {
  compareVersions,
  SCHEMA_VERSION,
  SCHEMA_VERSION_MIN,
} from "@zae-limiter/limiter/domain/version.ts";
import { toCompleteRecords } from "./complete-records.ts";
import type { Migration } from "./migration.ts";
import { MigrationError } from "./migration-error.ts";
import { knownVersion } from "./table-version.ts";

/**
 * From the oldest to the newest; the first one takes tables of `SCHEMA_VERSION_MIN`. 0.10.0 is not
 * among them: it introduces local indexes, which only a new table can have and which nothing reads.
 */
export const MIGRATIONS: readonly Migration[] = [toCompleteRecords];

/** Returns the migrations after `from`, up to `to`; none when `to` is older. */
export function migrationsBetween(
  from: string,
  to: string = SCHEMA_VERSION,
  all: readonly Migration[] = MIGRATIONS,
): readonly Migration[] {
  return all.filter(({ version }) => isAfter(version, from) && !isAfter(version, to));
}

/** Returns the migrations that lead back, the newest first; refuses unless all of them can. */
export function migrationsBack(
  from: string,
  to: string,
  all: readonly Migration[] = MIGRATIONS,
): readonly Migration[] {
  if (isAfter(SCHEMA_VERSION_MIN, to)) {
    throw new MigrationError(
      `There is no way back to ${to}: the oldest layout that this version knows is ` +
        `${SCHEMA_VERSION_MIN}. Restore the table from a backup instead`,
      { migration: SCHEMA_VERSION_MIN },
    );
  }
  const back = [...migrationsBetween(to, from, all)].reverse();
  const stuck = back.find(({ rollback }) => rollback === undefined);
  if (stuck === undefined) return back;
  throw new MigrationError(
    `The migration to ${stuck.version} (${stuck.description}) cannot be rolled back. ` +
      "Restore the table from a backup instead",
    { migration: stuck.version },
  );
}

export function isAfter(version: string, other: string): boolean {
  return compareVersions(knownVersion(version), knownVersion(other)) > 0;
}
