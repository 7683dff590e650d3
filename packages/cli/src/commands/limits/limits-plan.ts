/** `limits plan` and `limits diff`: compare the file with what is stored, value by value. */

import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { Manifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import { changeJson, type LimitPlan } from "@zae-limiter/limiter/manifest/plan.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { type Call, leaf, type Shape } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { counted, entriesText, REPLACE_KIND_OPTION } from "../../terminal/limit-text.ts";
import type { Palette } from "../../terminal/palette.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import {
  comparing,
  FILE_OPTION,
  type FileOptions,
  manifestOf,
  QUIET_OPTION,
  type QuietOptions,
} from "./limits-file.ts";
import { CHANGE_SHAPE, changeLines, movedResets, targetText } from "./limits-text.ts";
import { type FileWarnings, warningsOf } from "./limits-warnings.ts";

/** A plan, and whether its namespace is there yet. */
interface Comparison {
  readonly plan: LimitPlan;
  readonly registered: boolean;
  readonly warnings: FileWarnings;
}

const PLAN_SHAPE: Shape = {
  namespace: "text",
  registered: "boolean",
  changes: [CHANGE_SHAPE],
  create: "number",
  update: "number",
  delete: "number",
  unchanged: "number",
  adopted: ["text"],
  forgotten: ["text"],
  warnings: ["text"],
};

export const plan = leaf<FileOptions & QuietOptions>({
  name: "plan",
  summary: "shows what apply would change",
  details: "Compares values, shows before and after, and changes nothing.",
  options: [FILE_OPTION, QUIET_OPTION, REPLACE_KIND_OPTION],
  store: "read",
  examples: ["limits plan -f limits.yaml", "limits plan -f limits.yaml -n my-app --json"],
  json: PLAN_SHAPE,
  run: async (call) => {
    const compared = await compare(call);
    if (!call.json) for (const line of compared.warnings.texts) call.note(line);
    return {
      json: () => comparisonJson(compared),
      text: () => planText(compared, call.terminal, call.options),
    };
  },
});

export const diff = leaf<FileOptions & QuietOptions>({
  name: "diff",
  summary: "exits with 5 when what is stored is not what the file says",
  details: "For CI: exits with 0 when every value is as declared, and changes nothing.",
  options: [FILE_OPTION, QUIET_OPTION, REPLACE_KIND_OPTION],
  store: "read",
  examples: ["limits diff -f limits.yaml"],
  json: PLAN_SHAPE,
  run: async (call) => {
    const compared = await compare(call);
    return {
      json: () => comparisonJson(compared),
      text: () => diffText(compared, call.options, call.terminal.palette),
      code: compared.plan.changes.length === 0 ? EXIT.ok : EXIT.drift,
    };
  },
});

async function compare(call: Call<FileOptions>): Promise<Comparison> {
  const manifest = await manifestOf(call);
  const store = await call.openStore();
  const registered = (await store.namespaces.get(manifest.namespace)) !== undefined;
  const repo = registered ? await store.enter(manifest.namespace) : undefined;
  const plan = await comparing(call, () =>
    repo === undefined ? planOfNew(manifest) : planOfStored(repo, manifest),
  );
  return { registered, plan, warnings: await warningsOf(manifest, plan, repo) };
}

async function planOfStored(repo: Repository, manifest: Manifest): Promise<LimitPlan> {
  const { planManifest } = await import("@zae-limiter/limiter/manifest/apply.ts");
  return planManifest(repo, manifest);
}

/** Plans a namespace that does not exist yet, so nothing is stored. */
async function planOfNew(manifest: Manifest): Promise<LimitPlan> {
  const { planChanges } = await import("@zae-limiter/limiter/manifest/plan.ts");
  return planChanges(manifest, () => undefined, { targets: [], unsettled: [] });
}

function planText(
  { plan, registered }: Comparison,
  terminal: Terminal,
  { quiet = false }: QuietOptions,
): string {
  const { namespace, changes, unchanged, adopted, forgotten } = plan;
  const { palette } = terminal;
  const notes = [
    ...movedResets(changes, (terminal.clock ?? systemClock)()),
    ...(registered
      ? []
      : [`Apply registers the namespace ${namespace}, which does not exist yet.`]),
    ...(adopted.length === 0
      ? []
      : [`Already as declared, managed from now on: ${adopted.map(targetText).join(", ")}.`]),
    ...(forgotten.length === 0
      ? []
      : [`Neither declared nor stored any more: ${forgotten.map(targetText).join(", ")}.`]),
  ];
  const heading =
    changes.length === 0
      ? `No changes: ${entriesText(unchanged)} in ${namespace} as declared`
      : `${counted(changes.length, "change")} in ${namespace} (${totals(plan)})${quiet ? "" : ":"}`;
  const lines = quiet ? [] : changes.map((change) => changeLines(change, palette));
  return [heading, ...lines, ...notes].join("\n");
}

function diffText(
  { plan }: Comparison,
  { file, quiet = false }: FileOptions & QuietOptions,
  palette: Palette,
): string {
  const { namespace, changes, unchanged } = plan;
  if (changes.length === 0) {
    return `No drift: ${entriesText(unchanged)} in ${namespace} as declared in ${file}`;
  }
  const entries = `${entriesText(changes.length)} in ${namespace}`;
  const heading = `Drift: ${entries} not as declared in ${file}`;
  if (quiet) return heading;
  const lines = changes.map((change) => changeLines(change, palette, false));
  return [`${heading} (stored -> declared):`, ...lines].join("\n");
}

function totals(plan: LimitPlan): string {
  return ACTIONS.map((action) => `${countOf(plan, action)} to ${action}`).join(", ");
}

function comparisonJson({ plan, registered, warnings }: Comparison): JsonValue {
  return {
    namespace: plan.namespace,
    registered,
    changes: plan.changes.map((change) => ({ ...changeJson(change) })),
    create: countOf(plan, "create"),
    update: countOf(plan, "update"),
    delete: countOf(plan, "delete"),
    unchanged: plan.unchanged,
    adopted: plan.adopted.map(targetText),
    forgotten: plan.forgotten.map(targetText),
    warnings: [...warnings.lines],
  };
}

const ACTIONS = ["create", "update", "delete"] as const;

function countOf({ changes }: LimitPlan, action: (typeof ACTIONS)[number]): number {
  return changes.filter((change) => change.action === action).length;
}
