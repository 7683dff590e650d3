/** The record that says which versions a table was made and is served by. */

import { isoSeconds } from "../core/windows.ts";
import { RESERVED_NAMESPACE } from "../domain/names.ts";
import { CLIENT_VERSION, SCHEMA_VERSION } from "../domain/version.ts";
import type { Item } from "../storage/item.ts";
import { textAt } from "./fields.ts";
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
  /** Of the Python library's Lambda; absent where ours runs. */
  readonly lambdaVersion?: string;
  /** Older clients must not use the table. */
  readonly clientMinVersion: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly updatedAt: string;
  readonly updatedBy?: string;
}

/** The record of a table that this package makes. Without a Lambda version, Python leaves ours alone. */
export function newVersionItem(nowMs: number): Item {
  const key = versionKey();
  return {
    ...key,
    ...inNamespace(RESERVED_NAMESPACE, key.PK),
    schema_version: SCHEMA_VERSION,
    lambda_version: null,
    client_min_version: "0.0.0",
    updated_at: isoSeconds(nowMs),
    updated_by: `client:${CLIENT_VERSION}`,
  };
}

export function decodeVersion(item: Item): VersionRecord {
  const lambdaVersion = textAt(item, "lambda_version");
  const updatedBy = textAt(item, "updated_by");
  return {
    schemaVersion: textAt(item, "schema_version") ?? "1.0.0",
    ...(lambdaVersion === undefined ? {} : { lambdaVersion }),
    clientMinVersion: textAt(item, "client_min_version") ?? "0.0.0",
    updatedAt: textAt(item, "updated_at") ?? "",
    ...(updatedBy === undefined ? {} : { updatedBy }),
  };
}
