/** What an error looks like on a command line: one line, and a number for scripts. */

import {
  EntityExistsError,
  EntityNotFoundError,
  NamespaceNotFoundError,
  RateLimiterUnavailable,
  ValidationError,
  ZaeLimiterError,
} from "../domain/errors.ts";
import { RateLimitExceeded } from "../domain/rate-limit-exceeded.ts";
import { AwsUnavailable } from "../infra/aws-failure.ts";
import { CommandFailure, UsageError } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { Interrupted } from "./interruption.ts";
import { visible } from "./visible.ts";

/** How the limiter begins when there is nothing to limit by. */
const NO_LIMITS = "no limits are configured";

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
  return { exitCode, code, line: visible(message.replace(/\s*\n\s*/g, " ").trim()) };
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
  if (error instanceof EntityExistsError) {
    return `${error.message}. See it with: zae-limiter entity show ${error.entityId}`;
  }
  if (error instanceof ValidationError && error.reason.startsWith(NO_LIMITS)) {
    return `${capital(error.reason)}. Set some with: zae-limiter system set-defaults -l rpm:100`;
  }
  if (error instanceof EntityNotFoundError) return `There is no "${error.entityId}" here`;
  if (error instanceof RateLimiterUnavailable && !(error instanceof AwsUnavailable)) {
    return `The store does not answer: ${error.message}. Is it running, and is its address right?`;
  }
  return error.message;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
