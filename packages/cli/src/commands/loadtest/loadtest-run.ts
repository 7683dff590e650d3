/** `loadtest run`: runs a scenario and shows its results. */

import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { costOf, figuresOf } from "@zae-limiter/loadtest/figures.ts";
import type { MakeFleet } from "@zae-limiter/loadtest/fleet.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import type { Results } from "@zae-limiter/loadtest/results.ts";
import type { Threshold } from "@zae-limiter/loadtest/threshold.ts";
import { type Call, CommandFailure, leaf, UsageError } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import {
  CLASSES_ARGUMENT,
  FAIL_IF_OPTION,
  FILE_OPTION,
  LOAD_OPTIONS,
  type LoadOptions,
} from "../../loadtest/options.ts";
import { type Prepared, planOf, prepare, step } from "../../loadtest/prepared.ts";
import { type LoadReport, reportOf } from "../../loadtest/report.ts";
import { reportHtml } from "../../loadtest/report-html.ts";
import { REPORT_SHAPE, reportCsv, reportJson } from "../../loadtest/report-json.ts";
import { milliseconds, reportText } from "../../loadtest/report-text.ts";
import { localWorkers, runLoad } from "../../loadtest/run.ts";
import { chart } from "../../terminal/chart.ts";
import { Drawing } from "../../terminal/drawing.ts";
import { type Interrupted, interruptible } from "../../terminal/interruption.ts";
import { withThousands } from "../../terminal/numbers.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { connectionOf } from "../stack/deploy-place.ts";

interface RunOptions extends LoadOptions {
  readonly failIf: readonly Threshold[];
  readonly csv?: string;
  readonly html?: string;
  readonly lambda?: true;
}

export const loadtestRun = leaf<RunOptions>({
  name: "run",
  summary: "runs a scenario and shows its results",
  details:
    "Users begin their next task when the last one has ended. With --rate, tasks arrive on a " +
    "schedule instead, and latencies count from the time a task should have started. Ctrl-C ends " +
    "the users and their leases and shows what there is.",
  arguments: [CLASSES_ARGUMENT],
  options: [
    FILE_OPTION,
    ...LOAD_OPTIONS,
    FAIL_IF_OPTION,
    { flags: "--csv <file>", text: "writes a line per second to a file" },
    { flags: "--html <file>", text: "writes a page with charts to a file" },
    { flags: "--lambda", text: "workers are Lambda functions; see loadtest deploy" },
  ],
  store: "write",
  confirms: true,
  examples: [
    "loadtest run -f simple.mjs --duration 10",
    "loadtest run -f max-rps.mjs MaxRpsUser --users 50 --workers 4 --name my-app",
    "loadtest run -f max-rps.mjs --name my-app --lambda --workers 10",
    'loadtest run -f llm.mjs --rate 200 --fail-if "p99>50ms" --fail-if "errors>0.1%"',
  ],
  json: REPORT_SHAPE,
  run: (call) => interruptible(call.terminal, (signal) => run(call, signal)),
});

async function run(call: Call<RunOptions>, signal: AbortSignal) {
  const { options, terminal, json } = call;
  const prepared = await prepare(call);
  const plan = planOf(options, prepared);
  const title = basename(options.file);
  const isLive = terminal.isTerminal && !json;
  const workers = await workersOf(call, prepared, plan);
  await step("setup", prepared);
  const { results, elapsedMs } = await runLoad(
    terminal,
    plan,
    workers.makeFleet,
    signal,
    isLive ? (live, over) => new LiveView(terminal, title, plan, live).follow(over) : undefined,
  )
    .catch(async (error: unknown) => {
      await step("teardown", prepared).catch(() => undefined);
      throw error;
    })
    .finally(workers.close);
  await step("teardown", prepared);
  const { storeName } = prepared;
  const { failIf: thresholds } = options;
  const input = { title, storeName, plan, elapsedMs, results, thresholds };
  const report = reportOf({ ...input, workers: options.workers });
  writeFiles(report, options);
  return {
    json: () => reportJson(report),
    text: async () => `${isLive ? "\n" : ""}${await reportText(report, terminal.palette)}`,
    code: exitCodeOf(report, signal),
  };
}

