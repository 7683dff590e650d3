/** Options of the commands that run a scenario. */

import { parseThreshold, type Threshold } from "@zae-limiter/loadtest/threshold.ts";
import { type ArgumentSpec, type OptionSpec, UsageError } from "../frame/command.ts";
import type { StoreOptions } from "../store/store-options.ts";
import { decimalNumber, wholeNumber } from "../terminal/numbers.ts";

const USERS_MAX = 100_000;
const RATE_MAX = 1_000_000;
const WORKERS_MAX = 1000;
const SECONDS_MAX = 86_400;

/** Options of every command with a scenario. */
export interface ScenarioOptions extends StoreOptions {
  readonly file: string;
}

/** How much load, and for how long. */
export interface LoadOptions extends ScenarioOptions {
  readonly users: number;
  readonly spawnRate: number;
  readonly duration: number;
  readonly workers: number;
  readonly rate?: number;
}

export const CLASSES_ARGUMENT: ArgumentSpec = {
  name: "[classes...]",
  text: "user classes to run; all of the scenario when absent",
};

export const FILE_OPTION: OptionSpec = {
  flags: "-f, --file <file>",
  text: "the scenario, in JavaScript or TypeScript",
  required: true,
};

export const USERS_OPTION: OptionSpec = {
  flags: "-u, --users <n>",
  text: "users at the same time; with --rate, identities that arrivals use in turn",
  default: 20,
  parse: wholeNumber(1, USERS_MAX),
};

export const WORKERS_OPTION: OptionSpec = {
  flags: "-w, --workers <n>",
  text: "processes that make the load",
  default: 1,
  parse: wholeNumber(1, WORKERS_MAX),
};

export const LOAD_OPTIONS: readonly OptionSpec[] = [
  USERS_OPTION,
  {
    flags: "--spawn-rate <n>",
    text: "users that begin per second",
    default: 10,
    parse: decimalNumber(0.01, USERS_MAX),
  },
  {
    flags: "-d, --duration <seconds>",
    text: "how long it runs",
    default: 60,
    parse: decimalNumber(0.1, SECONDS_MAX),
  },
  {
    flags: "--rate <n>",
    text: "arrivals per second, whether or not earlier tasks have ended",
    parse: decimalNumber(0.01, RATE_MAX),
  },
  WORKERS_OPTION,
];

export const FAIL_IF_OPTION: OptionSpec = {
  flags: "--fail-if <condition>",
  text: 'exit code 1 if it holds: "p99>50ms", "errors>0.1%", "rate<1000"',
  repeat: true,
  parse: (text): Threshold => {
    try {
      return parseThreshold(text);
    } catch (error) {
      throw new UsageError((error as { reason?: string }).reason ?? String(error));
    }
  },
};
