/** Headers and answers of a gate as web-standard objects. */

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
