/** How a store in a file is: for `status`. */

import { statSync } from "node:fs";
import { CLIENT_VERSION } from "../../domain/version.ts";
import { fields } from "../fields.ts";
import { isMissing, reading } from "../open-store.ts";
import type { Palette } from "../palette.ts";
import { placeName, type StorePlace } from "../store-options.ts";

export interface FileStatus {
  readonly name: string;
  /** Whether there is a store that can be read. */
  readonly available: boolean;
  readonly schemaVersion: string | undefined;
  readonly sizeBytes: number | undefined;
}

/** Opens the file and changes nothing. */
export async function fileStatus({ location, options }: StorePlace): Promise<FileStatus> {
  const name = placeName(location);
  if (location.kind !== "sqlite" || isMissing(location)) {
    return { name, available: false, schemaVersion: undefined, sizeBytes: undefined };
  }
  const { findVersion } = await import("../../infra/compatibility.ts");
  const found = await reading(location, (readable) => findVersion(readable, options));
  return {
    name,
    available: found !== undefined,
    schemaVersion: found?.record.schemaVersion,
    sizeBytes: statSync(location.path).size,
  };
}

export function fileText(found: FileStatus, size: string, palette: Palette): string {
  const rows: [string, string][] = [
    ["Client", CLIENT_VERSION],
    ["Schema", found.schemaVersion ?? "N/A"],
    ["Size", size],
  ];
  const closing = found.available
    ? palette.good("✓ Ready")
    : palette.bad(
        `✗ Nothing is stored in ${found.name} yet. For a stack on AWS, pass --name or set ZAEL_STACK`,
      );
  return [palette.title(found.name), fields(rows, palette.faint), closing].join("\n\n");
}

/** The fields of a stack's status, as far as a file has them. */
export function fileJson(found: FileStatus) {
  return {
    name: found.name,
    region: null,
    available: found.available,
    latency_ms: null,
    has_stacks: false,
    stack_status: null,
    table_status: null,
    aggregator_enabled: false,
    event_source_state: null,
    client_version: CLIENT_VERSION,
    schema_version: found.schemaVersion ?? null,
    lambda_version: null,
    table_item_count: null,
    table_size_bytes: found.sizeBytes ?? null,
    app_role_arn: null,
    admin_role_arn: null,
    readonly_role_arn: null,
  };
}
