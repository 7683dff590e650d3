/** `stack version` and `stack check`: versions, and whether this client can use a store. */

import {
  CLIENT_VERSION,
  type Compatibility,
  SCHEMA_VERSION,
} from "@zae-limiter/limiter/domain/version.ts";
import type { VersionRecord } from "@zae-limiter/limiter/records/version-record.ts";
import { type TableLocation, tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { placeName, type StoreLocation } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { type Leaf, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { stackHint } from "../../frame/hint.ts";
import { isMissing, reading } from "../../store/open-store.ts";
import { type StoreOptions, type StorePlace, storePlace } from "../../store/store-options.ts";
import { jsonOf } from "../../terminal/json.ts";
import { fields } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

const REPORT_SHAPE = {
  status: "text",
  message: "text",
  client_version: "text",
  client_schema_version: "text",
  schema_version: "text | null",
  lambda_version: "text | null",
  client_min_version: "text | null",
} as const;

function rowsOf({ location, record }: VersionReport): [string, string][] {
  const rows: [string, string][] = [
    ["Store", placeName(location)],
    ["Client", CLIENT_VERSION],
    ["Schema of the client", SCHEMA_VERSION],
  ];
  if (record === undefined) return rows;
  rows.push(["Schema of the store", record.schemaVersion]);
  // Embedded stores count usage themselves.
  if (tableOf(location) !== undefined) rows.push(["Lambda", lambdaOf(record) ?? "unknown"]);
  rows.push(["Oldest Python client", record.clientMinVersion]);
  return rows;
}

interface VersionReport {
  readonly location: StoreLocation;
  /** `undefined`: the store has no version record. */
  readonly record: VersionRecord | undefined;
  readonly compatibility: Compatibility | undefined;
}

/** Makes a command that reports the versions of a store; `shown` makes its text and exit code. */
function versionLeaf(
  spec: Pick<Leaf, "name" | "summary" | "details">,
  shown: (report: VersionReport, terminal: Terminal) => { text: string; code: number },
): Leaf {
  return leaf<StoreOptions>({
    ...spec,
    store: "read",
    namespaced: false,
    examples: [`stack ${spec.name} --name my-app`, `stack ${spec.name} --url sqlite:limits.db`],
    json: REPORT_SHAPE,
    run: async ({ options, terminal }) => {
      const report = await versionReport(storePlace(options, terminal));
      const { text, code } = shown(report, terminal);
      return { json: () => reportJson(report), text: () => text, code };
    },
  });
}

/** Reads the versions, whether or not this client may use the store. */
async function versionReport({ location, options }: StorePlace): Promise<VersionReport> {
  if (isMissing(location)) return { location, record: undefined, compatibility: undefined };
  const { findVersion } = await import("@zae-limiter/aws/deploy/compatibility.ts");
  const found = await reading(location, (readable) => findVersion(readable, options));
  return { location, record: found?.record, compatibility: found?.compatibility };
}

function verdictOf({ compatibility }: VersionReport): string {
  if (compatibility === undefined) return "uninitialised";
  if (!compatibility.compatible) return "incompatible";
  const { needsLambdaUpdate, needsMigration } = compatibility;
  return needsLambdaUpdate || needsMigration ? "update_available" : "compatible";
}

function reportJson(report: VersionReport) {
  const { record, compatibility } = report;
  return jsonOf(REPORT_SHAPE, {
    ...record,
    status: verdictOf(report),
    message: compatibility?.message ?? "",
    clientVersion: CLIENT_VERSION,
    clientSchemaVersion: SCHEMA_VERSION,
    lambdaVersion: lambdaOf(record),
  });
}

/** Returns the version of our Lambda, or of that of the Python library where it runs. */
function lambdaOf(record: VersionRecord | undefined): string | undefined {
  return record?.aggregatorVersion ?? record?.lambdaVersion;
}

function verdictText(report: VersionReport): string {
  const { location, compatibility } = report;
  const message = compatibility?.message ?? "";
  const table = tableOf(location);
  switch (verdictOf(report)) {
    case "uninitialised":
      return table === undefined
        ? `Not initialised: nothing is stored in ${placeName(location)} yet`
        : `Not initialised: the table has no version record. Run: ${tableHint("deploy", table)}`;
    case "incompatible":
      return `✗ Incompatible: ${message}`;
    case "update_available":
      return `✓ Compatible; an update is available: ${message || "run upgrade"}${upgradeAdvice(table)}`;
    default:
      return "✓ Compatible";
  }
}

function upgradeAdvice(table: TableLocation | undefined): string {
  return table === undefined ? "" : `. Run: ${tableHint("upgrade", table)}`;
}

function tableHint(command: string, { table, region, endpoint }: TableLocation): string {
  return stackHint([command], { name: table, region, endpoint });
}

export const version = versionLeaf(
  { name: "version", summary: "shows the versions of client, store and Lambda" },
  (report, { palette }) => ({
    text: `${fields(rowsOf(report), palette.faint)}\n\n${verdictText(report)}`,
    code: verdictOf(report) === "incompatible" ? EXIT.failed : EXIT.ok,
  }),
);

const FINE: readonly string[] = ["compatible", "update_available"];

export const check = versionLeaf(
  {
    name: "check",
    summary: "checks whether this client can use a store",
    details: "Ends with 1 when it cannot, or when the store has no version record.",
  },
  (report) => ({
    text: verdictText(report),
    code: FINE.includes(verdictOf(report)) ? EXIT.ok : EXIT.failed,
  }),
);
