/** `demo`: a gateway with limits, live, in a temporary store. */

import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { DASHBOARD_OPTIONS, type DashboardFlags } from "../dashboard/options.ts";
import { runDemo, type Shown } from "../demo/demo.ts";
import { nextSteps } from "../demo/next-steps.ts";
import { leaf } from "../frame/command.ts";
import { EXIT } from "../frame/exit-codes.ts";
import { STATUS_SHAPE, statusJson } from "../terminal/bars.ts";
import { finiteOrNull, jsonOf } from "../terminal/json.ts";
import { LIMIT_SHAPE } from "../terminal/limit-text.ts";
import { wholeNumber } from "../terminal/numbers.ts";
import { PLAIN } from "../terminal/palette.ts";

const SEED = 6;

type Options = DashboardFlags & {
  readonly fast?: boolean;
  readonly seed: number;
  readonly dashboard?: boolean;
};

const ENTITY_SHAPE = {
  entity_id: "text",
  parent_id: "text | null",
  source: "text",
  limits: [LIMIT_SHAPE],
} as const;

const CALL_SHAPE = {
  at_seconds: "number",
  entity_id: "text",
  outcome: "text",
  estimated_tokens: "number",
  used_tokens: "number",
  retry_after_seconds: "number | null",
} as const;

const USAGE_SHAPE = {
  entity_id: "text",
  resource: "text",
  window: "text",
  window_start: "text",
  total_events: "number",
  counters: "object",
} as const;

export const demo = leaf<Options>({
  name: "demo",
  summary: "limits at work, live, in a temporary store",
  details:
    "A project with three keys, half a minute of calls to a simulated language model, and what " +
    "became of them. Nothing stays behind. Where there is no terminal, it does not wait. With " +
    "--json, an outcome is answered, refused or failed, and retry_after_seconds is null where " +
    "waiting would not help.",
  options: [
    { flags: "--fast", text: "do not wait: everything at once, as lines" },
    {
      flags: "--seed <n>",
      text: "which traffic: the same number, the same calls",
      default: SEED,
      parse: wholeNumber(0, 1_000_000_000),
    },
    { flags: "--dashboard", text: "live traffic in the browser instead, until Ctrl-C" },
    ...DASHBOARD_OPTIONS,
  ],
  examples: ["demo", "demo --dashboard", "demo --fast --seed 7", "demo --json"],
  json: {
    seed: "number",
    entities: [ENTITY_SHAPE],
    calls: [CALL_SHAPE],
    summary: {
      answered: "number",
      refused: "number",
      failed: "number",
      tokens_estimated: "number",
      tokens_used: "number",
    },
    usage: [USAGE_SHAPE],
    limits: [STATUS_SHAPE],
    next: ["text"],
    lines: ["text"],
  },
  run: async ({ terminal, json, options }) => {
    const { fast = false, seed } = options;
    const random = seededRandom(seed, "demo");
    if (options.dashboard === true) {
      const { runDashboardDemo } = await import("../demo/dashboard-demo.ts");
      return runDashboardDemo(terminal, random, { ...options, json });
    }
    if (!json) {
      const seen = fast ? { ...terminal, isTerminal: false } : terminal;
      await runDemo(seen, random, seen.isTerminal);
      return { code: EXIT.ok };
    }
    let printed = "";
    const out = (text: string) => {
      printed += text;
    };
    const unseen = { ...terminal, out, palette: PLAIN, isTerminal: false };
    const shown = await runDemo(unseen, random, false);
    return {
      json: () => ({
        seed,
        ...shownJson(shown),
        next: nextSteps(terminal.env).map(([command]) => command),
        lines: printed.trimEnd().split("\n"),
      }),
      text: () => printed,
    };
  },
});

function shownJson({ entities, calls, total, usage, statuses }: Shown) {
  const { answered, refused, failed, estimated, used } = total;
  return {
    entities: entities.map((entity) =>
      jsonOf(ENTITY_SHAPE, { ...entity, limits: entity.limits.map((limit) => limit.toJSON()) }),
    ),
    calls: calls.map((call) =>
      jsonOf(CALL_SHAPE, {
        ...call,
        atSeconds: call.atMs / 1000,
        estimatedTokens: call.estimated,
        usedTokens: call.used,
        retryAfterSeconds: finiteOrNull(call.retryAfterSeconds),
      }),
    ),
    summary: { answered, refused, failed, tokens_estimated: estimated, tokens_used: used },
    usage: usage.map((each) => jsonOf(USAGE_SHAPE, { ...each, window: each.windowType })),
    limits: statuses.map(statusJson),
  };
}
