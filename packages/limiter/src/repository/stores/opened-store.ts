/** A store of the caller's that opens itself: it knows more than its items, such as warm calls. */

import type { Backend } from "../backend.ts";
import type { OpenOptions } from "../options.ts";

/** Marks a store that opens itself. */
export const OPENS: unique symbol = Symbol.for("zae-limiter.opens");

/** A store for `Repository.over`, as `postgres(pool)` of `zae-limiter/postgres` returns it. */
export interface OpenableStore {
  /** @internal */
  [OPENS](options: OpenOptions): Promise<Backend>;
}

/** Returns whether a store opens itself, by its mark. */
export function isOpenable(value: object): value is OpenableStore {
  return OPENS in value;
}
