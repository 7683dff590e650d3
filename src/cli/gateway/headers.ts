/** Which headers a gateway hands on. */

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { UpstreamSpec } from "./upstreams.ts";

/** Headers of one connection, which a proxy must not forward. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** Besides those, credentials of the client and what the gateway sets itself. */
const NOT_FOR_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "accept-encoding",
  "authorization",
  "x-api-key",
  "cookie",
]);
const NOT_FOR_CLIENT: ReadonlySet<string> = new Set([...HOP_BY_HOP, "set-cookie"]);
/** Part of the names of headers that tell the limits of the provider's account to the client. */
const PROVIDER_LIMITS = "ratelimit";

/** Returns the key that a client sends, in the way of OpenAI or of Anthropic. */
export function clientKey(headers: IncomingHttpHeaders): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? "")?.[1];
  const given = headers["x-api-key"];
  return bearer ?? (typeof given === "string" && given !== "" ? given : undefined);
}

/** Returns the headers for the upstream, with its own key. */
export function upstreamHeaders(
  headers: IncomingHttpHeaders,
  { api, key, url }: UpstreamSpec,
  clientsKey: string,
  body: Buffer,
): OutgoingHttpHeaders {
  const sent = key ?? clientsKey;
  const listed = listedIn(headers);
  const forwarded: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (!NOT_FOR_UPSTREAM.has(name) && !listed?.includes(name)) forwarded[name] = headers[name];
  }
  forwarded["host"] = url.host;
  // Compressed answers could not be read on their way through.
  forwarded["accept-encoding"] = "identity";
  if (api === "anthropic") forwarded["x-api-key"] = sent;
  else forwarded["authorization"] = `Bearer ${sent}`;
  if (body.length > 0) forwarded["content-length"] = String(body.length);
  return forwarded;
}

/** Returns the headers for the client; `hasNewLength`: the body will not be the upstream's. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  hasNewLength: boolean,
): OutgoingHttpHeaders {
  const listed = listedIn(headers);
  const kept: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (NOT_FOR_CLIENT.has(name) || listed?.includes(name) || name.includes(PROVIDER_LIMITS))
      continue;
    if (!(hasNewLength && name === "content-length")) kept[name] = headers[name];
  }
  return kept;
}

/** The headers that `connection` names, which are of that connection too. */
function listedIn({ connection }: IncomingHttpHeaders): readonly string[] | undefined {
  if (connection === undefined || connection === "keep-alive" || connection === "close") {
    return undefined;
  }
  return connection.split(",").map((name) => name.trim().toLowerCase());
}
