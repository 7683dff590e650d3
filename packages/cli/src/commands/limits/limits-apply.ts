/** `limits apply`: brings what is stored to what the file declares. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { ApplyResult } from "@zae-limiter/limiter/manifest/apply.ts";
import { changeJson, type LimitChange } from "@zae-limiter/limiter/manifest/plan.ts";
import { type Call, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { counted, entriesText, REPLACE_KIND_OPTION } from "../../terminal/limit-text.ts";
import { decimalNumber } from "../../terminal/numbers.ts";
import type { Palette } from "../../terminal/palette.ts";
import {
  comparing,
  FILE_OPTION,
  type FileOptions,
  FULL_OPTION,
  manifestOf,
  QUIET_OPTION,
  type QuietOptions,
} from "./limits-file.ts";
import { CHANGE_SHAPE, changeLines, targetText } from "./limits-text.ts";
import { warningsOf } from "./limits-warnings.ts";

interface ApplyOptions extends FileOptions, PrincipalOptions, QuietOptions {
  readonly wait: number;
  readonly full?: boolean;
}

export const apply = leaf<ApplyOptions>({
  name: "apply",
  summary: "stores what the file declares",
  details:
    "Creates and updates what differs, and removes what it stored earlier and the file no longer " +
    "declares. Limits that were set by hand and are not in the file stay. Registers the " +
    "namespace of the file if it does not exist. Applied again, it changes nothing.",
  options: [
    FILE_OPTION,
    QUIET_OPTION,
    FULL_OPTION,
    REPLACE_KIND_OPTION,
    PRINCIPAL_OPTION,
    {
      flags: "--wait <seconds>",
      text: "how long to wait for another apply of this namespace",
      default: 60,
      parse: decimalNumber(0, 3600),
    },
  ],
  store: "write",
  examples: ["limits apply -f limits.yaml", "limits apply -f limits.yaml --principal ci"],
  json: {
    namespace: "text",
    changes: [{ ...CHANGE_SHAPE, outcome: "text", "error?": "text" }],
    created: "number",
    updated: "number",
    deleted: "number",
    unchanged: "number",
    errors: ["text"],
    warnings: ["text"],
  },
  run: async (call) => {
    const manifest = await manifestOf(call);
    const [store, { applyManifest }] = await Promise.all([
      call.openStore(),
      import("@zae-limiter/limiter/manifest/apply.ts"),
    ]);
    await store.namespaces.register(manifest.namespace);
    const repo = await store.enter(manifest.namespace);
    const work = async (signal: AbortSignal) => {
      const applied = await applyManifest(repo, manifest, {
        ...principalOf(call.options),
        waitMs: call.options.wait * 1000,
        full: call.options.full === true,
        signal,
        onChange: ({ target }) => call.progress(`Applying ${targetText(target)}`),
      }).catch((error: unknown) => {
        // Stopped while it waited for another: there is nothing to report.
        throw signal.aborted ? signal.reason : error;
      });
      if (signal.aborted && applied.skipped.length > 0) throw stopped(call, applied, signal);
      return applied;
    };
    const result = await comparing(call, () => interruptible(call.terminal, work));
    const errors = errorsOf(result);
    const warnings = await warningsOf(manifest, result.plan, repo);
    if (!call.json) {
      for (const line of [...errors, ...warnings.texts]) call.note(line);
    }
    return {
      json: () => ({ ...resultJson(result, errors), warnings: [...warnings.lines] }),
      text: () => resultText(result, call.terminal.palette, call.options),
      code: codeOf(result),
    };
  },
});

/** Reports a stopped apply: finished changes stay and are recorded. */
function stopped(call: Call<ApplyOptions>, result: ApplyResult, signal: AbortSignal): unknown {
  const { applied, skipped } = result;
  call.note(
    `Stopped after ${counted(applied.length, "change")}, before ${skipped.length} more; ` +
      "apply again to continue",
  );
  return signal.reason;
}

function errorsOf({ failed, skipped, unrecorded }: ApplyResult): string[] {
  return [
    ...failed.map(({ change, error }) => `${targetText(change.target)}: ${error.message}`),
    ...(skipped.length === 0 ? [] : [`${counted(skipped.length, "change")} not attempted`]),
    ...(unrecorded === undefined ? [] : [`Not recorded: ${unrecorded.message}`]),
  ];
}

function codeOf({ failed, skipped, unrecorded }: ApplyResult): number {
  const errors = [...failed.map(({ error }) => error), ...(unrecorded ? [unrecorded] : [])];
  if (errors.length + skipped.length === 0) return EXIT.ok;
  const down = errors.every((error) => error instanceof RateLimiterUnavailable);
  return down ? EXIT.unavailable : EXIT.failed;
}

function resultText(
  { plan, applied, failed, skipped }: ApplyResult,
  palette: Palette,
  { quiet = false }: QuietOptions,
): string {
  const { namespace, changes, unchanged, adopted } = plan;
  if (changes.length === 0) {
    const managed = adopted.length === 0 ? "" : `, ${adopted.length} managed from now on`;
    return `No changes: ${entriesText(unchanged)} in ${namespace} as declared${managed}`;
  }
  const left = failed.length + skipped.length;
  const total =
    `${palette.good("Applied")} to ${namespace}: ${countOf(applied, "create")} created, ` +
    `${countOf(applied, "update")} updated, ${countOf(applied, "delete")} deleted` +
    (left === 0 ? "" : `, ${palette.bad(`${left} not done`)}; apply again to continue`);
  const lines = quiet ? [] : applied.map((change) => changeLines(change, palette));
  return [...lines, total].join("\n");
}

function resultJson(
  result: ApplyResult,
  errors: readonly string[],
): Readonly<Record<string, JsonValue>> {
  const { plan, applied } = result;
  return {
    namespace: plan.namespace,
    changes: plan.changes.map((change) => ({
      ...changeJson(change),
      ...outcomeOf(result, change),
    })),
    created: countOf(applied, "create"),
    updated: countOf(applied, "update"),
    deleted: countOf(applied, "delete"),
    unchanged: plan.unchanged,
    errors,
  };
}

function outcomeOf(
  { applied, failed }: ApplyResult,
  change: LimitChange,
): { outcome: string; error?: string } {
  if (applied.includes(change)) return { outcome: "applied" };
  const failure = failed.find((candidate) => candidate.change === change);
  if (failure === undefined) return { outcome: "skipped" };
  return { outcome: "failed", error: failure.error.message };
}

function countOf(changes: readonly LimitChange[], action: LimitChange["action"]): number {
  return changes.filter((change) => change.action === action).length;
}
