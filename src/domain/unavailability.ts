/** What happens to an acquire while the store cannot answer. */

import { show } from "./check.ts";
import { ValidationError } from "./errors.ts";

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

const MODES = ["allow", "block"] as const satisfies readonly OnUnavailable[];

/** Checks a mode that came from outside. */
export function checkOnUnavailable(value: unknown): OnUnavailable {
  const mode = MODES.find((candidate) => candidate === value);
  if (mode !== undefined) return mode;
  throw new ValidationError(
    "on_unavailable",
    value,
    `expected "allow" or "block", got ${show(value)}`,
  );
}
