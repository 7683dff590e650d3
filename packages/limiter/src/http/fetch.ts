/**
 * Rate limiting for web-standard handlers, `(request) => Response`: route handlers of Next.js, Bun,
 * Deno, function URLs of Lambda.
 *
 * @module
 */

import type { Lease } from "../acquire/lease/lease.ts";
import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type Entry, Gate } from "./gate.ts";
import { checkHttpOptions, type HttpOptions as Options } from "./options.ts";
import { leaseOfRequest } from "./passage.ts";
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

/** Options of `rateLimit`; see the table in docs/guide/http.md. */
export type HttpOptions = Options<Request>;

/** A web-standard handler. Runtimes pass more than the request, such as the connection. */
export type FetchHandler<More extends readonly unknown[] = readonly unknown[]> = (
  request: Request,
  ...more: More
) => Response | Promise<Response>;

/**
 * Wraps a handler so that its requests are limited.
 *
 * The client's address is taken from the second argument, in the form of Deno
 * (`{ remoteAddr: { hostname } }`) or Bun (`{ requestIP(request) }`). Elsewhere pass `entityId`.
 *
 * @example
 * ```ts
 * import { hashKey, rateLimit } from 'zae-limiter/fetch';
 * const customers = new Map([[hashKey('key-1'), 'customer-1']]);
 * const handler = rateLimit(() => new Response('hello'), {
 *   limits: ['rpm:1'],
 *   entityId: (request) => customers.get(hashKey(request.headers.get('x-api-key'))),
 * });
 * const call = () => new Request('http://localhost/', { headers: { 'x-api-key': 'key-1' } });
 * console.log((await handler(call())).status); // 200
 * console.log((await handler(call())).status); // 429
 * ```
 */
export function rateLimit<More extends readonly unknown[]>(
  handler: FetchHandler<More>,
  options: HttpOptions,
): (request: Request, ...more: More) => Promise<Response> {
  if (typeof handler !== "function") {
    throw new ValidationError("handler", handler, `expected a function, got ${show(handler)}`);
  }
  const gate = new Gate<Request, unknown>(checkHttpOptions(options), {
    address: webAddress,
    signal: ({ signal }) => signal,
  });
  return async function rateLimitRequest(request, ...more) {
    const entry = await gate.enter(request, more[0]);
    if (entry.kind === "gone") return goneResponse();
    if (entry.kind === "answered") return webResponse(entry.answer);
    return limited(request, entry, () => handler(request, ...more));
  };
}

/**
 * Returns the lease of a request, inside a handler wrapped by `rateLimit`; `undefined` without a
 * lease (skipped, or only observed).
 *
 * @example
 * ```ts
 * import { leaseOf, rateLimit } from 'zae-limiter/fetch';
 * export const POST = rateLimit(
 *   async (request) => {
 *     leaseOf(request)?.settle({ tpm: 730 });
 *     return Response.json({ ok: true });
 *   },
 *   { limits: ['rpm:60', 'tpm:10000'], entityId: () => 'key-1' },
 * );
 * ```
 */
export function leaseOf(request: Request): Lease | undefined {
  return leaseOfRequest(request);
}

/** Checks a response of any class: runtimes and frameworks have their own. */
function checkResponse(response: unknown): Response {
  const { body, bodyUsed, headers, status } = (response ?? {}) as Partial<Response>;
  if (
    bodyUsed === false &&
    body?.locked !== true &&
    headers !== undefined &&
    typeof status === "number"
  ) {
    return response as Response;
  }
  const expected = "expected the handler to return a Response whose body was not read";
  throw new ValidationError("response", response, `${expected}, got ${show(response)}`);
}

async function limited(
  request: Request,
  { headers, passage }: Extract<Entry, { kind: "passed" }>,
  handle: () => Response | Promise<Response>,
): Promise<Response> {
  let response: Response;
  try {
    response = checkResponse(await handle());
  } catch (error) {
    await passage?.end({ status: 500, aborted: false }, true);
    throw error;
  }
  const { status } = response;
  if (!isCopyable(response)) {
    await passage?.end({ status, aborted: false }, false);
    return response;
  }
  const watched =
    passage &&
    (await watchEnd(response, request.signal, (aborted) =>
      passage.end({ status, aborted }, false),
    ));
  // A response of `fetch` or of `Response.redirect` has headers that cannot be changed.
  const isCopy = watched !== undefined && watched !== response;
  const mutable = isCopy ? watched : new Response(response.body, response);
  setWebHeaders(mutable.headers, headers);
  return mutable;
}
