/** Answers that are errors: a stable code and a sentence, as JSON. */

import {
  EntityExistsError,
  EntityNotFoundError,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimiterUnavailable,
  ValidationError,
  ZaeLimiterError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { ErrorJson } from "../wire.ts";

/** An error with the status it is answered with. */
export interface Failure extends ErrorJson {
  readonly status: number;
}

/** An error of the request itself. */
export class RequestFailure extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

export function failure(status: number, error: string, message: string): Failure {
  return { status, error, message };
}

/** Returns the answer to an error; an unknown one is shown without its message. */
export function failureOf(error: unknown): Failure {
  if (error instanceof RequestFailure) return error.failure;
  if (error instanceof ZaeLimiterError) return failure(statusOf(error), error.code, error.message);
  return failure(500, "internal", "The dashboard has failed; the process was warned");
}

function statusOf(error: ZaeLimiterError): number {
  if (error instanceof ValidationError) return 400;
  if (error instanceof NamespaceNotFoundError || error instanceof EntityNotFoundError) return 404;
  if (error instanceof NamespaceStateError || error instanceof EntityExistsError) return 409;
  if (error instanceof RateLimiterUnavailable) return 503;
  return 500;
}
