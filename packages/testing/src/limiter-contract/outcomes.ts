/** How calls end, for tests that check the error. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";

/** Ends a test that got where it must not get. */
export function fail(message: string): never {
  throw new Error(message);
}

/** Returns the error that the call is rejected with. */
export async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => fail("the call went well"),
    (error: unknown) => error,
  );
}

/** Returns the refusal of a call that does not fit. */
export async function refusalOf(call: Promise<unknown>): Promise<RateLimitExceeded> {
  const error = await failureOf(call);
  if (!(error instanceof RateLimitExceeded)) throw error;
  return error;
}

/** Returns the error of a call that could never be right. */
export async function invalidityOf(call: Promise<unknown>): Promise<ValidationError> {
  const error = await failureOf(call);
  if (!(error instanceof ValidationError)) throw error;
  return error;
}

/** Returns the error that `act` throws synchronously. */
export function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return fail("nothing was thrown");
}

/** Statuses as short lines: `user-1/api rpm 3/10`, with `!` for those that are exceeded. */
export function lines(statuses: readonly LimitStatus[]): string[] {
  return statuses.map(
    ({ entityId, resource, limitName, available, requested, exceeded }) =>
      `${entityId}/${resource} ${limitName} ${requested}/${available}${exceeded ? "!" : ""}`,
  );
}
