/** `stack status`: the state of a stack, a table or a file. */

import { statSync } from "node:fs";
import type { StackStatus } from "@zae-limiter/aws/index.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import { placeName, traitsOf } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { type NamedStack, stackHint } from "../../frame/hint.ts";
import { isMissing, reading } from "../../store/open-store.ts";
import { type StoreOptions, type StorePlace, storePlace } from "../../store/store-options.ts";
import { jsonOf } from "../../terminal/json.ts";
import type { Palette } from "../../terminal/palette.ts";
import { fields } from "../../terminal/table.ts";

const NONE = "N/A";
const MISSING = "Not found";
const NO_STACKS = "None: this endpoint has DynamoDB only";

const STATUS_SHAPE = {
  name: "text",
  region: "text | null",
  available: "boolean",
  latency_ms: "number | null",
  has_stacks: "boolean",
  stack_status: "text | null",
  table_status: "text | null",
  aggregator_enabled: "boolean",
  event_source_state: "text | null",
  client_version: "text",
  schema_version: "text | null",
  lambda_version: "text | null",
  table_item_count: "number | null",
  table_size_bytes: "number | null",
  app_role_arn: "text | null",
  admin_role_arn: "text | null",
  readonly_role_arn: "text | null",
} as const;

export const status = leaf<StoreOptions>({
  name: "status",
  summary: "shows the state of a stack",
  details:
    "Also of a table on a local DynamoDB, or of a file. It changes nothing. Ends with 1 when the " +
    "table does not answer or is too old for this client, the stack failed, or nothing is stored " +
    "yet.",
  store: "read",
  namespaced: false,
  examples: [
    "stack status --name my-app --region eu-west-1",
    "stack status --url sqlite:limits.db",
  ],
  json: STATUS_SHAPE,
  run: async ({ options, terminal }) => {
    const place = storePlace(options, terminal);
    const location = tableOf(place.location);
    if (location === undefined) {
      const file = await fileStatus(place);
      return {
        json: () => jsonOf(STATUS_SHAPE, { ...NO_STACK, ...file }),
        text: () => fileText(file, sizeText(file.tableSizeBytes), terminal.palette),
        code: file.available ? EXIT.ok : EXIT.failed,
      };
    }
    const { stackStatus } = await import("@zae-limiter/aws/stack/stack-status.ts");
    const { table: name, region, endpoint } = location;
    const stack = { name, region, endpoint };
    const found = await stackStatus(name, { ...place.options, ...defined({ region, endpoint }) });
    return {
      json: () => {
        const latencyMs = found.latencyMs && Math.round(found.latencyMs);
        return jsonOf(STATUS_SHAPE, { ...found, latencyMs });
      },
      text: () => toText(found, stack, terminal.palette),
      code: isFine(found) ? EXIT.ok : EXIT.failed,
    };
  },
});

function isFine({ available, stackStatus, tooOld }: StackStatus): boolean {
  if (tooOld !== undefined) return false;
  return isInProgress(stackStatus) || (available && !isFailed(stackStatus));
}

function isFailed(status: string | undefined): boolean {
  return /FAILED|ROLLBACK/.test(status ?? "");
}

function isInProgress(status: string | undefined): boolean {
  return /IN_PROGRESS/.test(status ?? "") && !isFailed(status);
}

function toText(found: StackStatus, stack: NamedStack, palette: Palette): string {
  const { latencyMs } = found;
  const roles = [
    ["App", found.appRoleArn],
    ["Admin", found.adminRoleArn],
    ["ReadOnly", found.readonlyRoleArn],
  ].filter((role): role is [string, string] => role[1] !== undefined);
  const sections: [string, [string, string][]][] = [
    [
      "Connectivity",
      [
        ["Available", found.available ? "yes" : "no"],
        ["Latency", latencyMs === undefined ? NONE : `${Math.round(latencyMs)} ms`],
        ["Region", found.region],
      ],
    ],
    [
      "Infrastructure",
      [
        ["Stack", found.stackStatus ?? (found.hasStacks ? MISSING : NO_STACKS)],
        ["Table", found.tableStatus ?? MISSING],
        ["Aggregator", aggregatorText(found)],
      ],
    ],
    [
      "Versions",
      [
        ["Client", found.clientVersion],
        ["Schema", schemaText(found, stack)],
        ["Lambda", found.lambdaVersion ?? NONE],
      ],
    ],
    [
      "Table",
      [
        ["Items", countText(found.tableItemCount)],
        ["Size", sizeText(found.tableSizeBytes)],
      ],
    ],
    ...(roles.length === 0 ? [] : ([["Roles", roles]] as [string, [string, string][]][])),
  ];
  const blocks = sections.map(
    ([title, rows]) => `${palette.title(title)}\n${fields(rows, palette.faint)}`,
  );
  return [`${palette.title(found.name)}`, ...blocks, ...closing(found, stack, palette)].join(
    "\n\n",
  );
}

