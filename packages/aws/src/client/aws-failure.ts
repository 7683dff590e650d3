/** Explains an error of AWS in one sentence, with what to do. */

import {
  InfrastructureError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { serverText, withServerText } from "@zae-limiter/limiter/storage/dynamodb/server-text.ts";

/** The fields that errors of the SDK, of AWS and of sockets carry. */
interface RawError {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly errors?: readonly RawError[];
  readonly $metadata?: { readonly httpStatusCode?: number };
  /** The answer, where it could not be read. */
  readonly $response?: {
    readonly statusCode?: number;
    readonly headers?: Readonly<Record<string, string>>;
  };
}

const REFUSED_CREDENTIALS: ReadonlySet<string> = new Set([
  "UnrecognizedClientException",
  "InvalidSignatureException",
  "SignatureDoesNotMatch",
  "InvalidClientTokenId",
  "InvalidAccessKeyId",
  "IncompleteSignatureException",
  "IncompleteSignature",
  "MissingAuthenticationToken",
  "MissingAuthenticationTokenException",
  "AuthFailure",
]);
const EXPIRED: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "TokenRefreshRequired",
  "RequestExpired",
]);
const DENIED = /^(AccessDenied|UnauthorizedOperation|NotAuthorized|Forbidden)/;
const NETWORK: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EPIPE",
]);

/** An error answer of AWS that is about neither credentials nor the connection. */
export class AwsRefusal extends InfrastructureError {
  /** As AWS calls it, such as `ValidationError`. */
  readonly awsCode: string;
  /** As AWS says it. */
  readonly detail: string;

  constructor(action: string, raw: RawError, cause: unknown) {
    super(`AWS refused ${action}: ${raw.message ?? String(cause)}`, { cause });
    this.awsCode = raw.name ?? "";
    this.detail = raw.message ?? "";
  }
}

/** Returns whether AWS answered with an error of this code. */
export function isRefusal(error: unknown, awsCode: string): boolean {
  return error instanceof AwsRefusal && error.awsCode === awsCode;
}

/** AWS does not answer; the message says what to do. */
export class AwsUnavailable extends RateLimiterUnavailable {}

/** The endpoint is a DynamoDB server and nothing else: it has no stacks and no Lambda functions. */
export class MissingServiceError extends InfrastructureError {
  constructor(endpoint: string, action: string, cause: unknown) {
    super(
      `${endpoint} has DynamoDB only and cannot answer ${action}: there are no stacks to deploy, ` +
        "list, upgrade or delete. Tables on it are made with `zae-limiter local up` or " +
        "Repository.createTable",
      { cause },
    );
  }
}

/** Errors of ours pass as they are. */
export function explainAwsError(
  error: unknown,
  action: string,
  endpoint: string | undefined,
): Error {
  if (error instanceof InfrastructureError) return error;
  const raw = (withServerText(error) ?? {}) as RawError;
  const { name = "", message = String(error) } = raw;
  const detail = serverText(message);
  if (endpoint !== undefined && isOfAnotherService(raw, action)) {
    return new MissingServiceError(endpoint, action, error);
  }
  const infrastructure = (sentence: string) => new InfrastructureError(sentence, { cause: error });
  if (/region is missing/i.test(message)) {
    return infrastructure(
      "There is no AWS region. Pass --region (or region in code), or set AWS_REGION",
    );
  }
  if (name === "CredentialsProviderError" || /could not load credentials/i.test(message)) {
    return infrastructure(
      "No AWS credentials found. Sign in with `aws sso login` or `aws configure`, or set " +
        `AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (${detail})`,
    );
  }
  if (EXPIRED.has(name)) {
    return infrastructure(`The AWS credentials have expired. Sign in again (${detail})`);
  }
  if (REFUSED_CREDENTIALS.has(name)) {
    return infrastructure(
      `AWS does not know these credentials. Check the profile and the region (${detail})`,
    );
  }
  if (DENIED.test(name)) {
    return infrastructure(
      `These AWS credentials may not do ${action}. Ask for that permission, or use another ` +
        `profile (${detail})`,
    );
  }
  return explainOutage(raw, action, endpoint, error) ?? new AwsRefusal(action, raw, error);
}

/** The protocol of DynamoDB, which no other service that is called here speaks. */
const DYNAMODB_PROTOCOL = "application/x-amz-json-1.0";

/**
 * Returns whether a server without the service has answered. One that has only DynamoDB sends what
 * the SDK cannot read: that there is no such operation, or a failure in the protocol of DynamoDB.
 * Any other unreadable failure (500 and above) says nothing about what the server has.
 */
function isOfAnotherService(raw: RawError, action: string): boolean {
  const status = raw.$metadata?.httpStatusCode ?? raw.$response?.statusCode ?? 0;
  if (action.startsWith("dynamodb:") || status < 400) return false;
  const { message = "" } = raw;
  if (message !== "Unknown" && !/deserialization error/i.test(message)) return false;
  const type = raw.$response?.headers?.["content-type"] ?? "";
  return status < 500 || type.startsWith(DYNAMODB_PROTOCOL);
}

function explainOutage(
  raw: RawError,
  action: string,
  endpoint: string | undefined,
  cause: unknown,
): AwsUnavailable | undefined {
  const place = endpoint ?? "AWS";
  if (isNetwork(raw)) {
    const hint = endpoint === undefined ? "Check the region and the network" : "Is it running?";
    return new AwsUnavailable(`${place} could not be reached for ${action}. ${hint}`, {
      reason: "network",
      cause,
    });
  }
  if (/throttl|TooManyRequests|rate exceeded/i.test(`${raw.name} ${raw.message}`)) {
    return new AwsUnavailable(`AWS throttled ${action}. Try again in a minute`, {
      reason: "throttled",
      cause,
    });
  }
  const status = raw.$metadata?.httpStatusCode ?? raw.$response?.statusCode ?? 0;
  if (/deserialization error/i.test(raw.message ?? "")) {
    return new AwsUnavailable(
      `What ${place} answered to ${action} is not an answer of AWS (status ${status}). Is there a ` +
        "proxy, or a page to sign in, on the way?",
      { reason: "server", cause },
    );
  }
  if (status < 500) return undefined;
  const detail = serverText(raw.message ?? "");
  return new AwsUnavailable(
    `${place} failed to answer ${action} (status ${status}). Try again; if it stays like this, ` +
      `see the health page of AWS (${detail})`,
    { reason: "server", cause },
  );
}

function isNetwork(raw: RawError): boolean {
  if (raw.errors !== undefined && raw.errors.length > 0) return raw.errors.some(isNetwork);
  return (
    NETWORK.has(raw.code ?? "") || raw.name === "TimeoutError" || raw.name === "RefusedConnection"
  );
}
