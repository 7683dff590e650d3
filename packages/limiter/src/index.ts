/** The limiter's part of the public API, by name; what is not here is internal. */

export type {
  AcquireRequest,
  AlsoRequest,
  AmountRecord,
  Amounts,
  MissingLimits,
  StatusRequest,
} from "./acquire/acquire-request.ts";
export { type Decision, Refusal } from "./acquire/decision.ts";
export type {
  AcquireEvent,
  LeaseWarning,
  LimiterEvent,
  LimiterWarning,
  RejectedEvent,
} from "./acquire/events.ts";
export type { Lease, ResourceLease, SettledAmounts } from "./acquire/lease/lease.ts";
export type { RateLimiterOptions } from "./acquire/limiter-options.ts";
export type { LeaseEnd, OnError } from "./acquire/on-error.ts";
export { RateLimiter } from "./acquire/rate-limiter.ts";
export type { Random } from "./base/random.ts";
export type { Clock, Timer } from "./base/time.ts";
export type {
  BucketOperationResult,
  OperationTarget,
  ResetRequest,
  TopUpRequest,
} from "./buckets/balance-operations.ts";
export type {
  BucketRecords,
  BucketState,
  EntityCapacity,
  ResourceCapacity,
} from "./buckets/bucket-records.ts";
export type { Period } from "./core/calendar.ts";
export type { CalendarRule, Carry, PeriodRule, SessionRule } from "./core/period-rule.ts";
export type { RateSchedule, RateWindow } from "./core/rate-schedule.ts";
export type { WindowType } from "./core/windows.ts";
export { Entity } from "./domain/entity.ts";
export { type CopyRefusal, CopyRefusedError } from "./domain/errors/copy-refused.ts";
export type { ErrorCode } from "./domain/errors/error-code.ts";
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
} from "./domain/errors/errors.ts";
export { isLimiterError, type LimiterError } from "./domain/errors/limiter-error.ts";
export { ModelNotPriced } from "./domain/errors/model-not-priced.ts";
export {
  type LimitStatusJson,
  RateLimitExceeded,
  type RateLimitExceededJson,
  type RefusalJsonOptions,
} from "./domain/errors/rate-limit-exceeded.ts";
export { SweepIncompleteError } from "./domain/errors/sweep-incomplete.ts";
export type { OnUnavailable } from "./domain/errors/unavailability.ts";
export {
  type UnsupportedKind,
  type UnsupportedLimit,
  UnsupportedLimitError,
} from "./domain/errors/unsupported-limit.ts";
export {
  IncompatibleSchemaError,
  VersionError,
  VersionMismatchError,
} from "./domain/errors/version-errors.ts";
export type { JsonValue } from "./domain/json.ts";
export {
  Limit,
  type LimitInput,
  type RateOptions,
  type WindowOptions,
} from "./domain/limit.ts";
export type { QuotaJson, QuotaRuleJson } from "./domain/limit-json.ts";
export type { LimitJson, LimitKind, LimitSpec } from "./domain/limit-spec.ts";
export type { LimitStatus } from "./domain/limit-status.ts";
export { TOTAL } from "./domain/names.ts";
export type { ConfigSource } from "./domain/precedence.ts";
export type { PartPrices, PriceSpec, ServiceTier, TierPrices } from "./domain/price.ts";
export type { PriceEntry } from "./domain/price-list.ts";
export type {
  CarryOptions,
  QuotaOptions,
  QuotaUnit,
  QuotaWeekday,
  SessionLength,
} from "./domain/quota.ts";
export type { WindowJson } from "./domain/schedule.ts";
export type { Alert, AlertDelivery, StoredAlert } from "./records/alerts/alert-item.ts";
export type { AlertQuery, AlertRecords } from "./records/alerts/alerts.ts";
export type {
  Webhook,
  WebhookOptions,
  WebhookRecords,
  WebhookSpec,
} from "./records/alerts/webhooks.ts";
export type { AuditAction, AuditEvent, AuditLog } from "./records/audit.ts";
export type { CacheStats } from "./records/config/config-cache.ts";
export type { FlagTarget } from "./records/config/config-level.ts";
export type { ResolvedLimits } from "./records/config/config-resolver.ts";
export type { SetOptions } from "./records/config/limit-writer.ts";
export type { LimitRecords, SystemConfig } from "./records/config/limits.ts";
export type { SwitchResult } from "./records/config/sweep.ts";
export type {
  ChangeOptions,
  StoredLevel,
  SwitchRecords,
  SwitchReport,
  SwitchState,
} from "./records/config/switches.ts";
export type { EntityRecords, NewEntity } from "./records/entities/entities.ts";
export type { EntityListOptions, EntityPage } from "./records/entities/entity-list.ts";
export type {
  Namespace,
  NamespaceStatus,
  OrphanNamespace,
} from "./records/namespaces/namespace-item.ts";
export type { NamespaceRecords } from "./records/namespaces/namespaces.ts";
export type { PriceOptions, PriceRecords } from "./records/prices.ts";
export type { UsageConsumer } from "./records/usage/consumers.ts";
export type { UsagePeriod } from "./records/usage/period-item.ts";
export type { UsageQuery, UsageRecords, UsageTopQuery } from "./records/usage/usage.ts";
export type { UsageSnapshot } from "./records/usage/usage-item.ts";
export type { UsagePeriodsQuery } from "./records/usage/usage-periods.ts";
export type { UsageSummary } from "./records/usage/usage-sum.ts";
export type { VersionRecord } from "./records/version-record.ts";
export type { BackendCapabilities } from "./repository/backend.ts";
export type {
  CreateTableOptions,
  Credentials,
  DynamoOptions,
  MigrateOptions,
  OpenOptions,
  PostgresOptions,
  RedisOptions,
} from "./repository/options.ts";
export { Repository } from "./repository/repository.ts";
export type { UsageOptions } from "./repository/usage-options.ts";
export type { CallOutcome, ItemStore, StoreCall } from "./storage/item-store.ts";
export type {
  CopiedNamespace,
  CopyPhase,
  CopyProgress,
  CopyReport,
} from "./transfer/copy-report.ts";
export { type CopyOptions, copyStore } from "./transfer/copy-store.ts";
export type { CopyDifference, RowCounts } from "./transfer/passes.ts";
export type { RowKind } from "./transfer/side.ts";
