import {
  type DamagedRecordError,
  type EntityExistsError,
  type EntityNotFoundError,
  type ErrorCode,
  type IncompatibleSchemaError,
  type InfrastructureError,
  type InfrastructureNotFoundError,
  type InvalidIdentifierError,
  type InvalidNameError,
  isLimiterError,
  type LeaseExpiredError,
  type LimiterError,
  type LimitStatus,
  type NamespaceNotFoundError,
  type NamespaceStateError,
  type RateLimitError,
  type RateLimitExceeded,
  type RateLimitExceededJson,
  type RateLimiterUnavailable,
  type ResourceDisabled,
  type StackAlreadyExistsError,
  type StackOperationError,
  type UnavailableReason,
  type ValidationError,
  type VersionError,
  type VersionMismatchError,
  type ZaeLimiterError,
} from "@zae-limiter/limiter/index.ts";
import { describe, expectTypeOf, test } from "vitest";

describe("errors", () => {
  test("errors form the tree of the contract", () => {
    expectTypeOf<ZaeLimiterError>().toExtend<Error>();
    expectTypeOf<
      RateLimitExceeded | ResourceDisabled | LeaseExpiredError
    >().toExtend<RateLimitError>();
    expectTypeOf<
      | RateLimiterUnavailable
      | StackOperationError
      | StackAlreadyExistsError
      | InfrastructureNotFoundError
      | NamespaceNotFoundError
      | DamagedRecordError
      | NamespaceStateError
    >().toExtend<InfrastructureError>();
    expectTypeOf<VersionMismatchError | IncompatibleSchemaError>().toExtend<VersionError>();
    expectTypeOf<InvalidIdentifierError | InvalidNameError>().toExtend<ValidationError>();
    expectTypeOf<EntityNotFoundError | EntityExistsError>().toExtend<{
      readonly entityId: string;
    }>();
  });

  test("errors can be told apart by code", () => {
    const wait = (error: RateLimitExceeded | RateLimiterUnavailable) => {
      if (error.code === "ZAEL_UNAVAILABLE") {
        expectTypeOf(error.reason).toEqualTypeOf<UnavailableReason | undefined>();
        return 0;
      }
      expectTypeOf(error).toEqualTypeOf<RateLimitExceeded>();
      return error.retryAfterSeconds;
    };
    expectTypeOf(wait).returns.toBeNumber();
  });

  test("errors have a code that a switch completes, and that a typo does not match", () => {
    const status = (error: ZaeLimiterError): number => {
      switch (error.code) {
        case "ZAEL_RATE_LIMIT_EXCEEDED":
          return 429;
        // @ts-expect-error There is no such code.
        case "ZAEL_UNAVAILBLE":
          return 503;
        default:
          return 500;
      }
    };
    expectTypeOf(status).returns.toBeNumber();
    expectTypeOf<ZaeLimiterError["code"]>().toEqualTypeOf<ErrorCode>();
    expectTypeOf<LimiterError["code"]>().toExtend<ErrorCode>();
    // Classes that are never thrown themselves are all that is missing.
    expectTypeOf<Exclude<ErrorCode, LimiterError["code"]>>().toEqualTypeOf<
      "ZAEL_ERROR" | "ZAEL_RATE_LIMIT" | "ZAEL_ENTITY" | "ZAEL_VERSION"
    >();
  });

  test("errors are narrowed by their code to the fields they have", () => {
    const describeError = (error: unknown) => {
      if (!isLimiterError(error)) return;
      switch (error.code) {
        case "ZAEL_RATE_LIMIT_EXCEEDED":
          expectTypeOf(error).toEqualTypeOf<RateLimitExceeded>();
          break;
        case "ZAEL_UNAVAILABLE":
          expectTypeOf(error).toEqualTypeOf<RateLimiterUnavailable>();
          break;
        case "ZAEL_VALIDATION":
          expectTypeOf(error.field).toBeString();
          break;
        case "ZAEL_ENTITY_EXISTS":
          expectTypeOf(error.entityId).toBeString();
          break;
        case "ZAEL_INFRASTRUCTURE":
          expectTypeOf(error).toExtend<InfrastructureError>();
      }
    };
    expectTypeOf(describeError).returns.toBeVoid();
  });

  test("a refusal explains itself", () => {
    expectTypeOf<RateLimitExceeded["statuses"]>().toEqualTypeOf<readonly LimitStatus[]>();
    expectTypeOf<RateLimitExceeded["violations"]>().toEqualTypeOf<readonly LimitStatus[]>();
    expectTypeOf<RateLimitExceeded["passed"]>().toEqualTypeOf<readonly LimitStatus[]>();
    expectTypeOf<RateLimitExceeded["primaryViolation"]>().toEqualTypeOf<LimitStatus>();
    expectTypeOf<RateLimitExceeded["retryAfterSeconds"]>().toBeNumber();
    expectTypeOf<RateLimitExceeded["retryAfterHeader"]>().toBeString();
    expectTypeOf<ReturnType<RateLimitExceeded["toJSON"]>>().toEqualTypeOf<RateLimitExceededJson>();
    expectTypeOf<keyof RateLimitExceededJson["limits"][number]>().toEqualTypeOf<
      | "entity_id"
      | "resource"
      | "limit_name"
      | "kind"
      | "resets_at"
      | "resets_at_ms"
      | "capacity"
      | "refill_amount"
      | "refill_period_seconds"
      | "available"
      | "requested"
      | "exceeded"
      | "retry_after_seconds"
      | "estimated"
    >();
  });

  test("errors carry their data as fields that do not change", () => {
    const touch = (error: ValidationError) => {
      // @ts-expect-error What came is what came.
      error.value = "other";
      // @ts-expect-error The code is stable.
      error.code = "other";
    };
    expectTypeOf(touch).returns.toBeVoid();
    expectTypeOf<Pick<ValidationError, "field" | "value" | "reason">>().toEqualTypeOf<{
      readonly field: string;
      readonly value: string;
      readonly reason: string;
    }>();
  });
});
