/** The codes of all errors. They stay the same across releases; new ones may be added. */

/** A call was refused because of its limits, or a lease has ended. */
export type RateLimitCode =
  | "ZAEL_RATE_LIMIT"
  | "ZAEL_RATE_LIMIT_EXCEEDED"
  | "ZAEL_RESOURCE_DISABLED"
  | "ZAEL_LEASE_EXPIRED";

/** A limit of the Python library that this version cannot enforce. */
type UnsupportedCode = "ZAEL_UNSUPPORTED_LIMIT";

/** The store, the table, the namespace or the stack. */
export type InfrastructureCode =
  | "ZAEL_INFRASTRUCTURE"
  | "ZAEL_UNAVAILABLE"
  | "ZAEL_STACK_OPERATION"
  | "ZAEL_STACK_EXISTS"
  | "ZAEL_INFRASTRUCTURE_NOT_FOUND"
  | "ZAEL_NAMESPACE_NOT_FOUND"
  | "ZAEL_NAMESPACE_STATE"
  | "ZAEL_DAMAGED_RECORD"
  | "ZAEL_SWEEP_INCOMPLETE"
  | "ZAEL_COPY_REFUSED";

/** An entity. */
export type EntityCode = "ZAEL_ENTITY" | "ZAEL_ENTITY_NOT_FOUND" | "ZAEL_ENTITY_EXISTS";

/** Versions of client, table and Lambda. */
export type VersionCode =
  | "ZAEL_VERSION"
  | "ZAEL_VERSION_MISMATCH"
  | "ZAEL_INCOMPATIBLE_SCHEMA"
  | "ZAEL_MIGRATION"
  | "ZAEL_MIGRATION_RUNNING";

/** An argument. */
export type ValidationCode =
  | "ZAEL_VALIDATION"
  | "ZAEL_INVALID_IDENTIFIER"
  | "ZAEL_INVALID_NAME"
  | "ZAEL_INVALID_MANIFEST"
  | "ZAEL_MODEL_NOT_PRICED";

/**
 * The `code` of an error of this library.
 *
 * @example
 * ```ts
 * import type { ErrorCode } from 'zae-limiter';
 * const retryable: readonly ErrorCode[] = ['ZAEL_RATE_LIMIT_EXCEEDED', 'ZAEL_UNAVAILABLE'];
 * ```
 */
export type ErrorCode =
  | "ZAEL_ERROR"
  | RateLimitCode
  | UnsupportedCode
  | InfrastructureCode
  | EntityCode
  | VersionCode
  | ValidationCode;
