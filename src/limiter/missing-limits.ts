/** What happens to a name in `consume` that the entity has no limit for. */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";

/**
 * `error` refuses a name that the entity has no limit for, with a `ValidationError`. `ignore` takes
 * it as unlimited for that entity; ancestors that have the limit still count it.
 *
 * @example
 * ```ts
 * import { RateLimiter, type MissingLimits } from 'zae-limiter';
 * const missingLimits: MissingLimits = 'ignore';
 * const limiter = await RateLimiter.open('memory:', { missingLimits });
 * await limiter.repository.limits.setSystem(['rpm:10']);
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 },
 * });
 * console.log(lease.consumed); // { rpm: 1 }
 * await limiter.close();
 * ```
 */
export type MissingLimits = "error" | "ignore";

const MODES = ["error", "ignore"] as const satisfies readonly MissingLimits[];

/** Checks a mode that came from outside; `undefined` where none was given. */
export function checkMissingLimits(value: unknown): MissingLimits | undefined {
  const mode = MODES.find((candidate) => candidate === value);
  if (mode !== undefined || value === undefined) return mode;
  throw new ValidationError(
    "missingLimits",
    value,
    `expected "error" or "ignore", got ${show(value)}`,
  );
}
