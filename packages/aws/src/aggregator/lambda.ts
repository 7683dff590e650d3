/** The aggregator as a Lambda function on the stream of the table. */

import { type Clock, systemClock } from "@zae-limiter/limiter/base/time.ts";
import { checkInteger } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { Aggregator, type AggregatorOptions, RETENTION_DAYS } from "./aggregator.ts";
import { type AggregatorCounters, counterFields } from "./counters.ts";
import { changeOfRecord, type LambdaEvent } from "./lambda-event.ts";
import { errorFields, jsonLog, type Log } from "./log.ts";
import { S3Archive } from "./s3-archive.ts";
import { splitterOver } from "./splitter.ts";
import type { StreamChange } from "./stream-change.ts";
import { parseWindows } from "./window-list.ts";

const TIMEOUT_MS = 5000;
const RETENTION_DAYS_MAX = 3650;
const METRICS_NAMESPACE = "zae-limiter";

/** As Lambda calls it, as far as it matters here. */
export interface LambdaContext {
  /** The id of this invocation, for the log. */
  readonly awsRequestId?: string;
  /** The name of the function, for the log. */
  readonly functionName?: string;
  /** Returns the milliseconds until Lambda ends this invocation. */
  getRemainingTimeInMillis?(): number;
}

/** The records to deliver again: Lambda continues from the first of them. */
export interface LambdaResponse {
  /** The sequence numbers of the records to deliver again. */
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

type LambdaHandler = (event: LambdaEvent, context?: LambdaContext) => Promise<LambdaResponse>;

/** Environment variables of the function. */
type LambdaEnvironment = Readonly<Record<string, string | undefined>>;

interface HandlerOptions extends AggregatorOptions {
  /** For metrics. */
  readonly table: string;
}

/** Makes a handler over any store. */
export function createHandler(options: HandlerOptions): LambdaHandler {
  const { clock, log, table } = options;
  const aggregator = new Aggregator(options);
  return async (event, context = {}) => {
    const { awsRequestId, functionName } = context;
    const about = { request_id: awsRequestId, function_name: functionName, table };
    const { changes, skipped } = changesOf(event, log);
    log("debug", "invocation started", { ...about, records: event.Records?.length ?? 0 });
    const startedAtMs = clock();
    const timeLeftMs = () => context.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY;
    const { counters, failedIds } = await aggregator.process(changes, timeLeftMs);
    const all = {
      ...counters,
      records: counters.records + skipped,
      failures: counters.failures + skipped,
      skipped: counters.skipped + skipped,
    };
    log(failedIds.length === 0 ? "info" : "error", "invocation finished", {
      ...about,
      ...counterFields(all),
      failed_records: failedIds.length,
      duration_ms: clock() - startedAtMs,
      ...metrics(all, table, clock),
    });
    return { batchItemFailures: failedIds.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/**
 * Makes the handler that environment variables describe. It reads and sends nothing until called.
 */
export function handlerFrom(environment: LambdaEnvironment, write: (line: string) => void) {
  const table = environment.TABLE_NAME ?? "";
  if (table === "")
    throw new ValidationError("TABLE_NAME", table, "expected the name of the table");
  const days = Number(environment.SNAPSHOT_TTL_DAYS ?? RETENTION_DAYS);
  const bucket = environment.ARCHIVE_BUCKET_NAME ?? "";
  const archives = environment.ENABLE_ARCHIVAL?.toLowerCase() === "true" && bucket !== "";
  const clock = systemClock;
  const store = new DynamoItemStore({ table, timeoutMs: TIMEOUT_MS });
  const log = jsonLog({ clock, write });
  return createHandler({
    table,
    store,
    clock,
    log,
    retentionDays: checkInteger("SNAPSHOT_TTL_DAYS", days, 1, RETENTION_DAYS_MAX),
    splitter: splitterOver({ store, clock, log }),
    ...(environment.SNAPSHOT_WINDOWS === undefined
      ? {}
      : { windows: parseWindows(environment.SNAPSHOT_WINDOWS) }),
    ...(archives ? { archive: new S3Archive({ bucket }) } : {}),
  });
}

let prepared: LambdaHandler | undefined;

/**
 * Handles events of the Lambda function. It reads `TABLE_NAME`, `SNAPSHOT_WINDOWS`,
 * `SNAPSHOT_TTL_DAYS`, `ENABLE_ARCHIVAL` and `ARCHIVE_BUCKET_NAME` when it is first called.
 *
 * @example
 * ```ts no-run: needs a table
 * import { handler } from 'zae-limiter/aggregator';
 * const { batchItemFailures } = await handler({ Records: [] });
 * console.log(batchItemFailures.length); // 0
 * ```
 */
export async function handler(
  event: LambdaEvent,
  context?: LambdaContext,
): Promise<LambdaResponse> {
  prepared ??= handlerFrom(process.env, (line) => void process.stdout.write(line));
  return prepared(event, context);
}

/** Returns the changes that can be read; delivering any other again would only block the stream. */
function changesOf(event: LambdaEvent, log: Log): { changes: StreamChange[]; skipped: number } {
  const changes: StreamChange[] = [];
  let skipped = 0;
  for (const record of event.Records ?? []) {
    try {
      changes.push(changeOfRecord(record));
    } catch (error) {
      skipped += 1;
      const sequence = record.dynamodb?.SequenceNumber;
      log("warning", "a record could not be read and was skipped", {
        sequence,
        ...errorFields(error),
      });
    }
  }
  return { changes, skipped };
}

/**
 * Returns the fields of which CloudWatch makes metrics. A batch that is delivered again is no error
 * of the function, so without them no alarm would fire.
 */
function metrics(counters: AggregatorCounters, table: string, clock: Clock) {
  const fields = counterFields(counters);
  return {
    Table: table,
    _aws: {
      Timestamp: clock(),
      CloudWatchMetrics: [
        {
          Namespace: METRICS_NAMESPACE,
          Dimensions: [["Table"]],
          Metrics: Object.keys(fields).map((name) => ({
            Name: name,
            Unit: name === "lag_ms" ? "Milliseconds" : "Count",
          })),
        },
      ],
    },
  };
}
