/** How the lease of work that threw ends. */

import { checkChoice } from "../domain/check.ts";

/**
 * How `run` ends the lease when the work throws: `rollback` (default) refunds it, `commit` keeps
 * what was consumed and writes the adjustments. A function decides by the error. The error is
 * rethrown either way.
 *
 * @example
 * ```ts
 * import { RateLimiter, type OnError } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const call = { entityId: 'key-1', resource: 'gpt-4', limits: ['tpd:1000/day'] };
 * // The model has produced the tokens, whether the client still listens or not.
 * const onError: OnError = (error) =>
 *   error instanceof Error && error.name === 'AbortError' ? 'commit' : 'rollback';
 * const stream = async () => { throw new DOMException('hung up', 'AbortError'); };
 * await limiter.run({ ...call, consume: { tpd: 400 }, onError }, stream).catch(() => undefined);
 * console.log((await limiter.available(call))['tpd']); // 600
 * await limiter.close();
 * ```
 */
export type OnError = LeaseEnd | ((error: unknown) => LeaseEnd);

/** How a lease ends. */
export type LeaseEnd = "rollback" | "commit";

const LEASE_ENDS: readonly LeaseEnd[] = ["rollback", "commit"];

/** Checks a choice that came from outside; `undefined` where none was given. */
export function checkOnError(value: unknown): OnError | undefined {
  if (value === undefined || typeof value === "function") return value as OnError | undefined;
  return checkEnd(value);
}

/**
 * Returns how the lease ends after this error. A function that throws or returns something else
 * must not hide the error of the work: the process is warned, and the default applies.
 */
export function endAfter(onError: OnError | undefined, error: unknown): LeaseEnd {
  if (typeof onError !== "function") return onError ?? "rollback";
  try {
    return checkEnd(onError(error));
  } catch (failure) {
    process.emitWarning("The function `onError` failed, so the lease is rolled back", {
      code: "ZAEL_ON_ERROR_FAILED",
      detail: String(failure),
    });
    return "rollback";
  }
}

function checkEnd(value: unknown): LeaseEnd {
  return checkChoice("onError", value, LEASE_ENDS);
}
