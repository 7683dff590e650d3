/** All migrations, and which of them lead from one version to another. */

import { compareVersions, SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { toCompleteRecords } from "./complete-records.ts";
import { toCompositeLimits } from "./composite-limits.ts";
import { toFlatItems } from "./flat-items.ts";
import type { Migration } from "./migration.ts";
import { toNamespacedKeys } from "./namespaced-keys.ts";
import { knownVersion } from "./table-version.ts";

/**
 * From the oldest to the newest. 0.10.0 is not among them: it stands for local indexes, which only
 * a new table can have and which nothing reads.
 */
export const MIGRATIONS: readonly Migration[] = [
  toFlatItems,
  toCompositeLimits,
  toNamespacedKeys,
  toCompleteRecords,
];

/** Returns the migrations after `from`, up to `to`; none when `to` is older. */
export function migrationsBetween(
  from: string,
  to: string = SCHEMA_VERSION,
  all: readonly Migration[] = MIGRATIONS,
): readonly Migration[] {
  return all.filter(({ version }) => isAfter(version, from) && !isAfter(version, to));
}

export function isAfter(version: string, other: string): boolean {
  return compareVersions(knownVersion(version), knownVersion(other)) > 0;
}
