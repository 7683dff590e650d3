import { describe, expectTypeOf, test } from "vitest";
import type {
  EntityExistsError,
  EntityNotFoundError,
  IncompatibleSchemaError,
  InfrastructureError,
  InfrastructureNotFoundError,
  InvalidIdentifierError,
  InvalidNameError,
  LeaseExpiredError,
  LimitStatus,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimitError,
  RateLimitExceeded,
  RateLimitExceededJson,
  RateLimiterUnavailable,
  StackAlreadyExistsError,
  StackOperationError,
  UnavailableReason,
  ValidationError,
  VersionError,
  VersionMismatchError,
  ZaeLimiterError,
} from "../../src/index.ts";

describe("errors", () => {
  test("form the tree of the contract", () => {
    expectTypeOf<ZaeLimiterError>().toExtend<Error>();
    expectTypeOf<RateLimitExceeded | LeaseExpiredError>().toExtend<RateLimitError>();
    expectTypeOf<
      | RateLimiterUnavailable
      | StackOperationError
      | StackAlreadyExistsError
      | InfrastructureNotFoundError
      | NamespaceNotFoundError
      | NamespaceStateError
    >().toExtend<InfrastructureError>();
    expectTypeOf<VersionMismatchError | IncompatibleSchemaError>().toExtend<VersionError>();
    expectTypeOf<InvalidIdentifierError | InvalidNameError>().toExtend<ValidationError>();
    expectTypeOf<EntityNotFoundError | EntityExistsError>().toExtend<{
      readonly entityId: string;
    }>();
  });

  test("can be told apart by code", () => {
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
      | "capacity"
      | "refill_amount"
      | "refill_period_seconds"
      | "available"
      | "requested"
      | "exceeded"
      | "retry_after_seconds"
    >();
  });

  test("carry their data as fields that do not change", () => {
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
