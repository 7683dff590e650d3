/// <reference types="node" preserve="true" />

/**
 * Rate limiting for Express 4 and 5, Connect, and handlers of `node:http`.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Lease } from "../acquire/lease/lease.ts";
import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type Answer, failedAnswer } from "./answer.ts";
import type { Reading } from "./clients.ts";
import { type Entry, Gate } from "./gate.ts";
import type { Header } from "./headers.ts";
import { closedSignal, isCutOff, isSent, onceClosed, onceEnded } from "./once-closed.ts";
import { checkHttpOptions, type HttpOptions as Options } from "./options.ts";
import { leaseOfRequest, type Passage, turnBackAll } from "./passage.ts";

export { hashKey, keyOfEntityId } from "./entity-ids.ts";
export type { HttpEvent } from "./events.ts";
export type { HeaderStyle } from "./headers.ts";
export type { Outcome, RefusedAnswer } from "./options.ts";

declare global {
  namespace Express {
    interface Request {
      /** The lease of the request; see `leaseOf`. */
      lease?: Lease | undefined;
    }
  }
}

/** A request of Express or Connect, or of `node:http` itself. */
export type ExpressRequest = IncomingMessage & {
  /** The client's address by the rules of Express's `trust proxy`. */
  readonly ip?: string | undefined;
  /** Set by Express and Connect, which have error handling of their own. */
  readonly originalUrl?: string | undefined;
  /** The lease that `leaseOf(request)` returns. */
  lease?: Lease | undefined;
};

/** Options of `rateLimit`; see the table in docs/guide/http.md. */
export type HttpOptions<R extends ExpressRequest = ExpressRequest> = Options<R>;

/** `app.use` takes it; on `node:http`, call it with a function that goes on. */
export type RateLimitMiddleware<R extends ExpressRequest> = (
  request: R,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Express answers errors of handlers itself, with at least this status. */
const ERROR_STATUS = 500;

/**
 * Makes a middleware that limits requests.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { rateLimit } from 'zae-limiter/express';
 * const limit = rateLimit({ limits: ['rpm:60'] });
 * const server = createServer((request, response) => {
 *   limit(request, response, () => response.end('hello')); // an error is answered with 500
 * });
 * console.log(server.listening); // false
 * ```
 */
export function rateLimit<R extends ExpressRequest = ExpressRequest>(
  options: HttpOptions<R>,
): RateLimitMiddleware<R> {
  const gate = new Gate<R, ServerResponse>(checkHttpOptions(options), READING);
  return function rateLimitRequest(request, response, next) {
    try {
      const entry = gate.enter(request, response);
      if (entry instanceof Promise) void passLater(entry, request, response, next);
      else pass(entry, request, response, next);
    } catch (error) {
      fail(error, request, response, next);
    }
  };
}

/** How the gate reads a request. */
const READING: Reading<ExpressRequest, ServerResponse> = {
  address: (request) => request.ip ?? request.socket.remoteAddress,
  signal: (_, response) => closedSignal(response, isGone(response)),
};

/**
 * Returns the lease of a request, in a handler behind `rateLimit`; `request.lease` is the same.
 * With several middlewares it is the one of the last; without a lease (skipped, or only observed)
 * it is `undefined`.
 *
 * @example
 * ```ts
 * import type { IncomingMessage, ServerResponse } from 'node:http';
 * import { leaseOf } from 'zae-limiter/express';
 * function handler(request: IncomingMessage, response: ServerResponse) {
 *   leaseOf(request)?.settle({ tpm: 730 });
 *   response.end('done');
 * }
 * ```
 */
export function leaseOf(request: IncomingMessage): Lease | undefined {
  return leaseOfRequest(request);
}

async function passLater(
  entered: Promise<Entry>,
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
): Promise<void> {
  try {
    pass(await entered, request, response, next);
  } catch (error) {
    fail(error, request, response, next);
  }
}

function pass(
  entry: Entry,
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
): void {
  if (entry.kind === "answered") send(response, entry.answer);
  if (entry.kind !== "passed") return;
  const { headers, passage } = entry;
  if (isGone(response)) {
    void turnBackAll(request);
    return;
  }
  setHeaders(response, headers);
  if (passage !== undefined) {
    request.lease = passage.lease;
    onceClosed(response, () => end(response, passage));
  }
  next();
}

/**
 * Passes an error on, or answers a request of `node:http` that no framework answers: a continuation
 * there that takes no error would handle a failed request as a granted one.
 */
function fail(
  error: unknown,
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
): void {
  if (request.originalUrl !== undefined || next.length > 0) {
    next(asError(error));
    return;
  }
  process.emitWarning("A request failed in `rateLimit`, and was answered with 500", {
    code: "ZAEL_HTTP_REQUEST_FAILED",
    detail: String(error),
  });
  if (response.headersSent) response.destroy();
  else send(response, failedAnswer());
}

/**
 * Express handles a request as a granted one after `next(undefined)`, and leaves the route after
 * `next("route")`.
 */
function asError(thrown: unknown): unknown {
  if (typeof thrown === "object" && thrown !== null) return thrown;
  const reason = `expected an Error, but a function of \`rateLimit\` threw ${show(thrown)}`;
  return new ValidationError("error", thrown, reason, { cause: thrown });
}

/** Whether the client has gone. */
function isGone(response: ServerResponse): boolean {
  return response.destroyed || isCutOff(response);
}

/**
 * Ends the passage on `close`, which comes once for each response: after it was sent, and when the
 * client has hung up. Express does not notify a middleware of a handler that threw; it answers such
 * a request with 500 or more.
 */
function end(response: ServerResponse, passage: Passage): void {
  const status = response.statusCode;
  if (response.writableEnded) {
    const aborted = !isSent(response);
    void passage.end({ status, aborted }, !aborted && status >= ERROR_STATUS);
    return;
  }
  void passage.hangUp(status);
  onceEnded(response, () => void passage.end({ status, aborted: true }, false));
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.headersSent || isGone(response)) return;
  response.statusCode = status;
  setHeaders(response, headers);
  response.setHeader("content-length", Buffer.byteLength(body));
  response.end(body);
}

function setHeaders(response: ServerResponse, headers: readonly Header[]): void {
  if (response.headersSent) return;
  for (const { name, value, isList } of headers) {
    const before = isList ? response.getHeader(name) : undefined;
    response.setHeader(name, before === undefined ? value : `${String(before)}, ${value}`);
  }
}
