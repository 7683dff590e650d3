/** All errors of this library as one union, distinguished by `code`. */

import type { CopyRefusedError } from "./copy-refused.ts";
import type {
  DamagedRecordError,
  EntityExistsError,
  EntityNotFoundError,
  InfrastructureError,
  InfrastructureNotFoundError,
  InvalidIdentifierError,
  InvalidNameError,
  LeaseExpiredError,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimiterUnavailable,
  ResourceDisabled,
  StackAlreadyExistsError,
  StackOperationError,
  ValidationError,
} from "./errors.ts";
import type { ModelNotPriced } from "./model-not-priced.ts";
import type { RateLimitExceeded } from "./rate-limit-exceeded.ts";
import type { SweepIncompleteError } from "./sweep-incomplete.ts";
import type { UnsupportedLimitError } from "./unsupported-limit.ts";
import type {
  IncompatibleSchemaError,
  VersionError,
  VersionMismatchError,
} from "./version-errors.ts";

/** An error of a class that others extend, with the code of that class itself. */
type Coded<E, Code extends string> = E & { readonly code: Code };

/**
 * Every error that this library throws on purpose; `code` says which one it is. Migration errors
 * have more fields: see `zae-limiter/infra`.
 */
export type LimiterError =
  | RateLimitExceeded
  | LeaseExpiredError
  | ResourceDisabled
  | UnsupportedLimitError
  | RateLimiterUnavailable
  | StackOperationError
  | StackAlreadyExistsError
  | InfrastructureNotFoundError
  | NamespaceNotFoundError
  | NamespaceStateError
  | DamagedRecordError
  | SweepIncompleteError
  | CopyRefusedError
  | Coded<InfrastructureError, "ZAEL_INFRASTRUCTURE">
  | EntityNotFoundError
  | EntityExistsError
  | VersionMismatchError
  | IncompatibleSchemaError
  | Coded<VersionError, "ZAEL_MIGRATION" | "ZAEL_MIGRATION_RUNNING">
  | InvalidIdentifierError
  | InvalidNameError
  | ModelNotPriced
  | Coded<ValidationError, "ZAEL_VALIDATION" | "ZAEL_INVALID_MANIFEST">;

/**
 * Whether an error is one of this library, from whichever copy of the package. A `switch` over
 * its `code` then knows the fields of each error.
 *
 * @example
 * ```ts
 * import { isLimiterError, RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const request = { entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:1'], consume: { rpm: 2 } };
 * try {
 *   await limiter.acquire(request);
 * } catch (error) {
 *   if (!isLimiterError(error)) throw error;
 *   switch (error.code) {
 *     case 'ZAEL_RATE_LIMIT_EXCEEDED':
 *       console.log(error.neverFits ? 413 : 429); // 413
 *       break;
 *     case 'ZAEL_UNAVAILABLE':
 *       console.log(503, error.reason);
 *   }
 * }
 * await limiter.close();
 * ```
 */
export function isLimiterError(error: unknown): error is LimiterError {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return typeof error.code === "string" && error.code.startsWith("ZAEL_");
}
