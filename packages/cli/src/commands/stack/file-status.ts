/** The status of a store in a file, for `stack status`. */

import { statSync } from "node:fs";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import { placeName } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { fields } from "../../frame/fields.ts";
import { isMissing, reading } from "../../store/open-store.ts";
import type { StorePlace } from "../../store/store-options.ts";
import type { Palette } from "../../terminal/palette.ts";

interface FileStatus {
  readonly name: string;
  /** Whether there is a store that can be read. */
  readonly available: boolean;
  readonly schemaVersion: string | undefined;
  readonly tableSizeBytes: number | undefined;
}

/** Opens the file and changes nothing. */
export async function fileStatus({ location, options }: StorePlace): Promise<FileStatus> {
  const name = placeName(location);
  const file = fileOf(location);
  if (file === undefined || isMissing(file)) {
    return { name, available: false, schemaVersion: undefined, tableSizeBytes: undefined };
  }
  const { findVersion } = await import("@zae-limiter/aws/deploy/compatibility.ts");
  const found = await reading(file, (readable) => findVersion(readable, options));
  return {
    name,
    available: found !== undefined,
    schemaVersion: found?.record.schemaVersion,
    tableSizeBytes: statSync(file.path).size,
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

/** What the status of a file says of a stack. */
export const NO_STACK = {
  hasStacks: false,
  aggregatorEnabled: false,
  clientVersion: CLIENT_VERSION,
} as const;
