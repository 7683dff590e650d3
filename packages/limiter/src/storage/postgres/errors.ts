/**
 * Errors of PostgreSQL and of its clients: unavailable with nothing written, unavailable with an
 * unknown outcome, missing, or refused. Clients wrap the code of the server in different ways.
 */

import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
  type UnavailableReason,
  ZaeLimiterError,
} from "../../domain/errors/errors.ts";

/** The connection that failed, for messages. */
export interface PostgresPlace {
  /** The address without user, password and parameters. */
  readonly place: string;
  readonly schema: string;
}

/** The parts of an error that clients of PostgreSQL set. */
interface RawError {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly severity?: unknown;
  readonly meta?: unknown;
  readonly cause?: unknown;
  readonly originalCode?: unknown;
  readonly driverAdapterError?: unknown;
}

/** Failures of connecting: nothing was sent. */
const NEVER_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "CONNECT_TIMEOUT",
  // Prisma: unreachable, no connection of the pool in time.
  "P1001",
  "P1002",
  "P2024",
]);
const NEVER_CONNECTED_TEXT = /when trying to connect|due to connection timeout/i;

/** Answers of a server that does not take connections now. */
const NOT_TAKEN: ReadonlySet<string> = new Set(["53300", "57P03", "08001", "08004"]);

/** The server only reads. Its name may lead to the new primary by now, with a new connection. */
const STANDBY = "25006";

/** Answers after which the statement was rolled back, and may pass later. */
const ROLLED_BACK: Readonly<Record<string, UnavailableReason>> = {
  "55P03": "timeout",
  "57014": "timeout",
  "40P01": "throttled",
  "40001": "throttled",
  [STANDBY]: "server",
};
/** Classes of such answers: no room or memory, the system underneath, a bug of the server. */
const ROLLED_BACK_CLASS = /^(?:53|58|XX)/;

/** The server ended the connection, perhaps after it had committed. */
const ENDED = /^(?:57P0[1245]|08)/;

const MISSING: ReadonlySet<string> = new Set(["42P01", "3F000", "42883", "3D000"]);

/** Returns an error of a request as one of this library, with the original as its cause. */
export function postgresError(error: unknown, at: PostgresPlace, wasSent: boolean): Error {
  if (error instanceof ZaeLimiterError) return error;
  const { code = "", text } = readError(error);
  if (MISSING.has(code)) return missingError(at, code, text, error);
  const failure = isSqlState(code) ? answered(code, wasSent) : unanswered(code, text, wasSent);
  if (failure === undefined) return refusal(at, code, text, error);
  const { reason, nothingWritten, what } = failure;
  const details = { cause: error, reason, nothingWritten };
  return new RateLimiterUnavailable(`${at.place} ${what}: ${text}`, details);
}

/** A failure that may pass. */
interface Failure {
  readonly reason: UnavailableReason;
  readonly nothingWritten: boolean;
  readonly what: string;
}

/** Judges an answer of the server; `undefined`: it would refuse the request again. */
function answered(code: string, wasSent: boolean): Failure | undefined {
  if (NOT_TAKEN.has(code)) return failure("server", true, "takes no connections");
  const rolledBack = ROLLED_BACK[code];
  if (rolledBack !== undefined) return failure(rolledBack, true, "has undone the request");
  if (ROLLED_BACK_CLASS.test(code)) return failure("server", true, "has failed");
  if (ENDED.test(code)) return failure("server", !wasSent, "has ended the connection");
  return undefined;
}

function unanswered(code: string, text: string, wasSent: boolean): Failure {
  const neverSent = !wasSent || NEVER_CONNECTED.has(code) || NEVER_CONNECTED_TEXT.test(text);
  if (neverSent) return failure("network", true, "cannot be reached");
  return failure("network", false, "did not answer");
}

function failure(reason: UnavailableReason, nothingWritten: boolean, what: string): Failure {
  return { reason, nothingWritten, what };
}

/** Returns the error of a request that was not answered in time. */
export function lateError({ place }: PostgresPlace, timeoutMs: number, wasSent: boolean): Error {
  const what = wasSent ? "did not answer" : "gave no connection";
  return new RateLimiterUnavailable(`${place} ${what} within ${Math.round(timeoutMs)} ms`, {
    reason: "timeout",
    nothingWritten: !wasSent,
  });
}

/** Returns the error of a request after `close`. */
export function closedError({ place }: PostgresPlace): Error {
  return new InfrastructureError(`The connections to ${place} were closed`);
}

/** Returns whether the server answered, and may be asked again on the same connection. */
export function isAnswer(error: unknown): boolean {
  const { severity, code } = (error ?? {}) as RawError;
  return severity === "ERROR" && code !== STANDBY;
}

/** Returns how to create the schema: by this library, or by the owner of the database. */
export function howToMigrate(schema: string): string {
  const named = schema === "zae_limiter" ? "" : ` --schema ${schema}`;
  return (
    "Create it with `zae-limiter db migrate --url <address>` or Repository.migrate, or hand the " +
    `output of \`zae-limiter db sql${named}\` to the owner of the database`
  );
}

function missingError(at: PostgresPlace, code: string, text: string, cause: unknown): Error {
  const { place, schema } = at;
  const message =
    code === "3D000"
      ? `${place} does not exist: ${text}. Create the database first`
      : `The schema "${schema}" of ${place} is missing or too old: ${text}. ${howToMigrate(schema)}`;
  return new InfrastructureNotFoundError(`${place} ${schema}`, { cause, message });
}

function refusal(at: PostgresPlace, code: string, text: string, cause: unknown): Error {
  const { place, schema } = at;
  if (code.startsWith("28")) {
    return new InfrastructureError(`${place} did not accept the user or password: ${text}`, {
      cause,
    });
  }
  if (code === "42501") {
    const message =
      `This user may not use the schema "${schema}" of ${place}: ${text}. Grant it with ` +
      "`zae-limiter db migrate --grant <role>`, or hand the output of `zae-limiter db sql " +
      "--grant <role>` to the owner of the database";
    return new InfrastructureError(message, { cause });
  }
  return new InfrastructureError(`${place} refused a request (${code}): ${text}`, { cause });
}

/** Returns the code of the server or of the socket, from wherever the client has put it. */
function readError(error: unknown): { code: string | undefined; text: string } {
  const text = (error as RawError | undefined)?.message;
  let outer: string | undefined;
  let at: unknown = error;
  for (let depth = 0; depth < 6 && typeof at === "object" && at !== null; depth += 1) {
    const { code, originalCode, meta, cause, driverAdapterError } = at as RawError;
    for (const each of [originalCode, code]) {
      if (typeof each !== "string") continue;
      if (isSqlState(each)) return { code: each, text: String(text) };
      outer ??= each;
    }
    at = driverAdapterError ?? meta ?? cause;
  }
  return { code: outer, text: typeof text === "string" && text !== "" ? text : String(error) };
}

/** Returns whether a code is of the server: those of Prisma, such as `P2010`, have its form. */
function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && !/^P[12]\d{3}$|^E[A-Z]{4}$/.test(code);
}
