/**
 * Limits as a CloudFormation resource: the same manifest in the words of CloudFormation, whose
 * properties begin with a capital letter and arrive as text.
 */

import { stringify } from "yaml";
import { isPlainObject } from "../domain/check.ts";
import { checkManifest } from "./check-manifest.ts";
import { fullLevelData, type Manifest, manifestData } from "./manifest.ts";
import { InvalidManifestError } from "./problem.ts";

/** The type of the resource, and the name it gets in the template. */
export const CFN_RESOURCE_TYPE = "Custom::ZaeLimiterLimits";
const LOGICAL_ID = "TenantLimits";

/** The name of each property in a manifest. */
const PROPERTY_NAMES: ReadonlyMap<string, string> = new Map([
  ["Namespace", "namespace"],
  ["System", "system"],
  ["Resources", "resources"],
  ["Entities", "entities"],
  ["Children", "children"],
  ["OnUnavailable", "on_unavailable"],
  ["Limits", "limits"],
  ["Capacity", "capacity"],
  ["RefillAmount", "refill_amount"],
  ["RefillPeriod", "refill_period"],
  ["Concurrent", "concurrent"],
  ["Soft", "soft"],
  ["Alerts", "alerts"],
  ["ReplaceKind", "replace_kind"],
  ["Quota", "quota"],
  ["Amount", "amount"],
  ["Every", "every"],
  ["On", "on"],
  ["At", "at"],
  ["Cron", "cron"],
  ["TimeZone", "time_zone"],
  ["Carry", "carry"],
  ["CarryMax", "carry_max"],
  ["SessionSeconds", "session_seconds"],
  ["ResetSchedule", "reset_schedule"],
  ["Tz", "tz"],
  ["Schedule", "schedule"],
  ["When", "when"],
  ["Scale", "scale"],
  ["RefillPeriodSeconds", "refill_period_seconds"],
  ["ResetAfterSeconds", "reset_after_seconds"],
  ["Disabled", "disabled"],
  ["Cascade", "cascade"],
  ["Parent", "parent"],
]);

/** Returns a template with one resource, which keeps the limits of a namespace as declared. */
export function cfnTemplate(
  manifest: Manifest,
  stackName: string,
  { full = false }: { readonly full?: boolean } = {},
): string {
  const ServiceToken = { "Fn::ImportValue": `${stackName}-ProvisionerArn` };
  const Properties = { ServiceToken, ...cfnProperties(manifest, stackName, { full }) };
  return stringify(
    {
      AWSTemplateFormatVersion: "2010-09-09",
      Description: `Limits of the namespace ${manifest.namespace}`,
      Resources: { [LOGICAL_ID]: { Type: CFN_RESOURCE_TYPE, Properties } },
    },
    // CloudFormation reads older YAML, to which the version of the format would be a date.
    { compat: "yaml-1.1", lineWidth: 0, aliasDuplicateObjects: false },
  );
}

/** Returns the properties of such a resource, all but the `ServiceToken`; names are in maps. */
export function cfnProperties(
  manifest: Manifest,
  tableName: string,
  { full = false }: { readonly full?: boolean } = {},
): Readonly<Record<string, unknown>> {
  return {
    TableName: tableName,
    ...(full ? { FullApply: true } : {}),
    ...(propertiesOf(manifestData(manifest, fullLevelData)) as object),
  };
}

/**
 * Reads the manifest in the properties of such a resource. Properties about its place
 * (`ServiceToken`, `ServiceTimeout`, `TableName`, `NamespaceId`) and `FullApply` are no part of it.
 * Throws `InvalidManifestError`.
 */
export function manifestFromProperties(properties: Readonly<Record<string, unknown>>): Manifest {
  const { ServiceToken, ServiceTimeout, TableName, NamespaceId, FullApply, ...declared } =
    properties;
  const checked = checkManifest(renamed({ Namespace: "default", ...declared }, "fields"));
  if ("manifest" in checked) return checked.manifest;
  throw new InvalidManifestError(checked.problems);
}

/** Below these, names are chosen by users. */
const NAMED = new Set(["Resources", "Entities", "Children", "Limits"]);
const NUMBERS = new Set([
  "Capacity",
  "RefillAmount",
  "RefillPeriod",
  "Amount",
  "On",
  "CarryMax",
  "SessionSeconds",
  "ResetAfterSeconds",
  "RefillPeriodSeconds",
]);
const FLAGS = new Set(["ReplaceKind", "Soft", "Disabled", "Cascade", "Concurrent"]);

function renamed(value: unknown, kind: "fields" | "names"): unknown {
  if (Array.isArray(value)) return value.map((part) => renamed(part, kind));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      if (kind === "names") return [name, renamed(part, "fields")];
      const below = NAMED.has(name) ? "names" : "fields";
      return [PROPERTY_NAMES.get(name) ?? name, known(name, part) ?? renamed(part, below)];
    }),
  );
}

/** Returns the value of a number, numbers or a flag; `undefined` for everything else. */
function known(name: string, value: unknown): unknown {
  if (NUMBERS.has(name)) return wholeNumber(value);
  if (name === "Scale" && typeof value === "string") return Number(value);
  if (name === "Alerts" && Array.isArray(value)) return value.map(wholeNumber);
  if (!FLAGS.has(name)) return undefined;
  return value === "true" || value === "false" ? value === "true" : value;
}

/** Returns a whole number from text: CloudFormation passes every number as text. */
function wholeNumber(value: unknown): unknown {
  return typeof value === "string" && /^[0-9]+$/.test(value) ? Number(value) : value;
}

/** Returns the data of a manifest with the field names of CloudFormation; maps keep their names. */
function propertiesOf(data: unknown): unknown {
  if (data instanceof Map) {
    return new Map([...data].map(([name, part]) => [name, propertiesOf(part)]));
  }
  if (Array.isArray(data)) return data.map(propertiesOf);
  if (!isPlainObject(data)) return data;
  const names = new Map([...PROPERTY_NAMES].map(([property, field]) => [field, property]));
  return Object.fromEntries(
    Object.entries(data).map(([field, part]) => [names.get(field), propertiesOf(part)]),
  );
}
