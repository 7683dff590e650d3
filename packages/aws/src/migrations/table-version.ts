/** Finds the version of a table: what its version record says, wherever the record is. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { CLIENT_VERSION, parseVersion } from "@zae-limiter/limiter/domain/version.ts";
import { textAt } from "@zae-limiter/limiter/records/fields.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import {
  newVersionItem,
  unprefixedVersionKey,
} from "@zae-limiter/limiter/records/version-record.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import {
  ITEM_ABSENT,
  type ItemStore,
  type Write,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { flat } from "./flat-items.ts";

/** Older than every version, so that all rules look at every item. */
const OLDEST = "0.0.0";

export interface TableVersion {
  /** As it is written in the table; `undefined` where nothing is. */
  readonly stored: string | undefined;
  /** Migrations to later versions than this one are needed. */
  readonly effective: string;
  readonly record: Item | undefined;
  /** The record from before there were namespaces. */
  readonly unprefixed: Item | undefined;
}

/**
 * A record outside every namespace means that other items are there too, whatever the other record
 * says: the Python library makes that as soon as it has created its namespace. Its number says
 * little, as versions were once counted from 1.0.0. `reached` is that of an unfinished migration.
 */
export async function readTableVersion(
  store: ItemStore,
  reached: string | undefined,
): Promise<TableVersion> {
  const [record, nested] = await store.getMany([versionKey(), unprefixedVersionKey()], {
    consistent: true,
  });
  const unprefixed = nested === undefined ? undefined : flat(nested);
  const stored = textAt(record, "schema_version");
  return {
    stored: stored ?? textAt(unprefixed, "schema_version"),
    effective: unprefixed === undefined ? (stored ?? reached ?? OLDEST) : (reached ?? OLDEST),
    record,
    unprefixed,
  };
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
  { record, unprefixed }: TableVersion,
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
    const put = { ...newVersionItem(nowMs), ...kept(unprefixed), ...said };
    return { put, condition: [ITEM_ABSENT] };
  }
  const before = textAt(record, "schema_version");
  return {
    update: versionKey(),
    change: { set: said },
    condition:
      before === undefined
        ? [{ is: "absent", name: "schema_version" }]
        : [{ is: "=", name: "schema_version", value: before }],
  };
}

/** Returns the fields of the old record that a new one would not have. */
function kept(unprefixed: Item | undefined): Record<string, Value> {
  return defined({
    lambda_version: textAt(unprefixed, "lambda_version"),
    client_min_version: textAt(unprefixed, "client_min_version"),
  });
}
