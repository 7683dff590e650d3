/** The mode of acquires while the store cannot answer, and the errors that say so. */

import { checkChoice } from "../check.ts";
import { RateLimiterUnavailable } from "./errors.ts";

/**
 * `allow` lets calls pass without counting them while the store is down; `block` refuses them.
 *
 * @example
 * ```ts
 * import type { OnUnavailable } from 'zae-limiter';
 * const mode: OnUnavailable = 'allow';
 * ```
 */
export type OnUnavailable = "allow" | "block";

const ON_UNAVAILABLE: readonly OnUnavailable[] = ["allow", "block"];

/** Checks a mode that came from outside. */
export function checkOnUnavailable(value: unknown): OnUnavailable {
  return checkChoice("on_unavailable", value, ON_UNAVAILABLE);
}

/** Makes the error of a call that other writes left no time for: nothing was written. */
export function tooBusy(message: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(message, { reason: "throttled", nothingWritten: true });
}

/** Returns the error of a request before the write: for the call, nothing was written. */
export function unwritten(error: unknown): unknown {
  if (!(error instanceof RateLimiterUnavailable) || error.nothingWritten) return error;
  return new RateLimiterUnavailable(error.message, {
    cause: error,
    ...(error.reason === undefined ? {} : { reason: error.reason }),
    nothingWritten: true,
  });
}

/** Makes the error of a call whose deadline is over. */
export function tooLate(nothingWritten = true): RateLimiterUnavailable {
  const message = "The store did not answer in time";
  return new RateLimiterUnavailable(message, { reason: "timeout", nothingWritten });
}
