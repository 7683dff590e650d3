/** Errors of SQLite: the three drivers report them in three forms. */

import {
  InfrastructureError,
  RateLimiterUnavailable,
  ZaeLimiterError,
} from "../../domain/errors/errors.ts";

/** Primary result codes that we distinguish, by their number. */
const NAMES: Readonly<Record<number, string>> = {
  3: "PERM",
  5: "BUSY",
  6: "LOCKED",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  15: "PROTOCOL",
  26: "NOTADB",
};

const SENTENCES: Readonly<Record<string, string>> = {
  PERM: "may not be opened by this process",
  READONLY: "is read-only",
  IOERR: "could not be read or written",
  CORRUPT: "is damaged; restore it from a copy, or delete it to start again",
  FULL: "could not grow: the disk is full",
  CANTOPEN: "could not be opened; is its folder there and writable?",
  NOTADB: "is not a SQLite database",
};

/** Whether another process was in the way, for a moment: a snapshot, a recovery, a checkpoint. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === "BUSY" || code === "LOCKED" || code === "PROTOCOL";
}

/** Whether the disk is full: an outage that ends when there is room again. */
export function isFull(error: unknown): boolean {
  return resultCode(error) === "FULL";
}

/** Returns errors of SQLite as ours, and everything else as it came. */
export function asInfrastructureError(error: unknown, path: string): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  const sentence = SENTENCES[code];
  if (code === "FULL") {
    const details = { cause: error, reason: "server", nothingWritten: true } as const;
    return new RateLimiterUnavailable(`The file "${path}" ${sentence}`, details);
  }
  return new InfrastructureError(
    sentence === undefined
      ? `SQLite refused a request to the file "${path}": ${(error as Error).message}`
      : `The file "${path}" ${sentence}`,
    { cause: error },
  );
}

/** Returns the error of a file that could not be opened; an error of this library stays. */
export function openingError(error: unknown, path: string): unknown {
  if (error instanceof ZaeLimiterError) return error;
  return new InfrastructureError(
    `The file "${path}" could not be opened: ${error instanceof Error ? error.message : error}`,
    { cause: error },
  );
}

/** Returns the error of a call that has waited too long for the lock. */
export function timeoutError(path: string, waitedMs: number): Error {
  return new RateLimiterUnavailable(
    `The file "${path}" was locked by other writers for ${Math.round(waitedMs)} ms`,
    { reason: "timeout", nothingWritten: true },
  );
}

/** Returns the error of a call to a file that was closed. */
export function closedError(path: string): Error {
  return new InfrastructureError(`The file "${path}" was closed`);
}

function resultCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // node:sqlite says `errcode`, libsql `rawCode`, both with the extended code in the upper bits;
  // better-sqlite3 only has the name, such as SQLITE_BUSY_SNAPSHOT.
  const { code, errcode, rawCode } = error as Error & Record<string, unknown>;
  const number = errcode ?? rawCode;
  if (typeof number === "number") return NAMES[number & 0xff] ?? String(number);
  if (typeof code === "string" && code.startsWith("SQLITE_")) return code.split("_")[1];
  return undefined;
}
