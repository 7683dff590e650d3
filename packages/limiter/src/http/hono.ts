/**
 * Rate limiting for Hono 4, on Node.js, Bun and Deno.
 *
 * @module
 */

// biome-ignore lint/suspicious/noTsIgnore: an error only where the module is missing.
/** @ts-ignore: users of other frameworks do not have the module. */
import type { Context } from "hono";
import type { Lease } from "../acquire/lease/lease.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { FUNCTION } from "../domain/options.ts";
import { Gate } from "./gate.ts";
import type { Header } from "./headers.ts";
import { type Closable, closedSignal, isCutOff, isSent, onceClosed } from "./once-closed.ts";
import { checkHttpOptions, type HttpOptions as Options } from "./options.ts";
import { addAlias, leaseOfRequest, type Passage } from "./passage.ts";
import { watchEnd } from "./watched-body.ts";
import {
  goneResponse,
  isCopyable,
  setWebHeaders,
  webAddress,
  webResponse,
} from "./web-responses.ts";

export { hashKey, keyOfEntityId } from "./entity-ids.ts";
export type { HttpEvent } from "./events.ts";
export type { HeaderStyle } from "./headers.ts";
export type { Outcome, RefusedAnswer } from "./options.ts";

/** The parts of Hono's `Context` that this middleware needs. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
  /** The bindings of the runtime, where Node.js, Bun and Deno have the client's address. */
  readonly env: unknown;
  /** The response, once there is one. */
  res: Response;
  /** The error of a handler: Hono answers it before the middleware sees it. */
  readonly error: Error | undefined;
  /** Contexts differ in the names of their variables. */
  set(name: never, value: never): void;
}

/**
 * The variables that the middleware sets: `c.get("lease")` and `c.var.lease`.
 *
 * @example
 * ```ts no-run: needs Hono
 * import { Hono } from 'hono';
 * import { type LeaseVariables, rateLimit } from 'zae-limiter/hono';
 * const app = new Hono<{ Variables: LeaseVariables }>();
 * app.use(rateLimit({ limits: ['rpm:60'] }));
 * app.get('/', (c) => c.json(c.var.lease?.consumed));
 * ```
 */
export interface LeaseVariables {
  /** The lease of the request; `undefined` when the request is not limited. */
  lease: Lease | undefined;
}

/** Options of `rateLimit`; see the table in docs/guide/http.md. */
export interface HttpOptions<C extends HonoContext = Context> extends Options<C> {
  /** Returns the connection: `getConnInfo` of the runtime's adapter. */
  readonly getConnInfo?: (context: C) => { readonly remote: { readonly address?: string } };
}

/** The socket of a request, as the adapter for Node.js passes it in `c.env`. */
interface NodeBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  readonly outgoing?: Closable & {
    readonly closed: boolean;
    readonly writableFinished: boolean;
  };
  /** Bun's server, in newer versions of its adapter. */
  readonly server?: unknown;
}

/**
 * Makes a middleware that limits requests. The client's address comes from the adapter of Node.js,
 * Bun or Deno; on another runtime pass its `getConnInfo`, or `entityId`.
 *
 * @example
 * ```ts
 * import { rateLimit } from 'zae-limiter/hono';
 * const limit = rateLimit({ limits: ['rpm:60'] });
 * // app.use(limit)
 * console.log(limit.length); // 2
 * ```
 */
