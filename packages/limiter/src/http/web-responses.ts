/** Responses of the web standards, and the address of a client next to such a request. */

import type { Answer } from "./answer.ts";
import type { Header } from "./headers.ts";

/** Sets headers; lists are appended to what an inner middleware has set. */
export function setWebHeaders(target: Headers, headers: readonly Header[]): void {
  for (const { name, value, isList } of headers) {
    if (isList) target.append(name, value);
    else target.set(name, value);
  }
}

/** Statuses of responses that have no body; `Response` throws for one with a body. */
const EMPTY_STATUSES: readonly number[] = [204, 205, 304];

/** Returns the answer as a response. */
export function webResponse({ status, headers, body }: Answer): Response {
  const sent = EMPTY_STATUSES.includes(status) ? null : (body as string);
  const response = new Response(sent, { status });
  response.headers.delete("content-type");
  setWebHeaders(response.headers, headers);
  return response;
}

/** Returns the response to a client that has gone; nginx writes this status for one. */
export function goneResponse(): Response {
  return new Response(null, { status: 499 });
}

/** Returns false for a response that cannot be copied: an upgrade, `Response.error()`. */
export function isCopyable({ status }: Response): boolean {
  return status >= 200;
}

/** An object that Deno and Bun pass with a request: the connection, or the server. */
interface ConnectionInfo {
  readonly remoteAddr?: { readonly hostname?: string };
  requestIP?(request: Request): { readonly address: string } | null;
}

/** Returns the address in Deno's or Bun's form; `undefined` where there is none. */
export function webAddress(request: Request, info: unknown): string | undefined {
  if (typeof info !== "object" || info === null) return undefined;
  const { remoteAddr, requestIP } = info as ConnectionInfo;
  if (typeof remoteAddr?.hostname === "string") return remoteAddr.hostname;
  if (typeof requestIP === "function") return requestIP.call(info, request)?.address;
  return undefined;
}
