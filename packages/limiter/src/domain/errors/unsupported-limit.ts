/** Limits that this version cannot enforce: refused by name. */

import { ZaeLimiterError } from "./errors.ts";

/** Kinds of limits that this version cannot enforce. */
export type UnsupportedKind = "calendar quota" | "session quota" | "schedule" | "concurrency";

/**
 * A stored limit that this version cannot enforce. Calls that name it are refused; its neighbours
 * work.
 *
 * @example
 * ```ts
 * import type { UnsupportedLimit } from 'zae-limiter';
 * const limit: UnsupportedLimit = { name: 'rpd', kind: 'calendar quota' };
 * console.log(limit.name); // rpd
 * ```
 */
export interface UnsupportedLimit {
  readonly name: string;
  /** The kind of limit that this version cannot enforce. */
  readonly kind: UnsupportedKind;
}

/**
 * A call names a limit that only the Python library can enforce yet. Nothing was consumed.
 *
 * @example
 * ```ts
 * import { UnsupportedLimitError } from 'zae-limiter';
 * const error = new UnsupportedLimitError({ name: 'rpd', kind: 'calendar quota' }, 'key-1/gpt-4');
 * console.log(error.code, error.limitName); // ZAEL_UNSUPPORTED_LIMIT rpd
 * ```
 */
export class UnsupportedLimitError extends ZaeLimiterError {
  override readonly code = "ZAEL_UNSUPPORTED_LIMIT";
  readonly limitName: string;
  /** The kind of limit that this version cannot enforce. */
  readonly kind: UnsupportedKind;

  /** `place`: where the limit is, such as an entity and a resource. */
  constructor(limit: UnsupportedLimit, place: string) {
    super(
      `The limit "${limit.name}" of ${place} carries a ${limit.kind}, which this version ` +
        "cannot enforce. Use it through the Python library, or leave it out of the call: the " +
        "other limits work",
    );
    this.limitName = limit.name;
    this.kind = limit.kind;
  }
}

/** Throws for the first of the names that is a limit which cannot be enforced. */
export function refuseUnsupported(
  names: Iterable<string>,
  unsupported: readonly UnsupportedLimit[],
  place: string,
): void {
  if (unsupported.length === 0) return;
  for (const name of names) {
    const limit = unsupported.find((one) => one.name === name);
    if (limit !== undefined) throw new UnsupportedLimitError(limit, place);
  }
}
