/** The meaning of the error of a request: a refused condition, a refused request, or a failure. */

import {
  InfrastructureError,
  InfrastructureNotFoundError,
  type UnavailableReason,
  ValidationError,
} from "../../domain/errors/errors.ts";
import { decodeItem } from "../attribute-value.ts";
import type { Item } from "../item.ts";
import { serverText, withServerText } from "./server-text.ts";
import { AttemptTimeout, type Progress } from "./transport/transport.ts";

/** The writes whose condition failed, by their place in the request, with what is stored. */
export type ConditionFailures = ReadonlyMap<number, { item: Item | undefined }>;

type Refusal = InfrastructureError | ValidationError;

export type Verdict =
  | { readonly kind: "condition"; readonly failures: ConditionFailures }
  /** Refused, as every further attempt would be. */
  | { readonly kind: "refused"; readonly error: Refusal; readonly sent: boolean }
  /** It may work later. */
  | {
      readonly kind: "failed";
      readonly reason: UnavailableReason;
      /** False proves that the request never left this machine. */
      readonly sent: boolean;
      /** True where that is certain. */
      readonly nothingWritten: boolean;
      /** Only the key range of the item was throttled. */
      readonly keyRange: boolean;
      /** The host answered that nothing listens there. */
      readonly connectionRefused: boolean;
    };

/** The fields that errors of the SDK, of AWS and of sockets carry. */
interface RawError {
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  readonly code?: string;
  readonly syscall?: string;
  readonly errors?: readonly RawError[];
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean };
  readonly Item?: Record<string, unknown>;
  readonly CancellationReasons?: readonly CancellationReason[];
  /** DynamoDB spells it in both ways. */
  readonly ThrottlingReasons?: readonly ThrottlingReason[];
  readonly throttlingReasons?: readonly ThrottlingReason[];
}

/** Such as `TableWriteKeyRangeThroughputExceeded`: what, which operation, which limit. */
interface ThrottlingReason {
  readonly reason?: string;
}

interface CancellationReason {
  readonly Code?: string;
  readonly Message?: string;
  readonly Item?: Record<string, unknown>;
}

/**
 * Answers that prove that nothing was written, and that pass. The two conflicts come from a
 * transaction on the same item; DynamoDB also gives them to plain writes.
 */
const NOTHING_WRITTEN: ReadonlySet<string> = new Set([
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "Throttling",
  "ThrottledException",
  "RequestThrottled",
  "RequestThrottledException",
  "RequestLimitExceeded",
  "LimitExceededException",
  "TooManyRequestsException",
  "TransactionConflictException",
  "ReplicatedWriteConflictException",
]);
/** Passing failures as reasons for which a transaction was cancelled. */
const PASSING_CANCELLATIONS: ReadonlySet<string> = new Set([
  "TransactionConflict",
  "ThrottlingError",
  "ProvisionedThroughputExceeded",
  "RequestLimitExceeded",
]);
const REFUSED_CREDENTIALS: ReadonlySet<string> = new Set([
  "UnrecognizedClientException",
  "InvalidSignatureException",
  "ExpiredTokenException",
  "ExpiredToken",
  "MissingAuthenticationTokenException",
  "MissingAuthenticationToken",
  "IncompleteSignatureException",
  "InvalidClientTokenId",
]);
/** Answers to a valid request whose table does not have our keys or indexes. */
const OTHER_TABLE = /specified index|does not match the schema|missing the key/i;
const KEY_RANGE = /^Table(Read|Write)KeyRangeThroughputExceeded$/;
const CONNECTING_CALLS: ReadonlySet<string> = new Set(["connect", "getaddrinfo", "queryA"]);

/** Errors of a signature that did not fit the time; the answer has the right time. */
const CLOCK_SKEW: ReadonlySet<string> = new Set([
  "InvalidSignatureException",
  "AuthFailure",
  "RequestExpired",
  "RequestInTheFuture",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch",
]);

/** Judges one failed attempt. */
export function judge(
  error: unknown,
  operation: string,
  table: string,
  progress: Progress,
): Verdict {
  const raw = (error ?? {}) as RawError;
  const sent = progress === "sent";
  if (error instanceof AttemptTimeout) return failed("timeout", sent, !sent);
  if (raw.name === "ConditionalCheckFailedException") {
    return { kind: "condition", failures: new Map([[0, { item: stored(raw) }]]) };
  }
  // Whatever is thrown has this error as its cause, and logs print causes.
  withServerText(error);
  if (raw.name === "TransactionCanceledException") return cancelled(raw, operation, error);
  if (raw.name === "ResourceNotFoundException") {
    return refused(new InfrastructureNotFoundError(table, { cause: error }));
  }
  const status = raw.$metadata?.httpStatusCode;
  if (isThrottling(raw)) return failed("throttled", true, true, isKeyRange(raw));
  // The transaction with this token is still under way: only repeating it will show its outcome.
  if (raw.name === "TransactionInProgressException") return failed("server", true, false);
  // The transport has learnt the server's time from this answer and signs the next attempt right.
  if (wasSkewed(raw)) return failed("server", true, true);
  if (status !== undefined && status >= 500) return failed("server", true, false);
  if (status !== undefined && status >= 400) return refused(refusal(raw, operation, error));
  if (progress === "connecting" || neverConnected(raw)) {
    return { ...failed("network", false, true), connectionRefused: isConnectionRefused(raw) };
  }
  return sent ? failed("network", true, false) : refused(refusal(raw, operation, error), false);
}

