/** Finds the version of a table, and refuses a layout that cannot be migrated. */

import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import {
  CLIENT_VERSION,
  checkCompatibility,
  parseVersion,
  SCHEMA_VERSION_MIN,
  WITHOUT_NAMESPACES,
} from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import {
  decodeVersion,
  incompatibleError,
  newVersionItem,
  unprefixedVersionKey,
} from "@zae-limiter/limiter/records/version-record.ts";
import { type Item, textAt } from "@zae-limiter/limiter/storage/item.ts";
import {
  ITEM_ABSENT,
  type ItemStore,
  type Write,
} from "@zae-limiter/limiter/storage/item-store.ts";

/** The version records of a table. */
export interface VersionItems {
  readonly record: Item | undefined;
  /**
   * The record from before there were namespaces. Where it is, other items are outside every
   * namespace too, whatever the other record says: the Python library writes that one as soon as
   * it has created its namespace.
   */
  readonly unprefixed: Item | undefined;
}

/** The version of a table that can be migrated. */
export interface TableVersion {
  /** As it is written in the table; `undefined` where nothing is. */
  readonly stored: string | undefined;
  /** Migrations to later versions than this one are needed. */
  readonly effective: string;
  readonly record: Item | undefined;
}

/** Reads the version records, wherever they are. */
export async function readVersionItems(store: ItemStore): Promise<VersionItems> {
  const [record, unprefixed] = await store.getMany([versionKey(), unprefixedVersionKey()], {
    consistent: true,
  });
  return { record, unprefixed };
}

/**
 * Reads the version of a table. Refuses a layout that is older than all migrations. A table without
 * a record counts as the oldest that can be migrated, so that all rules read every item.
 */
export async function readTableVersion(store: ItemStore): Promise<TableVersion> {
  const { record, unprefixed } = await readVersionItems(store);
  if (unprefixed !== undefined) {
    const { schemaVersion } = decodeVersion(record ?? unprefixed);
    throw incompatibleError({ schemaVersion, message: WITHOUT_NAMESPACES.message });
  }
  const stored = textAt(record, "schema_version");
  if (stored !== undefined) refuseTooOld(stored);
  return { stored, effective: stored ?? SCHEMA_VERSION_MIN, record };
}

/** Parses a version; refuses a version record that cannot be read instead of guessing. */
export function knownVersion(text: string): NonNullable<ReturnType<typeof parseVersion>> {
  const version = parseVersion(text);
  if (version !== undefined) return version;
  throw new IncompatibleSchemaError({
    clientVersion: CLIENT_VERSION,
    schemaVersion: text,
    message: `"${text}" is not a version: correct the version record of the table first`,
  });
}

/** Returns the write of a version, on the condition that the record is unchanged. */
export function versionWrite(
  { record, stored }: TableVersion,
  version: string,
  nowMs: number,
  updatedBy: string | undefined,
): Write {
  const said = {
    schema_version: version,
    updated_at: isoSeconds(nowMs),
    updated_by: updatedBy ?? `client:${CLIENT_VERSION}`,
  };
  if (record === undefined) {
    return { put: { ...newVersionItem(nowMs), ...said }, condition: [ITEM_ABSENT] };
  }
  return {
    update: versionKey(),
    change: { set: said },
    condition:
      stored === undefined
        ? [{ is: "absent", name: "schema_version" }]
        : [{ is: "=", name: "schema_version", value: stored }],
  };
}

function refuseTooOld(schemaVersion: string): void {
  const { isTooOld, message } = checkCompatibility({
    client: CLIENT_VERSION,
    schema: schemaVersion,
    clientMin: "0.0.0",
  });
  if (isTooOld) throw incompatibleError({ schemaVersion, message });
}
