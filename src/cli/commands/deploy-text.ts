/** A deployment in words: what will be, what changes, what became of it. */

import { checkStackOptions } from "../../domain/stack-options.ts";
import type { Deployed, DeployPlan, ResourceChange, SettingChange } from "../../infra/index.ts";
import { fields } from "../fields.ts";
import type { Palette } from "../palette.ts";

const SIGNS: Readonly<Record<string, string>> = { Add: "+", Modify: "~", Remove: "-", Import: ">" };

function onOff(value: boolean): string {
  return value ? "enabled" : "disabled";
}

/** All that will be in force. */
export function summaryText(plan: DeployPlan, region: string, palette: Palette): string {
  const options = checkStackOptions(plan.options);
  const { enableAggregator: aggregator, tags = {} } = options;
  const rows: [string, string][] = [
    ["Stack", plan.stackName],
    ["Table", plan.stackName],
    ["Region", region],
    ["Usage windows", options.snapshotWindows],
    ["Usage kept", `${options.usageRetentionDays} days`],
    ["Audit kept", `${options.auditRetentionDays} days`],
    ["Aggregator", onOff(aggregator)],
    ...(aggregator ? aggregatorRows(plan) : []),
    ["Alarms", onOff(options.enableAlarms)],
    ...(options.alarmSnsTopic === undefined
      ? []
      : ([["Alarm topic", options.alarmSnsTopic]] as [string, string][])),
    ["IAM", onOff(options.createIam)],
    ["Roles", onOff(options.createIamRoles)],
    ["Deletion protection", onOff(options.enableDeletionProtection)],
    ...Object.entries(tags).map(([key, value]): [string, string] => ["Tag", `${key}=${value}`]),
  ];
  return fields(rows, palette.faint);
}

function aggregatorRows(plan: DeployPlan): [string, string][] {
  const options = checkStackOptions(plan.options);
  const archive = options.enableAuditArchival
    ? `enabled, to Glacier after ${options.auditArchiveGlacierDays} days`
    : "disabled";
  return [
    ["Lambda", `${options.lambdaTimeout} s, ${options.lambdaMemory} MB`],
    ["Tracing", onOff(options.enableTracing)],
    ["Audit archive", archive],
    ...(options.aggregatorRoleArn === undefined
      ? []
      : ([["Aggregator role", options.aggregatorRoleArn]] as [string, string][])),
  ];
}

/** What changes, line by line. */
export function planText(plan: DeployPlan): string {
  const verb = plan.kind === "create" ? "will be created" : "will change";
  const adopted = plan.adoptsTable
    ? [`  The table ${plan.stackName} is there already and becomes part of the stack`]
    : [];
  return [
    `Stack ${plan.stackName} ${verb}:`,
    ...adopted,
    ...plan.settings.map((change) => `  ${settingText(change)}`),
    ...plan.tags.map((change) => `  tag ${settingText(change)}`),
    ...plan.resources.map((change) => `  ${resourceText(change)}`),
    ...plan.code.map((lambda) => `  ~ code of the ${lambda}`),
  ].join("\n");
}

function settingText({ name, before, after }: SettingChange): string {
  if (before === undefined) return `${name}: ${shown(after)}`;
  return `${name}: ${shown(before)} -> ${shown(after)}`;
}

function shown(value: string | undefined): string {
  return value === undefined || value === "" ? "(none)" : value;
}

function resourceText({ action, resource, type, replaced, properties }: ResourceChange): string {
  const details = properties.length === 0 ? "" : ` (${properties.join(", ")})`;
  const fate = replaced ? ", REPLACED" : "";
  return `${SIGNS[action] ?? action} ${resource} ${type}${details}${fate}`;
}

/** `CREATE_COMPLETE` as people say it. */
export function statusWords(status: string): string {
  return status.toLowerCase().replaceAll("_", " ");
}

export function resultText(result: Deployed, palette: Palette): string {
  const { plan, code, records } = result;
  if (result.outcome === "declined") return "Cancelled: nothing was changed";
  if (result.outcome === "started") {
    const later = "Follow it with: zae-limiter status";
    const rest = "run deploy again when it is done, for the code and the first records";
    return `Started: ${statusWords(result.stackStatus)}. ${later} --name ${plan.stackName}; ${rest}`;
  }
  const head =
    plan.kind === "nothing" ? "is up to date" : `is deployed (${statusWords(result.stackStatus)})`;
  return [
    `${palette.good("✓")} Stack ${plan.stackName} ${head}`,
    `  ${palette.faint(result.stackId)}`,
    ...code.map(
      ({ functionName, sizeBytes, sha256, changed }) =>
        `  ${functionName}: ${(sizeBytes / 1024).toFixed(1)} KB, ${sha256.slice(0, 16)}` +
        `${changed ? "" : " (as it was)"}`,
    ),
    ...(result.eventSourceReady === true ? ["  The aggregator reads the stream"] : []),
    ...(result.eventSourceReady === false
      ? [`  ${palette.warning("The aggregator does not read the stream yet")}: see status`]
      : []),
    ...(records === undefined ? [] : [`  Namespaces: ${records.namespaces.join(", ")}`]),
  ].join("\n");
}

/** The same for programs. */
export function resultJson(result: Deployed) {
  const { plan } = result;
  return {
    outcome: result.outcome,
    kind: plan.kind,
    stack_name: plan.stackName,
    stack_id: result.stackId,
    stack_status: result.stackStatus,
    settings: plan.settings.map(changeJson),
    tags: plan.tags.map(changeJson),
    resources: plan.resources.map(({ action, resource, type, replaced, properties }) => ({
      action,
      resource,
      type,
      replaced,
      properties: [...properties],
    })),
    code: result.code.map((uploaded) => ({
      function: uploaded.functionName,
      arn: uploaded.functionArn,
      size_bytes: uploaded.sizeBytes,
      sha256: uploaded.sha256,
      changed: uploaded.changed,
    })),
    event_source_ready: result.eventSourceReady ?? null,
    namespaces: [...(result.records?.namespaces ?? [])],
    schema_version: result.records?.version.schemaVersion ?? null,
  };
}

function changeJson({ name, before, after }: SettingChange) {
  return { name, before: before ?? null, after: after ?? null };
}

const CHANGE_SHAPE = { name: "text", before: "text | null", after: "text | null" } as const;

export const RESULT_SHAPE = {
  outcome: "text",
  kind: "text",
  stack_name: "text",
  stack_id: "text",
  stack_status: "text",
  settings: [CHANGE_SHAPE],
  tags: [CHANGE_SHAPE],
  resources: [
    { action: "text", resource: "text", type: "text", replaced: "boolean", properties: ["text"] },
  ],
  code: [
    { function: "text", arn: "text", size_bytes: "number", sha256: "text", changed: "boolean" },
  ],
  event_source_ready: "boolean | null",
  namespaces: ["text"],
  schema_version: "text | null",
} as const;
