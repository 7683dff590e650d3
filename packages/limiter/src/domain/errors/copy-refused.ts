/** A store was not copied, because that could have lost or mixed up data. */

import { InfrastructureError } from "./errors.ts";

/**
 * Why a copy was refused.
 *
 * - `same-store`: both addresses lead to one store.
 * - `source-unfinished`: the source is itself a copy that has not come to its end.
 * - `source-changed`: a client wrote to the source while it was copied.
 * - `target-has-data`: the target has data of the namespace that no run of this copy has written.
 * - `target-in-use`: a limiter has used the target since an earlier run of this copy.
 */
export type CopyRefusal =
  | "same-store"
  | "source-unfinished"
  | "source-changed"
  | "target-has-data"
  | "target-in-use";

/**
 * A store was not copied, or not to the end: the same call goes on where it stopped.
 *
 * @example
 * ```ts
 * import { CopyRefusedError } from 'zae-limiter';
 * const error = new CopyRefusedError('same-store', 'Both addresses lead to limits.db');
 * console.log(error.code, error.reason); // ZAEL_COPY_REFUSED same-store
 * ```
 */
export class CopyRefusedError extends InfrastructureError {
  override readonly code = "ZAEL_COPY_REFUSED";

  constructor(
    /** Why it was refused. */
    readonly reason: CopyRefusal,
    message: string,
  ) {
    super(message);
  }
}
