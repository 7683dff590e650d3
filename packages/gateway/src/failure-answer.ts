/** The answer to a call that failed inside the gateway. It tells the client no internals. */

import { NO_LIMITS } from "@zae-limiter/limiter/acquire/legs.ts";
import {
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  errorAnswer,
  type RefusalAnswer,
  refusalAnswer,
} from "@zae-limiter/limiter/llm/refusal-answer.ts";
import type { Route } from "./routes.ts";

const NO_RETRY = { "x-should-retry": "false" };

/** Returns a 503 where the store cannot answer, and a 500 that is not worth a retry else. */
export function failureAnswer(error: unknown, provider: Route["provider"]): RefusalAnswer {
  if (error instanceof RateLimiterUnavailable) return refusalAnswer(error, provider, false);
  if (error instanceof ValidationError && error.reason.startsWith(NO_LIMITS)) {
    const message =
      "The gateway has no limits for this call, and forwards none without. " +
      "The operator of the gateway must set some.";
    return errorAnswer(500, "limits_not_configured", message, provider, NO_RETRY);
  }
  const message = "The gateway failed. The log of the gateway says why.";
  return errorAnswer(500, "gateway_error", message, provider, NO_RETRY);
}
