/** Failures, with the error that AWS raises as their cause. */

import {
  RateLimiterUnavailable,
  type UnavailableReason,
} from "@zae-limiter/limiter/domain/errors/errors.ts";

export type FailureKind =
  /** A key range is throttled: a write to another item may work. */
  | "hotWrite"
  | "hotRead"
  | "hotIndex"
  | "throttledTable"
  | "conflict"
  | "cancelled"
  | "cancelledHot"
  | "inProgress"
  | "server"
  | "refused"
  | "timeout";

/** Result of a failed attempt, as the client sees it. */
export interface Failure {
  readonly kind: FailureKind;
  readonly reason: UnavailableReason;
  readonly nothingWritten: boolean;
  readonly keyRange: boolean;
  readonly cause: Error;
}

const TABLE_ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/simulated";

const THROTTLING_MESSAGE =
  "Throughput exceeds the current capacity for one or more global secondary indexes or the table";

/** One object of each kind, because a simulation throws millions of them. */
const FAILURES: Readonly<Record<FailureKind, Failure>> = {
  hotWrite: throttling("hotWrite", "TableWriteKeyRangeThroughputExceeded", true),
  hotRead: throttling("hotRead", "TableReadKeyRangeThroughputExceeded", true),
  hotIndex: throttling("hotIndex", "IndexWriteKeyRangeThroughputExceeded", false),
  throttledTable: throttling("throttledTable", "TableWriteAccountLimitExceeded", false),
  conflict: failure("conflict", "throttled", true, {
    name: "TransactionConflictException",
    message: "Transaction is ongoing for the item",
    status: 400,
  }),
  cancelled: cancellation("cancelled", "TransactionConflict"),
  // AWS does not say which of the limits it was.
  cancelledHot: cancellation("cancelledHot", "ThrottlingError"),
  inProgress: failure("inProgress", "server", false, {
    name: "TransactionInProgressException",
    message: "The transaction with the given request token is already in progress",
    status: 400,
  }),
  server: failure("server", "server", false, {
    name: "InternalServerError",
    message: "Internal server error",
    status: 500,
  }),
  refused: failure("refused", "network", true, {
    name: "Error",
    message: "connect ECONNREFUSED",
    syscall: "connect",
  }),
  timeout: failure("timeout", "timeout", false, { name: "AttemptTimeout", message: "no answer" }),
};

export function failureOf(kind: FailureKind): Failure {
  return FAILURES[kind];
}

/** Builds the error that the adapter for DynamoDB throws. */
export function unavailable(
  { reason, keyRange, cause }: Failure,
  operation: string,
  nothingWritten: boolean,
): RateLimiterUnavailable {
  const details = { reason, nothingWritten, keyRange, cause, stackName: "simulated" };
  return new RateLimiterUnavailable(`The table failed to answer ${operation}`, details);
}

function throttling(kind: FailureKind, reason: string, keyRange: boolean): Failure {
  const fields = {
    name: "ThrottlingException",
    message: THROTTLING_MESSAGE,
    status: 400,
    throttlingReasons: [{ reason, resource: TABLE_ARN }],
  };
  return { ...failure(kind, "throttled", true, fields), keyRange };
}

function cancellation(kind: FailureKind, Code: string): Failure {
  return failure(kind, "throttled", true, {
    name: "TransactionCanceledException",
    message: "Transaction cancelled, please refer cancellation reasons for specific reasons",
    status: 400,
    CancellationReasons: [{ Code }],
  });
}

function failure(
  kind: FailureKind,
  reason: UnavailableReason,
  nothingWritten: boolean,
  fields: AwsFields,
): Failure {
  return { kind, reason, nothingWritten, keyRange: false, cause: awsError(fields) };
}

interface AwsFields {
  readonly name: string;
  readonly message: string;
  readonly status?: number;
  readonly [field: string]: unknown;
}

/** Builds an error with the fields of one of the SDK. */
function awsError({ name, message, status, ...fields }: AwsFields): Error {
  const metadata = status === undefined ? {} : { $metadata: { httpStatusCode: status } };
  return Object.assign(new Error(message), { name, ...fields, ...metadata });
}