export function rateLimit<C extends HonoContext = Context>(
  options: HttpOptions<C>,
): (context: C, next: () => Promise<void>) => Promise<Response | undefined> {
  const checked = checkHttpOptions(options, { getConnInfo: { check: FUNCTION } });
  const { getConnInfo } = options;
  if (getConnInfo === undefined && options.entityId === undefined && !isKnownRuntime()) {
    throw new ValidationError(
      "entityId",
      undefined,
      "this runtime does not provide the client's address; pass `getConnInfo` of its Hono adapter, or `entityId`",
    );
  }
  const gate = new Gate<C>(checked, {
    address: (context) => getConnInfo?.(context).remote.address ?? addressOf(context),
    signal: closing,
  });
  return async function rateLimitRequest(context, next) {
    const entry = await gate.enter(context, undefined);
    if (entry.kind === "gone") return goneResponse();
    if (entry.kind === "answered") return webResponse(entry.answer);
    const { headers, passage } = entry;
    if (passage === undefined) await next();
    else await handled(context, passage, next);
    // After the handler: a header set before is lost when the handler returns a `Response`.
    setHeaders(context, headers);
    return undefined;
  };
}

async function handled(
  context: HonoContext,
  passage: Passage,
  next: () => Promise<void>,
): Promise<void> {
  // Other middlewares may replace the raw request; the context stays.
  addAlias(context, context.req.raw);
  context.set("lease" as never, passage.lease as never);
  try {
    await next();
    await endWithResponse(context, passage);
  } catch (error) {
    // Hono answers errors of handlers, but not what else they throw, nor a body that was read.
    await passage.end({ status: 500, aborted: false }, true);
    throw error;
  }
}

/** Sets headers; a response that came from `fetch` cannot be changed, so it is copied. */
function setHeaders(context: HonoContext, headers: readonly Header[]): void {
  if (headers.length === 0 || !isCopyable(context.res)) return;
  try {
    setWebHeaders(context.res.headers, headers);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    replace(context, new Response(context.res.body, context.res));
    setWebHeaders(context.res.headers, headers);
  }
}

/**
 * Returns the lease of a request, in a handler behind `rateLimit`. With several middlewares it is
 * the one of the last; without a lease (skipped, or only observed) it is `undefined`.
 *
 * @example
 * ```ts
 * import { type HonoContext, leaseOf } from 'zae-limiter/hono';
 * function handler(c: HonoContext) {
 *   leaseOf(c)?.settle({ tpm: 730 });
 *   return new Response('done');
 * }
 * ```
 */
export function leaseOf(context: HonoContext | Request): Lease | undefined {
  return leaseOfRequest(context);
}

/** Aborts when the client goes away. */
function closing({ env, req }: HonoContext): AbortSignal {
  const { outgoing } = (env ?? {}) as NodeBindings;
  return outgoing === undefined ? req.raw.signal : closedSignal(outgoing, isGone(outgoing));
}

function isGone(outgoing: NonNullable<NodeBindings["outgoing"]>): boolean {
  return outgoing.closed || isCutOff(outgoing);
}

/** Ends the passage: on Node.js with the response of the server, elsewhere with the body. */
async function endWithResponse(context: HonoContext, passage: Passage): Promise<void> {
  const { status } = context.res;
  const threw = context.error !== undefined;
  const { outgoing } = (context.env ?? {}) as NodeBindings;
  if (outgoing !== undefined) {
    const end = () => void passage.end({ status, aborted: !isSent(outgoing) }, threw);
    if (isGone(outgoing)) end();
    else onceClosed(outgoing, end);
    return;
  }
  const watched = await watchEnd(context.res, context.req.raw.signal, (aborted) =>
    passage.end({ status, aborted }, threw && !aborted),
  );
  if (watched !== context.res) replace(context, watched);
}

/**
 * Replaces the response. Hono merges the headers of the old one into the new one, and would double
 * the lists among them; its setter takes `undefined` to let go of the old response first.
 */
function replace(context: HonoContext, response: Response): void {
  (context as { res: Response | undefined }).res = undefined;
  context.res = response;
}

function addressOf({ env, req }: HonoContext): string | undefined {
  const bindings = (env ?? {}) as NodeBindings;
  return (
    bindings.incoming?.socket?.remoteAddress ?? webAddress(req.raw, bindings.server ?? bindings)
  );
}

function isKnownRuntime(): boolean {
  return "Bun" in globalThis || "Deno" in globalThis || typeof process?.versions?.node === "string";
}
