/** A deployment in words: its settings, its changes, its outcome. */

import type {
  Deployed,
  DeployPlan,
  ResourceChange,
  SettingChange,
} from "@zae-limiter/aws/index.ts";
import { isAfter } from "@zae-limiter/aws/migrations/registry.ts";
import {
  type CheckedStackOptions,
  checkStackOptions,
} from "@zae-limiter/aws/options/check-stack-options.ts";
import {
  STACK_OPTION_ENTRIES,
  type StackOption,
} from "@zae-limiter/aws/options/stack-option-table.ts";
import { isManagedTag } from "@zae-limiter/aws/stack/stack-tags.ts";
import { CLIENT_VERSION, SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { type NamedStack, stackHint } from "../../frame/hint.ts";
import type { Palette } from "../../terminal/palette.ts";
import { fields } from "../../terminal/table.ts";

const OFF = "disabled";
const SIGNS: Readonly<Record<string, string>> = { Add: "+", Modify: "~", Remove: "-", Import: ">" };

/** Returns all settings that will be in force. */
export function summaryText(plan: DeployPlan, palette: Palette): string {
  const options = checkStackOptions(plan.options);
  const rows: [string, string][] = [
    ["Stack", plan.stackName],
    ["Table", plan.stackName],
    ["Region", plan.region],
    ...(plan.account === undefined ? [] : ([["Account", plan.account]] as [string, string][])),
    ...optionRows(options),
    ...Object.entries(options.tags ?? {}).map(
      ([key, value]) => ["Tag", `${key}=${value}`] as never,
    ),
  ];
  return fields(rows, palette.faint);
}

function optionRows(options: CheckedStackOptions): [string, string][] {
  const rows = new Map<string, string>();
  for (const [name, option] of STACK_OPTION_ENTRIES) {
    const { row, ofAggregator } = option;
    const text = shownValue(options[name], option);
    if (row === undefined || text === "") continue;
    if (ofAggregator === true && !options.enableAggregator) continue;
    const before = rows.get(row);
    // A part that is disabled has no details.
    if (before !== OFF) rows.set(row, before === undefined ? text : `${before}, ${text}`);
  }
  return [...rows];
}

function shownValue(value: unknown, { shown = String }: StackOption): string {
  if (value === undefined) return "";
  if (typeof value === "boolean") return value ? "enabled" : OFF;
  return shown(value as never);
}

export function planText(plan: DeployPlan): string {
  const verb = plan.kind === "create" ? "will be created" : "will change";
  const adopted = plan.adoptsTable
    ? [`  The table ${plan.stackName} exists already and becomes part of the stack`]
    : [];
  const index =
    plan.addsIndex === undefined
      ? []
      : [`  The table lacks the index ${plan.addsIndex}. It is added first, and alone`];
  const lines = [
    ...adopted,
    ...index,
    ...chosen(plan.settings, plan).map((change) => `  ${settingText(change)}`),
    ...chosen(plan.tags, plan).map((change) => `  tag ${settingText(change)}`),
    ...plan.resources.map((change) => `  ${resourceText(change)}`),
    ...plan.code.map((lambda) => `  ~ code of the ${lambda}`),
  ];
  // A new version may describe the same resources in other words.
  const nothing = ["  only what the stack says about itself: outputs and descriptions"];
  return [`Stack ${plan.stackName} ${verb}:`, ...(lines.length === 0 ? nothing : lines)].join("\n");
}

/** Returns the changes to show: of a new stack only the settings that were given. */
function chosen(changes: readonly SettingChange[], { kind }: DeployPlan): readonly SettingChange[] {
  if (kind !== "create") return changes;
  return changes.filter(({ name }) => name !== "SchemaVersion" && !isManagedTag(name));
}

function settingText({ name, before, after }: SettingChange): string {
  if (before === undefined) return `${name}: ${shown(after)}`;
  return `${name}: ${shown(before)} -> ${shown(after)}`;
}

function shown(value: string | undefined): string {
  return value === undefined || value === "" ? "(none)" : value;
}

function resourceText(change: ResourceChange): string {
  const { action, resource, type, properties } = change;
  const details = properties.length === 0 ? "" : ` (${properties.join(", ")})`;
  return `${SIGNS[action] ?? action} ${resource} ${type}${details}${fateOf(change)}`;
}

function fateOf({ replaced, kept, replacedIfNeeded }: ResourceChange): string {
  if (kept) return ", leaves the stack and is kept";
  if (!replaced) return "";
  return replacedIfNeeded.length === 0 ? ", REPLACED" : ", replaced only if needed";
}

/** Returns `CREATE_COMPLETE` in words. */
function statusWords(status: string): string {
  return status.toLowerCase().replaceAll("_", " ");
}

export function resultText(result: Deployed, stack: NamedStack, palette: Palette): string {
  const { plan, code, records } = result;
  if (result.outcome === "declined") return "Cancelled: nothing was changed";
  if (result.outcome === "started") {
    const follow = `Follow it with: ${stackHint(["status"], stack)}`;
    const rest = `When it is done, upload the code and write the first records with: ${stackHint(["deploy"], stack)}`;
    return `Started: ${statusWords(result.stackStatus)}. ${follow}. ${rest}`;
  }
  const head =
    plan.kind === "nothing" ? "is up to date" : `is deployed (${statusWords(result.stackStatus)})`;
  return [
    `${palette.good("✓")} Stack ${plan.stackName} ${head}`,
    `  ${palette.faint(result.stackId)}`,
    ...code.map(
      ({ functionName, sizeBytes, sha256, changed, version }) =>
        `  ${functionName}: ${(sizeBytes / 1024).toFixed(1)} KB, ${sha256.slice(0, 16)}` +
        `${changed ? "" : fateOfCode(version)}`,
    ),
    ...(result.eventSourceReady === true ? ["  The aggregator reads the stream"] : []),
    ...(result.eventSourceReady === false
      ? [
          `  ${palette.warning("The aggregator does not read the stream yet")}: see ${stackHint(["status"], stack)}`,
        ]
      : []),
    ...(records === undefined ? [] : [`  Namespaces: ${records.namespaces.join(", ")}`]),
    ...schemaLines(result, stack, palette),
  ].join("\n");
}

function fateOfCode(version: string): string {
  if (version === CLIENT_VERSION) return " (as it was)";
  return ` (as it was: version ${version}, which is newer than this client)`;
}

/** Returns lines on the schema: deploying does not change the items of an existing table. */
function schemaLines({ records }: Deployed, stack: NamedStack, palette: Palette): string[] {
  const schema = records?.version.schemaVersion ?? SCHEMA_VERSION;
  if (!isAfter(SCHEMA_VERSION, schema)) return [];
  const command = stackHint(["upgrade"], stack);
  return [`  ${palette.warning(`The table has schema ${schema}`)}: run ${command}`];
}

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
