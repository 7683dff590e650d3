/** An error as the command line reports it: one line, and an exit code for scripts. */

import { AwsUnavailable } from "@zae-limiter/aws/client/aws-failure.ts";
import { NO_LIMITS } from "@zae-limiter/limiter/acquire/call-legs.ts";
import {
  EntityExistsError,
  EntityNotFoundError,
  InfrastructureNotFoundError,
  NamespaceNotFoundError,
  RateLimiterUnavailable,
  ValidationError,
  ZaeLimiterError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { StoreOptions } from "../store/store-options.ts";
import { Interrupted } from "../terminal/interruption.ts";
import { visible } from "../terminal/visible.ts";
import { CommandFailure, UsageError } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { namespaceHint, stackAt, stackHint, storeHint } from "./hint.ts";

/** An error as it is reported; without a line there is nothing to say. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly line: string | undefined;
}

/** Explains an error; suggested commands repeat the `options` of the command line. */
export function failureOf(error: unknown, options: StoreOptions = {}): Failure {
  if (error instanceof Interrupted) {
    return { exitCode: error.exitCode, code: "INTERRUPTED", line: undefined };
  }
  if (error instanceof UsageError) return failure(EXIT.usage, "USAGE", error.message);
  if (error instanceof CommandFailure) {
    const code = error.cause instanceof ZaeLimiterError ? error.cause.code : "FAILED";
    return failure(error.exitCode, code, error.message);
  }
  if (error instanceof ZaeLimiterError) {
    return failure(exitCodeOf(error), error.code, advised(error, options));
  }
  const message = error instanceof Error ? error.message : String(error);
  return failure(EXIT.failed, "BUG", `${message} (unexpected; --debug shows where it comes from)`);
}

function failure(exitCode: number, code: string, message: string): Failure {
  const lines = message.split("\n").map((line) => line.trim());
  return { exitCode, code, line: visible(lines.filter((line) => line !== "").join(" ")) };
}

function exitCodeOf(error: ZaeLimiterError): number {
  if (error instanceof RateLimitExceeded) return EXIT.limitExceeded;
  if (error instanceof RateLimiterUnavailable) return EXIT.unavailable;
  return EXIT.failed;
}

/** Messages are for programs; on a command line, the next step is another command. */
function advised(error: ZaeLimiterError, options: StoreOptions): string {
  if (error instanceof NamespaceNotFoundError) {
    const { namespaceName: name } = error;
    const command = storeHint(["namespace", "register", name], options);
    return `There is no namespace "${name}". Register it with: ${command}`;
  }
  if (error instanceof InfrastructureNotFoundError) {
    // A schema on PostgreSQL is created in other ways, which the message has.
    const isTable = error.message === new InfrastructureNotFoundError(error.stackName).message;
    return isTable ? missingTable(error.stackName, options) : error.message;
  }
  if (error instanceof EntityExistsError) {
    const command = namespaceHint(["entity", "show", error.entityId], options);
    return `${error.message}. Show it with: ${command}`;
  }
  if (error instanceof ValidationError && error.reason.startsWith(NO_LIMITS)) {
    // A total has no limits of the system.
    const isTotal = String(error.value).endsWith(`/${TOTAL}`);
    const level = isTotal ? ["resource", "set-limits", TOTAL] : ["system", "set-limits"];
    const command = namespaceHint([...level, "-l", "rpm:100"], options);
    // The part after the semicolon is for programs.
    const [problem = ""] = error.reason.split(";");
    return `${capital(problem)}. Set some with: ${command}`;
  }
  if (error instanceof EntityNotFoundError) return `There is no entity "${error.entityId}"`;
  if (error instanceof RateLimiterUnavailable && !(error instanceof AwsUnavailable)) {
    return `The store does not answer: ${error.message}. Is it running, and is its address right?`;
  }
  return error.message;
}

/** Returns the advice for a missing table: a server behind an endpoint often deploys no stacks. */
function missingTable(name: string, options: StoreOptions): string {
  const stack = stackAt(name, options);
  const command = stackHint(["deploy"], stack);
  if (stack.endpoint === undefined) {
    return `There is no table "${name}" here. Create it with: ${command}`;
  }
  return (
    `There is no table "${name}" at ${stack.endpoint}. Create it in code with ` +
    `Repository.createTable; where the endpoint has CloudFormation, with: ${command}`
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
