/**
 * Checks a request before anything else is done with it. A page of another site can send requests
 * to this server, also to one on the same machine, and a DNS name can be pointed at it. So the host
 * name and the origin are checked on every request, and a change also needs a header and a content
 * type that no other site can send without a preflight request.
 */

import { type Failure, failure } from "./failure.ts";

/** The header that every change carries. */
const CHANGE_HEADER = "x-zae-limiter-dashboard";

/** Returns why a request is refused; `undefined` when it may go on. */
export function refusedRequest(
  request: Request,
  options: { hosts: readonly string[] | undefined; readOnly: boolean },
): Failure | undefined {
  const { headers, method } = request;
  const host = (headers.get("host") ?? new URL(request.url).host).toLowerCase();
  if (options.hosts !== undefined && !options.hosts.includes(host)) {
    return failure(403, "host", `The dashboard does not answer to the name "${host}"`);
  }
  const origin = headers.get("origin");
  if (origin !== null && hostOf(origin) !== host) {
    return failure(403, "origin", "The request comes from another site");
  }
  const site = headers.get("sec-fetch-site");
  const isNavigation = headers.get("sec-fetch-mode") === "navigate" && method === "GET";
  if (site !== null && site !== "same-origin" && site !== "none" && !isNavigation) {
    return failure(403, "site", "The request comes from another site");
  }
  if (method === "GET" || method === "HEAD") return undefined;
  if (method !== "POST") return failure(405, "method", `The method ${method} is not supported`);
  return refusedChange(headers, options.readOnly);
}

function refusedChange(headers: Headers, readOnly: boolean): Failure | undefined {
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    return failure(415, "content_type", "Expected a body of type application/json");
  }
  if (headers.get(CHANGE_HEADER) !== "1") {
    return failure(403, "csrf", `Expected the header ${CHANGE_HEADER}: 1`);
  }
  // A preview is sent as a change is, and refused like one: read-only means that nothing is posted.
  return readOnly ? failure(403, "read_only", "The dashboard is read-only") : undefined;
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