function schemaText({ schemaVersion, needsMigration }: StackStatus, stack: NamedStack): string {
  if (schemaVersion === undefined) return NONE;
  return needsMigration ? `${schemaVersion}; run: ${stackHint(["upgrade"], stack)}` : schemaVersion;
}

function aggregatorText({ aggregatorEnabled, eventSourceState, hasStacks }: StackStatus): string {
  if (!hasStacks) return "Not known; see: zae-limiter local status";
  if (aggregatorEnabled) return "Enabled";
  return eventSourceState === undefined ? "Disabled" : `Disabled (${eventSourceState})`;
}

function closing(found: StackStatus, stack: NamedStack, palette: Palette): string[] {
  const { available, stackStatus, tableStatus, hasStacks, tooOld } = found;
  if (tooOld !== undefined) return [palette.bad(`✗ Incompatible: ${tooOld}`)];
  if (isFailed(stackStatus)) return [palette.bad(`✗ The last operation failed: ${stackStatus}`)];
  if (isInProgress(stackStatus)) return [`⏳ An operation is under way: ${stackStatus}`];
  if (tableStatus === undefined && !hasStacks) {
    return [
      palette.bad(`✗ There is no table ${stack.name} here. Create it with Repository.createTable`),
    ];
  }
  if (tableStatus === undefined && stackStatus === undefined) {
    return [palette.bad(`✗ Not deployed here. Deploy it with: ${stackHint(["deploy"], stack)}`)];
  }
  if (!available) return [palette.bad("✗ The table does not answer")];
  return [palette.good("✓ Ready")];
}

/** Returns a rounded count: DynamoDB counts every six hours. */
export function countText(count: number | undefined): string {
  if (count === undefined) return NONE;
  if (count >= 1e6) return `~${(count / 1e6).toFixed(1)}M`;
  return count >= 1000 ? `~${(count / 1000).toFixed(1)}K` : `~${count}`;
}

export function sizeText(bytes: number | undefined): string {
  if (bytes === undefined) return NONE;
  const units = ["KB", "MB", "GB"];
  if (bytes < 1024) return `~${bytes} B`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), units.length);
  return `~${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}

interface FileStatus {
  readonly name: string;
  /** Whether there is a store that can be read. */
  readonly available: boolean;
  readonly schemaVersion: string | undefined;
  readonly tableSizeBytes: number | undefined;
}

/** Reads the status of a store that is not on DynamoDB, and changes nothing. */
async function fileStatus({ location, options }: StorePlace): Promise<FileStatus> {
  const name = placeName(location);
  const file = fileOf(location);
  if (!traitsOf(location).isShared || isMissing(location)) {
    return { name, available: false, schemaVersion: undefined, tableSizeBytes: undefined };
  }
  const { findVersion } = await import("@zae-limiter/aws/deploy/compatibility.ts");
  const found = await reading(location, (readable) => findVersion(readable, options));
  return {
    name,
    available: found !== undefined,
    schemaVersion: found?.record.schemaVersion,
    tableSizeBytes: file === undefined ? undefined : statSync(file.path).size,
  };
}

function fileText(found: FileStatus, size: string, palette: Palette): string {
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

/** The fields about stacks in the status of a file. */
const NO_STACK = {
  hasStacks: false,
  aggregatorEnabled: false,
  clientVersion: CLIENT_VERSION,
} as const;
