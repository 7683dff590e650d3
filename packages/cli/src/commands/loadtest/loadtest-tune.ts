/** `loadtest tune`: finds the number of users per worker with the best throughput. */

import { basename } from "node:path";
import { figuresOf } from "@zae-limiter/loadtest/figures.ts";
import { type Tuned, type TuneStep, tune } from "@zae-limiter/loadtest/tune.ts";
import { type Call, CommandFailure, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import {
  CLASSES_ARGUMENT,
  FILE_OPTION,
  type LoadOptions,
  type ScenarioOptions,
} from "../../loadtest/options.ts";
import { planOf, prepare, step } from "../../loadtest/prepared.ts";
import { milliseconds } from "../../loadtest/report-text.ts";
import { localWorkers, runLoad } from "../../loadtest/run.ts";
import { type Interrupted, interruptible } from "../../terminal/interruption.ts";
import { jsonOf } from "../../terminal/json.ts";
import { decimalNumber, wholeNumber, withThousands } from "../../terminal/numbers.ts";
import { right, table } from "../../terminal/table.ts";

interface TuneCommandOptions extends ScenarioOptions {
  readonly maxUsers: number;
  readonly maxP99: number;
  readonly stepDuration: number;
}

const STEP_SHAPE = {
  users: "number",
  per_second: "number",
  p50_ms: "number",
  p99_ms: "number",
  errors: "number",
} as const;

export const loadtestTune = leaf<TuneCommandOptions>({
  name: "tune",
  summary: "finds the number of users per worker with the best throughput",
  details:
    "Runs the scenario with more and more users, then searches between them. The best number is " +
    "the one with the most acquires per second whose p99 keeps within the bound.",
  arguments: [CLASSES_ARGUMENT],
  options: [
    FILE_OPTION,
    {
      flags: "--max-users <n>",
      text: "the most users to try",
      default: 256,
      parse: wholeNumber(1, 100_000),
    },
    {
      flags: "--max-p99 <ms>",
      text: "the p99 that must not be exceeded",
      default: 50,
      parse: decimalNumber(0.0001, 3_600_000),
    },
    {
      flags: "--step-duration <seconds>",
      text: "how long each number of users is tried",
      default: 5,
      parse: decimalNumber(0.1, 3600),
    },
  ],
  store: "write",
  examples: ["loadtest tune -f max-rps.mjs MaxRpsUser --max-p99 20 --name my-app"],
  json: { best: STEP_SHAPE, curve: [STEP_SHAPE], command: "text | null" },
  run: (call) => interruptible(call.terminal, (signal) => search(call, signal)),
});

async function search(call: Call<TuneCommandOptions>, signal: AbortSignal) {
  const { options, terminal } = call;
  const prepared = await prepare(call);
  await step("setup", prepared);
  const makeFleet = localWorkers(prepared, 1);
  const measure = async (users: number): Promise<TuneStep> => {
    call.progress(`Trying ${users} users for ${options.stepDuration} s`);
    const load: LoadOptions = {
      ...options,
      users,
      workers: 1,
      duration: options.stepDuration,
      spawnRate: Number.POSITIVE_INFINITY,
    };
    const plan = planOf(load, prepared);
    const { results, elapsedMs } = await runLoad(terminal, plan, makeFleet, signal);
    const { perSecond, p50Ms, p99Ms, errors } = figuresOf(results.total.total(), elapsedMs);
    return { users, perSecond, p50Ms, p99Ms, errors };
  };
  const { maxUsers: usersMax, maxP99: p99MsMax } = options;
  const tuned = await tune({ usersMax, p99MsMax, measure, signal });
  call.progress("");
  await step("teardown", prepared);
  if (signal.aborted && tuned.best === undefined) throw signal.reason;
  if (tuned.curve.every(({ perSecond }) => perSecond === 0)) {
    throw new CommandFailure("No acquire ended in any step; is --step-duration too short?");
  }
  const command = commandOf(call, tuned);
  return {
    json: () => ({
      best: tuned.best === undefined ? null : jsonOf(STEP_SHAPE, tuned.best),
      curve: tuned.curve.map((each) => jsonOf(STEP_SHAPE, each)),
      command: command ?? null,
    }),
    text: () => tunedText(call, tuned, command),
    code: codeOf(tuned, signal),
  };
}

function codeOf({ best }: Tuned, signal: AbortSignal): number {
  if (signal.aborted) return (signal.reason as Interrupted).exitCode;
  return best === undefined ? EXIT.failed : EXIT.ok;
}

function commandOf({ options, args, hint }: Call<TuneCommandOptions>, { best }: Tuned) {
  if (best === undefined) return undefined;
  const users = String(best.users);
  return hint("loadtest", "run", "-f", options.file, ...args, "--users", users);
}

async function tunedText(
  { options, terminal }: Call<TuneCommandOptions>,
  { best, curve }: Tuned,
  command: string | undefined,
): Promise<string> {
  const { palette } = terminal;
  const most = Math.max(1, ...curve.map(({ perSecond }) => perSecond));
  const rows = curve.map((each) => [
    withThousands(each.users),
    withThousands(each.perSecond),
    milliseconds(each.p50Ms),
    milliseconds(each.p99Ms),
    withThousands(each.errors),
    `${"█".repeat(Math.round((20 * each.perSecond) / most))}${markOf(each, best, options)}`,
  ]);
  const columns = ["users", "per s", "p50", "p99", "errors"].map(right);
  const shown = await table([...columns, "throughput"], rows, palette.faint);
  const bound = `${options.maxP99} ms`;
  const advice =
    command === undefined
      ? palette.bad(`Not even one user keeps within a p99 of ${bound}: give a larger --max-p99`)
      : `Best within a p99 of ${bound}. Use it with:\n  ${palette.title(command)}`;
  return `${palette.title(basename(options.file))}\n\n${shown}\n\n${advice}`;
}

function markOf(
  each: TuneStep,
  best: TuneStep | undefined,
  { maxP99 }: TuneCommandOptions,
): string {
  if (each === best) return " best";
  return each.p99Ms > maxP99 ? " too slow" : "";
}
