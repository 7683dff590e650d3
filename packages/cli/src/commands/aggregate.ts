/** `aggregate`: follows the changes of a store and counts usage, until it is ended. */

import { statSync } from "node:fs";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import {
  countsUsage,
  placeName,
  type StoreLocation,
  traitsOf,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import { type Call, CommandFailure, leaf, UsageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit-codes.ts";
import { STORE_OPTIONS, type StoreOptions, storePlace } from "../store/store-options.ts";
import { interruptible } from "../terminal/interruption.ts";
import { decimalNumber, wholeNumber } from "../terminal/numbers.ts";

interface AggregateOptions extends StoreOptions {
  readonly windows: string;
  readonly retentionDays: number;
  readonly archive?: string;
  readonly leaseSeconds: number;
  readonly batchSeconds: number;
  readonly batchSize: number;
  readonly reportSeconds: number;
  readonly logLevel: "debug" | "info" | "warning" | "error";
}

export const aggregate = leaf<AggregateOptions>({
  name: "aggregate",
  summary: "counts usage from the stream of a table, until it is ended",
  details:
    "Several processes on one table share the work, and each continues where the last one stopped. " +
    "It logs one JSON object per line. Ctrl-C ends it after the work in flight. SQLite, PostgreSQL " +
    "and Redis count usage themselves: there it archives audit events, and without --archive it " +
    "says that it is not needed and ends.",
  options: [
    {
      flags: "--windows <types>",
      text: "windows to count by, separated by commas",
      default: WINDOW_TYPES.join(","),
    },
    {
      flags: "--retention-days <days>",
      text: "how long usage is kept after its window",
      default: 90,
      parse: wholeNumber(1, 3650),
    },
    {
      flags: "--archive <place>",
      text: "where expired and removed audit events go: a folder, or s3://<bucket>",
    },
    {
      flags: "--lease-seconds <seconds>",
      text: "a process that is silent for this long loses its shards to others",
      default: 10,
      parse: wholeNumber(1, 3600),
    },
    {
      flags: "--batch-seconds <seconds>",
      text: "how long changes are gathered before they are written",
      default: 1,
      parse: decimalNumber(0, 300),
    },
    {
      flags: "--batch-size <n>",
      text: "the most changes that are gathered",
      default: 1000,
      parse: wholeNumber(1, 100_000),
    },
    {
      flags: "--report-seconds <seconds>",
      text: "how often the counters are logged",
      default: 60,
      parse: wholeNumber(1, 86_400),
    },
    {
      flags: "--log-level <level>",
      text: "log lines below this level are left out",
      default: "info",
      choices: ["debug", "info", "warning", "error"],
    },
    ...STORE_OPTIONS,
  ],
  examples: [
    "aggregate --name my-app --region us-east-1",
    "aggregate --name my-app --archive s3://my-audit --windows daily",
    "aggregate --url sqlite:limits.db --archive ./audit",
  ],
  json: "object",
  run: (call) => interruptible(call.terminal, (signal) => follow(call, signal)),
});

async function follow(call: Call<AggregateOptions>, signal: AbortSignal) {
  const { options, terminal } = call;
  const { location, options: connection } = storePlace(options, terminal);
  refuseNothing(location);
  const { parseWindows } = await import("@zae-limiter/aws/aggregator/window-list.ts");
  const windows = parseWindows(options.windows);
  if (countsUsage(location) && options.archive === undefined) {
    const store = placeName(location);
    call.note(
      `Not needed: ${store} counts usage itself. With --archive, audit events are archived`,
    );
    return { code: EXIT.ok };
  }
  const { runAggregatorAt } = await import("@zae-limiter/aws/aggregator/run.ts");
  const { archive, retentionDays, leaseSeconds, batchSize, reportSeconds, logLevel } = options;
  await runAggregatorAt(location, {
    windows,
    ...defined({ retentionDays, leaseSeconds, batchSize, reportSeconds, logLevel, archive }),
    batchMs: Math.round(options.batchSeconds * 1000),
    write: terminal.out,
    signal,
    connection: { ...connection, timer: terminal.timer },
  });
  // An aggregator runs until it is interrupted, so that is not a failure.
  return { code: EXIT.ok };
}

/**
 * Refuses a store that ends with its process: no other process can write to it, so there would be
 * nothing to aggregate. Refuses a file that does not exist.
 */
function refuseNothing(location: StoreLocation): void {
  if (!traitsOf(location).isShared) {
    throw new UsageError(
      `${urlOf(location)} has no stream to follow. Name a file or a table with --url or --name`,
    );
  }
  const file = fileOf(location);
  if (file === undefined) return;
  if (statSync(file.path, { throwIfNoEntry: false }) !== undefined) return;
  throw new CommandFailure(`There is no file ${file.path}; --url or --name names the store`);
}
