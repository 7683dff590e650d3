import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";

/** The `ValidationError` that `call` throws; anything else fails the test. */
export function refusal(call: () => unknown): ValidationError {
  try {
    call();
  } catch (error) {
    if (error instanceof ValidationError) return error;
    throw error;
  }
  throw new Error("Expected a ValidationError, but nothing was thrown");
}
