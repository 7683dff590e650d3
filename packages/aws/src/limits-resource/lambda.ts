/** The Lambda behind `Custom::ZaeLimiterLimits`. */

import { systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  InfrastructureNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { openAsItIs, type StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { tableAt } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { forgetLimits, keepLimits, type LimitsTable } from "./keep-limits.ts";
import { unmadeId } from "./physical-id.ts";
import { checkReplyAddress, type Outcome, type ReplyPlace, replyText, sendReply } from "./reply.ts";
import { checkRequest, type LimitsRequest } from "./request.ts";

const TIMEOUT_MS = 5000;
/** With less time left than `STOP_MS` no change is begun; with less than `ANSWER_MS` it answers. */
const STOP_MS = 20_000;
const ANSWER_MS = 10_000;
/** The time of a call without a Lambda context: five minutes, as in the stack. */
const REMAINING_MS = 300_000;

/** As Lambda calls it, as far as it matters here. */
export interface LimitsLambdaContext {
  getRemainingTimeInMillis?(): number;
}

export type LimitsHandler = (event: unknown, context?: LimitsLambdaContext) => Promise<void>;

interface LimitsHandlerOptions {
  readonly table: string;
  /** Opens the table; it is closed after each request. */
  readonly open: () => Promise<StoreAsItIs>;
  readonly timer: Timer;
  /** The place of this function, which decides which addresses an answer may have. */
  readonly place: ReplyPlace;
  /** Takes a line of JSON. */
  readonly log: (line: string) => void;
}

/**
 * Makes a handler over any store. It ends when CloudFormation has been answered, whatever the
 * answer; it throws only when that was impossible, so that Lambda calls it again.
 */
export function createLimitsHandler(options: LimitsHandlerOptions): LimitsHandler {
  return async (event, context = {}) => {
    const request = checkRequest(event);
    checkReplyAddress(request.ResponseURL, options.place);
    const remainingMs = context.getRemainingTimeInMillis?.() ?? REMAINING_MS;
    const outcome = await inTime(request, remainingMs, options);
    options.log(
      `${JSON.stringify({
        level: outcome.failure === undefined ? "info" : "error",
        message: outcome.failure ?? "done",
        request_type: request.RequestType,
        request_id: request.RequestId,
        stack_id: request.StackId,
        resource: request.LogicalResourceId,
        ...outcome.data,
      })}\n`,
    );
    await sendReply(request.ResponseURL, replyText(request, outcome), options.timer);
  };
}

/** Returns an outcome before the time of the Lambda is over, in any case. */
async function inTime(
  request: LimitsRequest,
  remainingMs: number,
  options: LimitsHandlerOptions,
): Promise<Outcome> {
  const { timer } = options;
  const stop = new AbortController();
  const done = new AbortController();
  void timer.sleep(Math.max(0, remainingMs - STOP_MS), done.signal).then(() => stop.abort());
  const late = timer
    .sleep(Math.max(0, remainingMs - ANSWER_MS), done.signal)
    .then(() =>
      failed(request, options.table, "the time of the Lambda was over before the work was"),
    );
  try {
    return await Promise.race([carryOut(request, stop.signal, options), late]);
  } finally {
    done.abort();
  }
}

async function carryOut(
  request: LimitsRequest,
  signal: AbortSignal,
  { table: name, open }: LimitsHandlerOptions,
): Promise<Outcome> {
  let store: StoreAsItIs | undefined;
  try {
    store = await open();
    const table: LimitsTable = { name, store, signal };
    return request.RequestType === "Delete"
      ? await forgetLimits(request, table)
      : await keepLimits(request, table);
  } catch (error) {
    const isGone = error instanceof InfrastructureNotFoundError;
    // The limits are gone with their table, and a stack must always be deletable.
    if (isGone && request.RequestType === "Delete") return { physicalId: idOf(request, name) };
    return failed(request, name, (error as Error).message);
  } finally {
    await store?.close();
  }
}

function failed(request: LimitsRequest, table: string, failure: string): Outcome {
  return { physicalId: idOf(request, table), failure };
}

/** Returns the name of the resource, which stays the same. */
function idOf(request: LimitsRequest, table: string): string {
  return request.PhysicalResourceId ?? unmadeId(table, request);
}

/** Makes the handler that environment variables describe. */
export function limitsHandlerFrom(
  environment: Readonly<Record<string, string | undefined>>,
  log: (line: string) => void,
): LimitsHandler {
  const table = environment.TABLE_NAME ?? "";
  if (table === "") {
    throw new ValidationError("TABLE_NAME", table, "expected the name of the table");
  }
  const open = () => openAsItIs(tableAt(table), { timeoutMs: TIMEOUT_MS });
  const {
    AWS_REGION,
    AWS_ENDPOINT_URL,
    AWS_ENDPOINT_URL_DYNAMODB = AWS_ENDPOINT_URL,
  } = environment;
  const own = { region: AWS_REGION, endpoint: AWS_ENDPOINT_URL_DYNAMODB };
  return createLimitsHandler({ table, open, timer: systemTimer, place: own, log });
}

let prepared: LimitsHandler | undefined;

/** Handles events of the Lambda function. It reads `TABLE_NAME` when it is first called. */
export async function handler(event: unknown, context?: LimitsLambdaContext): Promise<void> {
  prepared ??= limitsHandlerFrom(process.env, (line) => void process.stdout.write(line));
  await prepared(event, context);
}
