/** The public API. Everything is exported by name; what is not here is internal. */

export type { WindowType } from "./core/windows.ts";
export type { Clock } from "./domain/clock.ts";
export { Entity } from "./domain/entity.ts";
export type { ErrorCode } from "./domain/error-code.ts";
export {
  DamagedRecordError,
  type DisabledLevel,
  EntityError,
  EntityExistsError,
  EntityNotFoundError,
  InfrastructureError,
  InfrastructureNotFoundError,
  InvalidIdentifierError,
  InvalidNameError,
  LeaseExpiredError,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimitError,
  RateLimiterUnavailable,
  ResourceDisabled,
  StackAlreadyExistsError,
  type StackFailureEvent,
  StackOperationError,
  type UnavailableReason,
  ValidationError,
  ZaeLimiterError,
} from "./domain/errors.ts";
export type { JsonValue } from "./domain/json.ts";
export {
  Limit,
  type LimitInput,
  type LimitJson,
  type LimitSpec,
  type RateOptions,
} from "./domain/limit.ts";
export type { LimitStatus } from "./domain/limit-status.ts";
export { isLimiterError, type LimiterError } from "./domain/limiter-error.ts";
export type { ConfigSource } from "./domain/precedence.ts";
export type { Random } from "./domain/random.ts";
export {
  type LimitStatusJson,
  RateLimitExceeded,
  type RateLimitExceededJson,
  type RefusalJsonOptions,
} from "./domain/rate-limit-exceeded.ts";
export { SweepIncompleteError } from "./domain/sweep-incomplete.ts";
export type { Timer } from "./domain/timer.ts";
export type { OnUnavailable } from "./domain/unavailability.ts";
export {
  type UnsupportedKind,
  type UnsupportedLimit,
  UnsupportedLimitError,
} from "./domain/unsupported-limit.ts";
export {
  IncompatibleSchemaError,
  VersionError,
  VersionMismatchError,
} from "./domain/version-errors.ts";
export type { StackOptions } from "./infra/stack-options.ts";
export type {
  AcquireRequest,
  AlsoRequest,
  LeaseEnd,
  MissingLimits,
  OnError,
} from "./limiter/acquire-request.ts";
export type { AmountRecord, Amounts } from "./limiter/amounts.ts";
export { type Decision, Refusal } from "./limiter/decision.ts";
export type {
  AcquireEvent,
  LeaseWarning,
  LimiterEvent,
  LimiterWarning,
  RejectedEvent,
} from "./limiter/events.ts";
export type { Lease, ResourceLease, SettledAmounts } from "./limiter/lease.ts";
export type { RateLimiterOptions } from "./limiter/limiter-options.ts";
export {
  RateLimiter,
  type StatusRequest,
} from "./limiter/rate-limiter.ts";
export type { AuditAction, AuditEvent, AuditLog } from "./records/audit.ts";
export type { CacheStats } from "./records/config-cache.ts";
export type { FlagTarget } from "./records/config-level.ts";
export type { ResolvedLimits } from "./records/config-resolver.ts";
export type { EntityRecords, NewEntity } from "./records/entities.ts";
export type { EntityListOptions, EntityPage } from "./records/entity-list.ts";
export type { LimitRecords, SystemConfig } from "./records/limits.ts";
export type { Namespace, NamespaceStatus, OrphanNamespace } from "./records/namespace-item.ts";
export type { NamespaceRecords } from "./records/namespaces.ts";
export type { SwitchResult } from "./records/sweep.ts";
export type {
  ChangeOptions,
  StoredLevel,
  SwitchRecords,
  SwitchReport,
  SwitchState,
} from "./records/switches.ts";
export type { UsageQuery, UsageRecords } from "./records/usage.ts";
export type { UsageSnapshot } from "./records/usage-item.ts";
export type { UsageSummary } from "./records/usage-sum.ts";
export type { VersionRecord } from "./records/version-record.ts";
export type { BackendCapabilities } from "./repository/backend.ts";
export type {
  BucketOperationResult,
  OperationTarget,
  ResetRequest,
  TopUpRequest,
} from "./repository/balance-operations.ts";
export type {
  BucketRecords,
  BucketState,
  EntityCapacity,
  ResourceCapacity,
} from "./repository/bucket-records.ts";
export type {
  CreateTableOptions,
  Credentials,
  DynamoOptions,
  OpenOptions,
  ProvisionOptions,
} from "./repository/options.ts";
export { Repository } from "./repository/repository.ts";
export type { UsageOptions } from "./repository/usage-options.ts";
export type { CallOutcome, ItemStore, StoreCall } from "./storage/item-store.ts";
