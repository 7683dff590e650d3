/**
 * Which headers a gateway hands on. Both ways they stay the flat lists of names and values that
 * node:http reads and writes: objects of headers cost several times as much.
 */

import type { IncomingHttpHeaders } from "node:http";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { type HeaderStyle, headersOf, ownStatuses } from "@zae-limiter/limiter/http/headers.ts";
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
/** Also removed: credentials of the client, and headers that the gateway sets or answers itself. */
const NOT_FOR_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "accept-encoding",
  "authorization",
  "x-api-key",
  "cookie",
  "expect",
]);
const NOT_FOR_CLIENT: ReadonlySet<string> = new Set([...HOP_BY_HOP, "set-cookie"]);
/** Part of the names of headers that tell the limits of the provider's account to the client. */
const PROVIDER_LIMITS = "ratelimit";

/** What to do with a header, by its name. */
type Fate = "keep" | "drop" | "connection" | "content-type" | "content-length";

const forUpstream = new TextMemo<Fate>((name) => {
  const lower = name.toLowerCase();
  if (lower === "connection") return lower;
  return NOT_FOR_UPSTREAM.has(lower) ? "drop" : "keep";
});

const forClient = new TextMemo<Fate>((name) => {
  const lower = name.toLowerCase();
  if (lower === "connection" || lower === "content-type" || lower === "content-length") {
    return lower;
  }
  return NOT_FOR_CLIENT.has(lower) || lower.includes(PROVIDER_LIMITS) ? "drop" : "keep";
});

/** Returns the key that a client sends, in the way of OpenAI or of Anthropic. */
export function clientKey(headers: IncomingHttpHeaders): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? "")?.[1];
  const given = headers["x-api-key"];
  return bearer ?? (typeof given === "string" && given !== "" ? given : undefined);
}

/** Returns the headers for the upstream, with its own key; without `bodyBytes` there is no body. */
export function upstreamHeaders(
  raw: readonly string[],
  { api, key, isKeyless, url }: UpstreamSpec,
  clientsKey: string,
  bodyBytes: number | undefined,
): string[] {
  const sent = key ?? clientsKey;
  // Compressed answers could not be read on their way through.
  const headers = ["Host", url.host, "Accept-Encoding", "identity"];
  if (!isKeyless) {
    if (api === "anthropic") headers.push("x-api-key", sent);
    else headers.push("Authorization", `Bearer ${sent}`);
  }
  if (bodyBytes !== undefined) headers.push("Content-Length", String(bodyBytes));
  const own = headers.length;
  let connection: string | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const fate = forUpstream.of(name);
    if (fate === "keep") headers.push(name, raw[at + 1] as string);
    else if (fate === "connection") connection = joined(connection, raw[at + 1] as string);
  }
  return withoutListed(headers, own, connection);
}

/** The headers of an answer, for the client. */
export interface ClientHeaders {
  readonly headers: string[];
  readonly contentType: string;
}

/** Returns the headers for the client; `hasNewLength`: the body will not be the upstream's. */
export function clientHeaders(raw: readonly string[], hasNewLength: boolean): ClientHeaders {
  const headers: string[] = [];
  let connection: string | undefined;
  let contentType = "";
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] as string;
    switch (forClient.of(name)) {
      case "drop":
        continue;
      case "connection":
        connection = joined(connection, value);
        continue;
      case "content-type":
        if (contentType === "") contentType = value;
        break;
      case "content-length":
        if (hasNewLength) continue;
        break;
      default:
    }
    headers.push(name, value);
  }
  return { headers: withoutListed(headers, 0, connection), contentType };
}

const STYLES: readonly HeaderStyle[] = ["draft", "openai"];

/** Adds the client's remaining limits, and nothing about its ancestors. */
export function addLimits(
  all: readonly LimitStatus[],
  nowMs: number,
  add: (name: string, value: string) => void,
): void {
  const headers = headersOf(STYLES, { statuses: ownStatuses(all), nowMs });
  for (const { name, value } of headers) add(name, value);
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before},${value}`;
}

/** Leaves out the headers that `connection` names, which are of that connection too. */
function withoutListed(headers: string[], from: number, connection: string | undefined): string[] {
  if (connection === undefined || connection === "keep-alive" || connection === "close") {
    return headers;
  }
  const listed = new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
  const kept = headers.slice(0, from);
  for (let at = from; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (!listed.has(name.toLowerCase())) kept.push(name, headers[at + 1] as string);
  }
  return kept;
}
