/** Answers to refused calls, in the shape of the provider that the client expects. */

import { callerOf, type Refusal } from "../acquire/decision.ts";
import { RateLimiterUnavailable, ResourceDisabled } from "../domain/errors/errors.ts";
import { ModelNotPriced } from "../domain/errors/model-not-priced.ts";
import { budgetSentence, spentBudget } from "./budget-text.ts";
import type { NotGranted } from "./metering.ts";

/** A whole response. */
export interface RefusalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * SDKs wait as long as `retry-after` says. A limit per minute is full again after a minute; beyond
 * that a retry would hold the caller for too long.
 */
const RETRY_SECONDS_MAX = 65;

/**
 * Returns a 429; a 403 for a disabled resource, a 400 for a model without a price, and a 503 where
 * the store cannot answer.
 */
export function refusalAnswer(
  reason: NotGranted,
  provider: "openai" | "anthropic",
  exposeParents = true,
  requestId?: string,
): RefusalAnswer {
  if (reason instanceof ResourceDisabled) {
    const kind = { openai: "access_denied", anthropic: "permission_error" }[provider];
    const headers = { "x-should-retry": "false" };
    return errorAnswer(403, kind, reason.message, provider, headers, requestId);
  }
  if (reason instanceof RateLimiterUnavailable) {
    const kind = { openai: "server_error", anthropic: "overloaded_error" }[provider];
    const message = "The rate limiter cannot reach its store.";
    return errorAnswer(503, kind, message, provider, { "retry-after": "1" }, requestId);
  }
  if (reason instanceof ModelNotPriced) {
    const kind = { openai: "model_not_priced", anthropic: "invalid_request_error" }[provider];
    const message = `model_not_priced: ${reason.reason}`;
    return errorAnswer(400, kind, message, provider, { "x-should-retry": "false" }, requestId);
  }
  const spent = spentBudget(reason.violations);
  if (spent !== undefined) {
    const kind = { openai: "budget_exceeded", anthropic: "rate_limit_error" }[provider];
    const isNamed = exposeParents || spent.entityId === callerOf(reason);
    const headers = { ...retryHeaders(reason), "x-should-retry": "false" };
    return errorAnswer(429, kind, budgetSentence(spent, isNamed), provider, headers, requestId);
  }
  const { message } = reason.toJSON({ parents: exposeParents });
  const kind = { openai: "rate_limit_exceeded", anthropic: "rate_limit_error" }[provider];
  return errorAnswer(429, kind, message, provider, retryHeaders(reason), requestId);
}

/** Returns the headers that SDKs act on: when to retry, or not to retry at all. */
function retryHeaders(refusal: Refusal): Record<string, string> {
  if (refusal.neverFits) return { "x-should-retry": "false" };
  const { retryAfterSeconds } = refusal;
  return {
    "retry-after": refusal.retryAfterHeader,
    "retry-after-ms": String(Math.max(1, Math.ceil(retryAfterSeconds * 1000))),
    ...(mayRetry(retryAfterSeconds) ? {} : { "x-should-retry": "false" }),
  };
}

/** Returns whether a client should try again after `retry-after`. */
export function mayRetry(retryAfterSeconds: number): boolean {
  return retryAfterSeconds <= RETRY_SECONDS_MAX;
}

/** Returns an error in the shape of a provider. */
export function errorAnswer(
  status: number,
  kind: string,
  message: string,
  provider: "openai" | "anthropic",
  headers: Readonly<Record<string, string>> = {},
  requestId?: string,
): RefusalAnswer {
  const body =
    provider === "anthropic"
      ? { type: "error", error: { type: kind, message }, request_id: requestId ?? null }
      : { error: { message, type: kind, param: null, code: kind } };
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}
