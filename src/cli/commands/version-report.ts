/** The versions of a stack, and whether they fit: for `version`, `check` and `upgrade`. */

import { CLIENT_VERSION, type Compatibility, SCHEMA_VERSION } from "../../domain/version.ts";
import type { VersionRecord } from "../../records/version-record.ts";
import type { StackPlace } from "./deploy-place.ts";

export interface VersionReport {
  /** `undefined`: the table says nothing about itself. */
  readonly record: VersionRecord | undefined;
  readonly compatibility: Compatibility | undefined;
}

/** Reads and changes nothing, whether or not this client may use the table. */
export async function versionReport({ stackName, connection }: StackPlace): Promise<VersionReport> {
  const { findVersion } = await import("../../infra/compatibility.ts");
  const found = await findVersion(stackName, connection);
  return { record: found?.record, compatibility: found?.compatibility };
}

export function verdictOf({ compatibility }: VersionReport): string {
  if (compatibility === undefined) return "uninitialised";
  if (!compatibility.compatible) return "incompatible";
  const { needsLambdaUpdate, needsMigration } = compatibility;
  return needsLambdaUpdate || needsMigration ? "update_available" : "compatible";
}

export const REPORT_SHAPE = {
  status: "text",
  message: "text",
  client_version: "text",
  client_schema_version: "text",
  schema_version: "text | null",
  lambda_version: "text | null",
  client_min_version: "text | null",
} as const;

export function reportJson(report: VersionReport) {
  const { record, compatibility } = report;
  return {
    status: verdictOf(report),
    message: compatibility?.message ?? "",
    client_version: CLIENT_VERSION,
    client_schema_version: SCHEMA_VERSION,
    schema_version: record?.schemaVersion ?? null,
    lambda_version: lambdaOf(record) ?? null,
    client_min_version: record?.clientMinVersion ?? null,
  };
}

/** Ours, or that of the Python library where it runs. */
export function lambdaOf(record: VersionRecord | undefined): string | undefined {
  return record?.aggregatorVersion ?? record?.lambdaVersion;
}

/** The closing line. */
export function verdictText(report: VersionReport, stackName: string): string {
  const message = report.compatibility?.message ?? "";
  switch (verdictOf(report)) {
    case "uninitialised":
      return `Not initialised: the table has no version record. Run: zae-limiter deploy --name ${stackName}`;
    case "incompatible":
      return `✗ Incompatible: ${message}`;
    case "update_available":
      return `✓ Compatible; an update is available: ${message || "run upgrade"}. Run: zae-limiter upgrade --name ${stackName}`;
    default:
      return "✓ Compatible";
  }
}