/** Judges a cancelled transaction. One failed condition decides: repeating would not help. */
function cancelled(raw: RawError, operation: string, cause: unknown): Verdict {
  const reasons = raw.CancellationReasons ?? [];
  const failures = new Map<number, { item: Item | undefined }>();
  for (const [index, reason] of reasons.entries()) {
    if (reason.Code === "ConditionalCheckFailed") failures.set(index, { item: stored(reason) });
  }
  if (failures.size > 0) return { kind: "condition", failures };
  const others = reasons.filter(({ Code = "None" }) => Code !== "None");
  const lasting = others.find(({ Code = "" }) => !PASSING_CANCELLATIONS.has(Code));
  if (others.length > 0 && lasting === undefined) return failed("throttled", true, true);
  const { Code, Message: message = raw.message } = lasting ?? {};
  const name = Code === "ValidationError" ? "ValidationException" : "";
  return refused(refusal({ name, message }, operation, cause));
}

function refusal(raw: RawError, operation: string, cause: unknown): Refusal {
  const detail = serverText(raw.message ?? String(cause));
  const { name = "" } = raw;
  if (name.startsWith("AccessDenied")) {
    return new InfrastructureError(`These AWS credentials may not call ${operation}: ${detail}`, {
      cause,
    });
  }
  if (name === "CredentialsProviderError") {
    return new InfrastructureError(
      "No AWS credentials found: sign in with `aws sso login` or `aws configure`, or set " +
        `AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (${detail})`,
      { cause },
    );
  }
  if (REFUSED_CREDENTIALS.has(name)) {
    return new InfrastructureError(`AWS did not accept the credentials: ${detail}`, { cause });
  }
  if (/region is missing/i.test(detail)) {
    return new InfrastructureError("There is no AWS region: pass `region` or set AWS_REGION", {
      cause,
    });
  }
  if (name === "ValidationException" && !OTHER_TABLE.test(detail)) {
    return new ValidationError("request", operation, detail, { cause });
  }
  return new InfrastructureError(`DynamoDB refused ${operation}: ${detail}`, { cause });
}

function isThrottling(raw: RawError): boolean {
  return NOTHING_WRITTEN.has(raw.name ?? "") || raw.$metadata?.httpStatusCode === 429;
}

function wasSkewed(raw: RawError): boolean {
  return raw.$metadata?.clockSkewCorrected === true && CLOCK_SKEW.has(raw.name ?? "");
}

/** Whether another item of the table would have been served. */
function isKeyRange(raw: RawError): boolean {
  const reasons = raw.ThrottlingReasons ?? raw.throttlingReasons ?? [];
  return reasons.length > 0 && reasons.every(({ reason = "" }) => KEY_RANGE.test(reason));
}

/** Returns whether a host refused, is unknown or unreachable, or no connection came in time. */
function neverConnected(raw: RawError): boolean {
  // A host with several addresses fails with one error for each of them.
  if (raw.errors !== undefined && raw.errors.length > 0) return raw.errors.every(neverConnected);
  if (CONNECTING_CALLS.has(raw.syscall ?? "")) return true;
  return raw.name === "TimeoutError" && /did not establish a connection/.test(raw.message ?? "");
}

function isConnectionRefused(raw: RawError): boolean {
  if (raw.errors !== undefined && raw.errors.length > 0) {
    return raw.errors.every(isConnectionRefused);
  }
  return raw.code === "ECONNREFUSED";
}

function stored(holder: { readonly Item?: Record<string, unknown> }): Item | undefined {
  return holder.Item === undefined ? undefined : decodeItem(holder.Item);
}

function failed(
  reason: UnavailableReason,
  sent: boolean,
  nothingWritten: boolean,
  keyRange = false,
): Extract<Verdict, { kind: "failed" }> {
  return { kind: "failed", reason, sent, nothingWritten, keyRange, connectionRefused: false };
}

function refused(error: Refusal, sent = true): Verdict {
  return { kind: "refused", error, sent };
}
