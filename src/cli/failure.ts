/** What an error looks like on a command line: one line, and a number for scripts. */

import {
  EntityNotFoundError,
  NamespaceNotFoundError,
  RateLimiterUnavailable,
  ZaeLimiterError,
} from "../domain/errors.ts";
import { RateLimitExceeded } from "../domain/rate-limit-exceeded.ts";
import { CommandFailure, UsageError } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { Interrupted } from "./interruption.ts";

/** An error as it is reported; without a line there is nothing to say. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly line: string | undefined;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof Interrupted) {
    return { exitCode: error.exitCode, code: "INTERRUPTED", line: undefined };
  }
  if (error instanceof UsageError) return failure(EXIT.usage, "USAGE", error.message);
  if (error instanceof CommandFailure) return failure(error.exitCode, "FAILED", error.message);
  if (error instanceof ZaeLimiterError) {
    return failure(exitCodeOf(error), error.code, advised(error));
  }
  const message = error instanceof Error ? error.message : String(error);
  return failure(EXIT.failed, "BUG", `${message} (unexpected; --debug shows where it comes from)`);
}

function failure(exitCode: number, code: string, message: string): Failure {
  return { exitCode, code, line: message.replace(/\s*\n\s*/g, " ").trim() };
}

function exitCodeOf(error: ZaeLimiterError): number {
  if (error instanceof RateLimitExceeded) return EXIT.limitExceeded;
  if (error instanceof RateLimiterUnavailable) return EXIT.unavailable;
  return EXIT.failed;
}

/** Messages are for programs; on a command line, the way on is another command. */
function advised(error: ZaeLimiterError): string {
  if (error instanceof NamespaceNotFoundError) {
    const { namespaceName: name } = error;
    return `There is no namespace "${name}". Register it with: zae-limiter namespace register ${name}`;
  }
  if (error instanceof EntityNotFoundError) return `There is no "${error.entityId}" here`;
  if (error instanceof RateLimiterUnavailable) {
    return `The store does not answer: ${error.message}. Is it running, and is its address right?`;
  }
  return error.message;
}