/** Makes the workers: here, or in Lambda functions after their costs were agreed to. */
async function workersOf(
  call: Call<RunOptions>,
  prepared: Prepared,
  plan: Plan,
): Promise<{ readonly makeFleet: MakeFleet; readonly close: () => void }> {
  const { options, terminal } = call;
  const { workers } = options;
  if (options.lambda !== true) {
    return { makeFleet: localWorkers(prepared, workers), close: () => undefined };
  }
  const location = tableOf(prepared.location);
  if (location === undefined) {
    throw new UsageError("--lambda is for a table on DynamoDB; give its --name");
  }
  const [{ loadFunctionName }, { costText, lambdaWorkers }] = await Promise.all([
    import("@zae-limiter/aws/stack/load-stack.ts"),
    import("../../loadtest/lambda-workers.ts"),
  ]);
  const functionName = loadFunctionName(location.table);
  call.note(costText(plan, workers));
  await call.agree(`Run ${workers} Lambda workers against ${location.table}?`, "run");
  const { region, endpoint } = location;
  const connection = { ...connectionOf(options, terminal), region, endpoint };
  const scenario = basename(options.file);
  return lambdaWorkers(prepared, { functionName, scenario, workers, connection });
}

function exitCodeOf(report: LoadReport, signal: AbortSignal): number {
  if (signal.aborted) return (signal.reason as Interrupted).exitCode;
  return report.broken.length > 0 ? EXIT.failed : EXIT.ok;
}

function writeFiles(report: LoadReport, { csv, html }: RunOptions): void {
  const write = (path: string | undefined, text: (report: LoadReport) => string) => {
    if (path === undefined) return;
    try {
      writeFileSync(path, text(report));
    } catch (error) {
      throw new CommandFailure(`Cannot write ${path}: ${(error as Error).message}`);
    }
  };
  write(csv, reportCsv);
  write(html, reportHtml);
}

const REDRAW_MS = 1000;
const CHART_INTERVALS = 60;

/** Draws a run once a second while it is under way. */
class LiveView {
  readonly #terminal: Terminal;
  readonly #drawing: Drawing;
  readonly #title: string;
  readonly #plan: Plan;
  readonly #results: Results;

  constructor(terminal: Terminal, title: string, plan: Plan, results: Results) {
    this.#terminal = terminal;
    this.#drawing = new Drawing(terminal);
    this.#title = title;
    this.#plan = plan;
    this.#results = results;
  }

  /** Draws until the signal aborts; then removes nothing, because the summary follows. */
  async follow(over: AbortSignal): Promise<void> {
    const { timer } = this.#terminal;
    const startedMs = timer.nowMs();
    while (!over.aborted) {
      await timer.sleep(REDRAW_MS, over);
      if (!over.aborted) this.#drawing.draw(this.#picture(timer.nowMs() - startedMs));
    }
    this.#drawing.leave();
  }

  #picture(elapsedMs: number): string {
    const { palette, columns } = this.#terminal;
    const { intervalMs, durationMs } = this.#plan;
    const intervals = this.#results.intervals;
    const last = intervals.at(-1);
    const seconds = `${Math.floor(elapsedMs / 1000)} of ${Math.round(durationMs / 1000)} s`;
    const heading = `${palette.title(this.#title)}  ${palette.faint(seconds)}`;
    if (last === undefined) return `${heading}\n`;
    const now = figuresOf(last.total(), intervalMs);
    const { total } = this.#results;
    const { counts, acquires } = figuresOf(total.total(), elapsedMs);
    const cost = costOf(total.store, acquires);
    const rates = intervals
      .slice(-CHART_INTERVALS)
      .map((slice) => (slice.total().acquires * 1000) / intervalMs);
    const outcome = (name: keyof typeof counts, paint: (text: string) => string) =>
      counts[name] === 0 ? [] : [paint(`${withThousands(counts[name])} ${name}`)];
    return [
      heading,
      `${withThousands(now.perSecond)} acquires/s, ${withThousands(last.users)} at work; p50 ` +
        `${milliseconds(now.p50Ms)}, p95 ${milliseconds(now.p95Ms)}, p99 ${milliseconds(now.p99Ms)}, ` +
        `max ${milliseconds(now.maxMs)}`,
      [
        ...outcome("granted", palette.good),
        ...outcome("refused", palette.warning),
        ...outcome("degraded", palette.bad),
        ...outcome("failed", palette.bad),
      ].join(", "),
      palette.faint(
        `per acquire: ${cost.callsPerAcquire.toFixed(2)} calls, ` +
          `${cost.writeUnitsPerAcquire.toFixed(2)} WCU, ${cost.readUnitsPerAcquire.toFixed(2)} RCU, ` +
          `$${cost.dollarsPerMillion.toFixed(2)} per million`,
      ),
      ...this.#results.lost.map(({ worker, reason }) =>
        palette.bad(`worker ${worker} died: ${reason}`),
      ),
      chart(rates, { first: `${rates.length} s ago`, last: "now" }, columns),
      "",
    ].join("\n");
  }
}
