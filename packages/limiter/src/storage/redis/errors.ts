/**
 * Errors of Redis, Valkey and their clients: unavailable with nothing written, unavailable with an
 * unknown outcome, or refused. A script checks everything before its first write, so an answer that
 * is an error means that nothing was written.
 */

import {
  InfrastructureError,
  RateLimiterUnavailable,
  type UnavailableReason,
  ZaeLimiterError,
} from "../../domain/errors/errors.ts";

/** The server that failed, for messages. */
export interface RedisPlace {
  /** The address without user, password and parameters. */
  readonly place: string;
}

/** Answers after which the same request may pass later, by their first word. */
const PASSING: Readonly<Record<string, readonly [reason: UnavailableReason, what: string]>> = {
  READONLY: ["server", "is a replica"],
  MASTERDOWN: ["server", "has lost its primary"],
  LOADING: ["server", "is loading its data"],
  BUSY: ["timeout", "is running another script"],
  OOM: ["server", "is out of memory"],
  MISCONF: ["server", "cannot save its data, and takes no writes"],
  NOREPLICAS: ["server", "has too few replicas to write"],
  CLUSTERDOWN: ["server", "is a cluster that is down"],
  TRYAGAIN: ["server", "is moving the slot"],
  ASK: ["server", "is moving the slot"],
  UNBLOCKED: ["server", "has become a replica"],
  MAXCLIENTS: ["server", "takes no more connections"],
};

/** Texts of answers that begin with `ERR`. */
const TOO_MANY = /max number of clients/i;
const KILLED = /script killed by user/i;

/** Answers that repeating does not change, and what to do. */
const REFUSED: Readonly<Record<string, string>> = {
  NOAUTH: "asks for a user and a password: put them into the address",
  WRONGPASS: "did not accept the user or password",
  NOPERM:
    "does not let this user do that. Allow the commands EVAL, EVALSHA, GET, SET, DEL, GETRANGE, " +
    "INCR, PEXPIRE, ZADD, ZREM, ZRANGE, XADD, XRANGE, XDEL, XLEN, SADD, SMEMBERS, INFO and TIME, " +
    "and the keys that begin with the prefix",
  MOVED:
    "is a node of a cluster, which an address does not reach: open a cluster client of ioredis or " +
    "node-redis with Repository.over(redis(client))",
  CROSSSLOT:
    "is a cluster that this client does not know of: open a cluster client of ioredis or " +
    "node-redis with Repository.over(redis(client))",
  WRONGTYPE: "has keys of other programs under this prefix: choose another with ?prefix=",
};
const NO_SCRIPTS = /unknown command|EVAL is not allowed|command is not allowed/i;
const WRONG_PASSWORD = /invalid (?:username-)?password|AUTH failed|without any password/i;

/** Answers begin with a code; errors of clients are sentences. */
const ANSWER = /^-?[A-Z]{3,} /;
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|^Stream isn't writeable/;

/** Returns an error of a request as one of this library, with the original as its cause. */
export function redisError(error: unknown, { place }: RedisPlace, wasSent: boolean): Error {
  if (error instanceof ZaeLimiterError) return error;
  const text = textOf(error);
  const cause = withoutCommand(error, text);
  const word = wordOf(text);
  const passing = Object.hasOwn(PASSING, word) ? PASSING[word] : passingText(text);
  if (passing !== undefined) {
    const [reason, what] = passing;
    return unavailable(`${place} ${what}: ${text}`, reason, true, cause);
  }
  const refused = refusalOf(word, text);
  if (refused !== undefined) {
    return new InfrastructureError(`${place} ${refused} (${text})`, { cause });
  }
  if (ANSWER.test(text)) {
    const message = `${place} refused a request: ${text}`;
    return new InfrastructureError(message, { cause });
  }
  if (!wasSent || NEVER_SENT.test(codeOf(error) ?? text)) {
    return unavailable(`${place} cannot be reached: ${text}`, "network", true, cause);
  }
  return unavailable(`${place} did not answer: ${text}`, "network", false, cause);
}

function passingText(text: string): (typeof PASSING)[string] | undefined {
  if (TOO_MANY.test(text)) return PASSING["MAXCLIENTS"];
  return KILLED.test(text) ? ["timeout", "has ended the script"] : undefined;
}

function refusalOf(word: string, text: string): string | undefined {
  if (Object.hasOwn(REFUSED, word)) return REFUSED[word];
  if (WRONG_PASSWORD.test(text)) return REFUSED["WRONGPASS"];
  return NO_SCRIPTS.test(text) ? "does not run scripts: allow EVAL and EVALSHA" : undefined;
}

/** Returns the error of a request that was not answered in time. */
export function lateError({ place }: RedisPlace, timeoutMs: number, wasSent: boolean): Error {
  const what = wasSent ? "did not answer" : "was not connected";
  const message = `${place} ${what} within ${Math.round(timeoutMs)} ms`;
  return unavailable(message, "timeout", !wasSent, undefined);
}

/** Returns the error of a request after `close`. */
export function closedError({ place }: RedisPlace): Error {
  return new InfrastructureError(`The connection to ${place} was closed`);
}

/** Returns whether the server does not know a script, and has run nothing. */
export function isUnknownScript(error: unknown): boolean {
  return wordOf(textOf(error)) === "NOSCRIPT";
}

/** Returns whether the server is a replica: its clients must find the new primary. */
export function isReplica(error: unknown): boolean {
  const word = wordOf(textOf(error));
  return word === "READONLY" || word === "UNBLOCKED" || word === "MASTERDOWN";
}

/** Returns the word that an answer begins with. A script that fails may have it at other places. */
function wordOf(text: string): string {
  const [first = ""] = /^-?[A-Z]+/.exec(text) ?? [];
  const word = first.replace("-", "");
  if (word !== "ERR") return word;
  const inner =
    /(?:^|[\s'@:-])(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM|WRONGTYPE|BUSY|MASTERDOWN)\b/;
  return inner.exec(text)?.[1] ?? word;
}

/** Returns an error without its command: clients attach it, and the first one has a password. */
function withoutCommand(error: unknown, text: string): Error {
  const { name, stack } = (error ?? {}) as { name?: unknown; stack?: unknown };
  const copy = new Error(text);
  if (typeof name === "string") copy.name = name;
  if (typeof stack === "string") copy.stack = stack;
  const code = codeOf(error);
  return code === undefined ? copy : Object.assign(copy, { code });
}

function textOf(error: unknown): string {
  const { message, errors } = (error ?? {}) as { message?: unknown; errors?: unknown };
  if (typeof message === "string" && message !== "") return message;
  // Both addresses of a host failed.
  const [first] = Array.isArray(errors) ? (errors as unknown[]) : [];
  return first === undefined ? String(error) : textOf(first);
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

function unavailable(
  message: string,
  reason: UnavailableReason,
  nothingWritten: boolean,
  cause: unknown,
): RateLimiterUnavailable {
  return new RateLimiterUnavailable(message, { cause, reason, nothingWritten });
}
