/** `store copy`: moves everything in a store to another one, and compares both. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { NamespaceNotFoundError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  parseStoreUrl,
  placeName,
  type StoreLocation,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import type {
  CopiedNamespace,
  CopyProgress,
  CopyReport,
} from "@zae-limiter/limiter/transfer/copy-report.ts";
import type { CopyOptions } from "@zae-limiter/limiter/transfer/copy-store.ts";
import { type Call, CommandFailure, leaf, type Result } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { isMissing, reading } from "../../store/open-store.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions } from "../../store/principal.ts";
import { STORE_OPTIONS } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { jsonOf } from "../../terminal/json.ts";
import { counted } from "../../terminal/limit-text.ts";
import { withThousands } from "../../terminal/numbers.ts";
import { right, table } from "../../terminal/table.ts";

interface Options extends PrincipalOptions {
  readonly namespace: readonly string[];
  readonly live?: boolean;
  readonly dryRun?: boolean;
  readonly timeout: number;
}

const DIFFERENCE_SHAPE = { kind: "text", name: "text", difference: "text" } as const;
const COUNTS = ["entities", "limits", "buckets", "usage", "audit", "others"] as const;
const NAMESPACE_SHAPE = {
  name: "text",
  from_id: "text",
  to_id: "text",
  resumed: "boolean",
  entities: "number",
  limits: "number",
  buckets: "number",
  usage: "number",
  audit: "number",
  others: "number",
  written: "number",
  left_behind: "number",
  differing: "number",
  differences: [DIFFERENCE_SHAPE],
} as const;

export const copy = leaf<Options>({
  name: "copy",
  summary: "copies entities, limits, usage, audit and balances to another store",
  details:
    "Stop the limiters of the source first: a copy is refused when the source changes meanwhile. " +
    "With --live they may go on, and a run without it ends the copy when they have stopped. An " +
    "interrupted copy goes on with the same command. Both sides are compared at the end; exit " +
    "code 5 says that they differ.",
  arguments: [
    { name: "<from>", text: "address of the store to copy, such as sqlite:limits.db" },
    { name: "<to>", text: "address of the other store, such as postgres://app@db/main" },
  ],
  options: [
    {
      flags: "-N, --namespace <name>",
      text: "namespace to copy, and no other; repeatable",
      repeat: true,
    },
    { flags: "--live", text: "copy while limiters use the source, and then what has changed" },
    { flags: "--dry-run", text: "only count what there is to copy" },
    PRINCIPAL_OPTION,
    ...STORE_OPTIONS.filter(({ flags }) => flags.startsWith("--timeout")),
  ],
  examples: [
    "store copy sqlite:limits.db postgres://app@db/main",
    "store copy sqlite:limits.db dynamodb://limits --live",
  ],
  json: {
    from: "text",
    to: "text",
    dry_run: "boolean",
    same: "boolean",
    namespaces: [NAMESPACE_SHAPE],
  },
  run: (call) => interruptible(call.terminal, (signal) => copied(call, signal)),
});

async function copied(call: Call<Options>, signal: AbortSignal): Promise<Result> {
  const { args, options, terminal } = call;
  const [from = "", to = ""] = args;
  const { namespace, live, dryRun, principal, timeout } = options;
  const { copyStore } = await import("@zae-limiter/limiter/transfer/copy-store.ts");
  const { clock } = terminal;
  const open = defined({ timeoutMs: Math.ceil(timeout * 1000), clock });
  const location = parseStoreUrl(from);
  const given: CopyOptions = {
    from: open,
    to: open,
    signal,
    onProgress: (progress) => call.progress(`${progressText(progress)} `),
    ...defined({ live, dryRun, principal, namespaces: namesOf(namespace, location.namespace) }),
  };
  const work = (readable: StoreLocation) => copyStore(urlOf(readable), to, given);
  try {
    const report = await (isMissing(location) ? work(location) : reading(location, work));
    return resultOf({ ...report, from: placeName(location) }, call);
  } catch (error) {
    if (error instanceof NamespaceNotFoundError) {
      const place = placeName(location);
      throw new CommandFailure(`There is no namespace "${error.namespaceName}" in ${place}`);
    }
    if (signal.aborted && dryRun !== true) {
      call.note("The copy is not complete: the same command goes on where it is");
    }
    throw error;
  }
}

function namesOf(given: readonly string[], addressed: string | undefined) {
  if (given.length > 0) return given;
  return addressed === undefined ? undefined : [addressed];
}

const PHASES = { survey: "Counting", copy: "Copying", compare: "Comparing" } as const;

function progressText({ namespace, phase, done, total }: CopyProgress): string {
  const of = phase === "survey" ? "" : ` of ${withThousands(total)}`;
  return `${PHASES[phase]} ${namespace}: ${withThousands(done)}${of}`;
}

function resultOf(report: CopyReport, { options, terminal }: Call<Options>): Result {
  const { from, to, same, namespaces } = report;
  const dryRun = options.dryRun === true;
  return {
    code: same ? EXIT.ok : EXIT.drift,
    json: () => ({
      from,
      to,
      dry_run: dryRun,
      same,
      namespaces: namespaces.map((each) =>
        jsonOf(NAMESPACE_SHAPE, {
          ...each,
          ...each.counts,
          differences: each.differences.map((one) => jsonOf(DIFFERENCE_SHAPE, { ...one })),
        }),
      ),
    }),
    text: async () => {
      const rows = namespaces.map((each) => [
        each.name,
        ...COUNTS.map((kind) => withThousands(each.counts[kind])),
        withThousands(each.written),
      ]);
      const titles = [...COUNTS, "written"].map((title) => right(title.toUpperCase()));
      const columns = ["NAMESPACE", ...titles];
      const shown = await table(columns, rows, terminal.palette.faint);
      return [shown, ...remarks(namespaces), outcome(report, options)].join("\n");
    },
  };
}

function outcome({ from, to, same, namespaces }: CopyReport, { dryRun, live }: Options): string {
  const what = counted(namespaces.length, "namespace");
  if (dryRun === true) return `Would copy ${what} from ${from} to ${to}. Nothing was written`;
  const isSame = same ? "both sides are the same" : "both sides differ";
  const line = `${same ? "✓" : "✗"} Copied ${what} from ${from} to ${to}: ${isSame}`;
  if (live !== true) return line;
  return `${line}\nThe copy is open: stop the limiters, and end it with a run without --live`;
}

/** Returns lines about what is not the same on both sides. */
function remarks(namespaces: readonly CopiedNamespace[]): string[] {
  return namespaces.flatMap(({ name, leftBehind, differing, differences }) => {
    const left = `${name}: ${counted(leftBehind, "balance")} of limits that only the Python library`;
    const more = differing - differences.length;
    return [
      ...(leftBehind > 0 ? [`${left} enforces stay behind`] : []),
      ...differences.map((one) => `${name}: ${one.difference} there: ${one.name}`),
      ...(more > 0 ? [`${name}: ${withThousands(more)} more differ`] : []),
    ];
  });
}
