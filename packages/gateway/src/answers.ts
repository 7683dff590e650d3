/** Answers of the gateway itself: refusals and errors, in the shape that the client expects. */

import type { ServerResponse } from "node:http";
import { NO_LIMITS } from "@zae-limiter/limiter/acquire/call-legs.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { NotGranted } from "@zae-limiter/limiter/llm/metering.ts";
import {
  errorAnswer,
  type RefusalAnswer,
  refusalAnswer,
} from "@zae-limiter/limiter/llm/refusal-answer.ts";
import { type HeaderList, REQUEST_ID, without } from "./headers.ts";

/** The provider whose clients send a request. */
export type Provider = "openai" | "anthropic";

/** Says why a request is not forwarded. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    /** The code of OpenAI's shape; Anthropic's has its own words by status. */
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** Carries a decision of the limiter that ends a call. */
export class NotGrantedError extends Error {
  constructor(readonly reason: NotGranted) {
    super("The call was not granted");
  }
}

const NO_RETRY = { "x-should-retry": "false" };

/** The `type` of Anthropic's errors, by status; any other status is an `api_error`. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  413: "request_too_large",
  414: "invalid_request_error",
  431: "invalid_request_error",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** Returns the answer to a request that an error has ended. It reveals no internals. */
export function answerTo(error: unknown, provider: Provider, requestId: string): RefusalAnswer {
  if (error instanceof Refused) {
    return shaped(error.status, error.code, error.message, provider, requestId, error.headers);
  }
  if (error instanceof NotGrantedError) {
    return refusalAnswer(error.reason, provider, false, requestId);
  }
  if (error instanceof RateLimiterUnavailable || error instanceof ResourceDisabled) {
    return refusalAnswer(error, provider, false, requestId);
  }
  if (error instanceof ValidationError && error.reason.startsWith(NO_LIMITS)) {
    const message =
      "The gateway has no limits for this call, and forwards none without. " +
      "Its operator has to set some.";
    return shaped(500, "limits_not_configured", message, provider, requestId, NO_RETRY);
  }
  const message = "The gateway failed. The log of the gateway says why.";
  return shaped(500, "gateway_error", message, provider, requestId, NO_RETRY);
}

function shaped(
  status: number,
  code: string,
  message: string,
  provider: Provider,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): RefusalAnswer {
  const kind = provider === "anthropic" ? (ANTHROPIC_TYPES[status] ?? "api_error") : code;
  return errorAnswer(status, kind, message, provider, headers, requestId);
}

/**
 * Sends a whole answer, and ends it `after` something; does nothing where one has begun, or the
 * client has hung up.
 */
export function send(
  { response, requestId }: { readonly response: ServerResponse; readonly requestId: string },
  status: number,
  headers: HeaderList,
  body: string,
  after?: Promise<void>,
): void {
  if (response.destroyed || response.headersSent) return;
  const length = String(Buffer.byteLength(body));
  const own = [REQUEST_ID, requestId, "content-length", length];
  response.writeHead(status, [...own, ...without("content-length", headers)]);
  if (after === undefined) return void response.end(body);
  response.write(body);
  void after.then(() => response.end());
}
