/** Decides which headers a gateway hands on, both ways. */

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { headersOf, ownStatuses } from "@zae-limiter/limiter/http/headers.ts";
import type { Provider } from "./answers.ts";
import type { UpstreamSpec } from "./upstreams.ts";

/** Headers of one connection, which a proxy must not forward. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Headers of requests that the gateway sets or answers itself, or that replace its path. */
const SET_FOR_UPSTREAM: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "accept-encoding",
  "expect",
  "x-original-url",
  "x-rewrite-url",
]);
/** Words in names of headers that carry credentials, or choose an account of the provider. */
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set(
  "auth authorization token key apikey secret credential cookie organization project account".split(
    " ",
  ),
);
/** Names that have such a word and are neither. */
const NO_CREDENTIALS: ReadonlySet<string> = new Set(["idempotency-key"]);
/** Words in names of headers that reveal the account of the provider. */
const ACCOUNT_WORDS: ReadonlySet<string> = new Set(
  "organization project account cookie authenticate".split(" "),
);
/** Names of headers about the limits of the account; Mistral has `x-ratelimitbysize-…`. */
const ACCOUNT_LIMITS = /rate-?limit|^anthropic-priority-/;

/** Carries the id of a request in the access log; an upstream may be a gateway, too. */
export const REQUEST_ID = "x-gateway-request-id";

/** Returns the key that a client sends, in the way of OpenAI or of Anthropic. */
export function clientKey(headers: IncomingHttpHeaders): string | undefined {
  const { authorization = "", "x-api-key": given } = headers;
  const bearer = /^bearer /i.test(authorization)
    ? authorization.slice("bearer ".length).trim()
    : "";
  if (bearer !== "") return bearer;
  return typeof given === "string" && given !== "" ? given : undefined;
}

/** Returns the headers for the upstream, with its own key; without `bodyBytes` there is no body. */
export function upstreamHeaders(
  headers: IncomingHttpHeaders,
  { api, key, url, isKeyless }: UpstreamSpec,
  clientsKey: string | undefined,
  bodyBytes: number | undefined,
): OutgoingHttpHeaders {
  const listed = listedIn(headers.connection);
  const sent: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (HOP_BY_HOP.has(name) || SET_FOR_UPSTREAM.has(name) || listed.has(name)) continue;
    if (credentialNames.of(name)) continue;
    sent[name] = value;
  }
  sent["host"] = url.host;
  // A compressed answer could not be read on its way through.
  sent["accept-encoding"] = "identity";
  if (bodyBytes !== undefined) sent["content-length"] = String(bodyBytes);
  const secret = isKeyless ? undefined : (key ?? clientsKey);
  return secret === undefined ? sent : { ...sent, ...credentials(api, secret) };
}

/** Returns the header by which an upstream gets its key. */
export function credentials(api: UpstreamSpec["api"], key: string): Record<string, string> {
  if (api === "anthropic") return { "x-api-key": key };
  return api === "azure" ? { "api-key": key } : { authorization: `Bearer ${key}` };
}

/** Returns the headers for the client, without what is about the provider's account. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  { key }: Pick<UpstreamSpec, "key">,
): OutgoingHttpHeaders {
  const listed = listedIn(headers.connection);
  const kept: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (HOP_BY_HOP.has(name) || listed.has(name) || name === REQUEST_ID) continue;
    if (accountNames.of(name)) continue;
    if (key !== undefined && String(value).includes(key)) continue;
    kept[name] = value;
  }
  return kept;
}

/** Returns headers with what is left of the client's limits, and nothing about its ancestors. */
export function limitHeaders(
  statuses: readonly LimitStatus[],
  nowMs: number,
  provider: Provider,
): OutgoingHttpHeaders {
  const own = ownStatuses(statuses);
  const style = provider === "anthropic" ? (["draft"] as const) : (["draft", "openai"] as const);
  const headers = headersOf(style, { statuses: own, nowMs });
  return {
    ...Object.fromEntries(headers.map(({ name, value }) => [name, value])),
    ...(provider === "anthropic" ? anthropicHeaders(own, nowMs) : {}),
  };
}

/** The limits that Anthropic's headers have names for; of several the first one counts. */
const ANTHROPIC_UNITS = [
  ["requests", ["rpm", "rpd"]],
  ["tokens", ["tpm", "tpd"]],
  ["input-tokens", ["itpm"]],
  ["output-tokens", ["otpm"]],
] as const;

function anthropicHeaders(statuses: readonly LimitStatus[], nowMs: number): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [unit, names] of ANTHROPIC_UNITS) {
    const status = names
      .map((name) => statuses.find(({ limitName }) => limitName === name))
      .find((each) => each !== undefined);
    if (status === undefined) continue;
    const { capacity, refillAmount, refillPeriodSeconds } = status.limit;
    const missing = Math.max(0, capacity - status.available);
    const fullInMs = Math.ceil((missing * refillPeriodSeconds * 1000) / refillAmount);
    const name = `anthropic-ratelimit-${unit}`;
    headers[`${name}-limit`] = String(capacity);
    headers[`${name}-remaining`] = String(Math.max(0, status.available));
    headers[`${name}-reset`] = timeText(nowMs + fullInMs);
  }
  return headers;
}

/** The last time that a date can have, in milliseconds. */
const TIME_MAX_MS = 8.64e15;

/** Returns a time as RFC 3339 writes it, in whole seconds that are not too early. */
function timeText(ms: number): string {
  const atMs = Math.min(Math.ceil(ms / 1000) * 1000, TIME_MAX_MS);
  return new Date(atMs).toISOString().replace(".000Z", "Z");
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the names that `connection` lists: they belong to that connection as well. */
function listedIn(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === "keep-alive") return NONE;
  return new Set(
    (connection ?? "")
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
}

const credentialNames = new TextMemo(
  (name) => hasWord(name, CREDENTIAL_WORDS) && !NO_CREDENTIALS.has(name),
);

const accountNames = new TextMemo(
  (name) => hasWord(name, ACCOUNT_WORDS) || ACCOUNT_LIMITS.test(name),
);

function hasWord(name: string, words: ReadonlySet<string>): boolean {
  return name.split("-").some((word) => words.has(word));
}
