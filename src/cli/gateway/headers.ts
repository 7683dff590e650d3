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
/** Credentials of the client, and what the gateway sets itself. */
const REPLACED = [
  "host",
  "content-length",
  "accept-encoding",
  "authorization",
  "x-api-key",
  "cookie",
];

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
  const forwarded = without(headers, [...HOP_BY_HOP, ...REPLACED]);
  const sent = key ?? clientsKey;
  return {
    ...forwarded,
    host: url.host,
    // Compressed answers could not be read on their way through.
    "accept-encoding": "identity",
    ...(api === "anthropic" ? { "x-api-key": sent } : { authorization: `Bearer ${sent}` }),
    ...(body.length === 0 ? {} : { "content-length": String(body.length) }),
  };
}

/** Returns the headers for the client: limits of the provider's account are not the client's. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  hasNewLength: boolean,
): OutgoingHttpHeaders {
  const dropped = [...HOP_BY_HOP, "set-cookie", ...(hasNewLength ? ["content-length"] : [])];
  const kept = without(headers, dropped);
  return Object.fromEntries(Object.entries(kept).filter(([name]) => !/ratelimit-/.test(name)));
}

function without(headers: IncomingHttpHeaders, names: readonly string[]): OutgoingHttpHeaders {
  const listed = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const kept: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!names.includes(name) && !listed.includes(name)) kept[name] = value;
  }
  return kept;
}
