/** Decides which headers a gateway hands on, both ways. */

import type { IncomingHttpHeaders } from "node:http";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { headersOf, ownStatuses, scarcestNamed } from "@zae-limiter/limiter/http/headers.ts";
import type { Provider } from "./answers.ts";
import type { UpstreamSpec } from "./upstreams.ts";

/** Names the cost centre of a call. */
const TAG_HEADER = "x-zael-tag";
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
  TAG_HEADER,
]);
/** The cost centre of names that the gateway does not know. */
const OTHER_TAG = "other";
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

/** Headers in the form that Node.js writes fastest: a name, its value, the next name. */
export type HeaderList = string[];

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

/**
 * Returns the cost centre that a request names, of those that the gateway knows: all other names
 * are one. Without known ones there is none.
 */
export function tagOf(
  headers: IncomingHttpHeaders,
  known: ReadonlySet<string>,
): string | undefined {
  const named = headers[TAG_HEADER];
  if (named === undefined || known.size === 0) return undefined;
  return typeof named === "string" && known.has(named) ? named : OTHER_TAG;
}

/** Returns the headers for the upstream, with its own key; without `bodyBytes` there is no body. */
export function upstreamHeaders(
  headers: IncomingHttpHeaders,
  { api, key, url, isKeyless }: UpstreamSpec,
  clientsKey: string | undefined,
  bodyBytes: number | undefined,
): HeaderList {
  const listed = listedIn(headers.connection);
  // A compressed answer could not be read on its way through.
  const sent: HeaderList = ["host", url.host, "accept-encoding", "identity"];
  for (const name of Object.keys(headers)) {
    if (listed.has(name) || !forUpstream.of(name)) continue;
    sent.push(name, headers[name] as string);
  }
  if (bodyBytes !== undefined) sent.push("content-length", String(bodyBytes));
  const secret = isKeyless ? undefined : (key ?? clientsKey);
  if (secret !== undefined) sent.push(...Object.entries(credentials(api, secret)).flat());
  return sent;
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
): HeaderList {
  const listed = listedIn(headers.connection);
  const kept: HeaderList = [];
  for (const name of Object.keys(headers)) {
    if (listed.has(name) || !forClient.of(name)) continue;
    // Only set-cookie is a list, which is not handed on.
    const value = headers[name] as string;
    if (key !== undefined && value.includes(key)) continue;
    kept.push(name, value);
  }
  return kept;
}

/** Returns headers with what is left of the client's limits, and nothing about its ancestors. */
export function limitHeaders(
  statuses: readonly LimitStatus[],
  nowMs: number,
  provider: Provider,
  entityId: string = statuses[0]?.entityId ?? "",
): HeaderList {
  const own = ownStatuses(statuses, entityId);
  const headers: HeaderList = provider === "anthropic" ? anthropicHeaders(own, nowMs) : [];
  for (const { name, value } of headersOf(STYLES[provider], { statuses: own, entityId, nowMs })) {
    headers.push(name, value);
  }
  return headers;
}

const STYLES = { anthropic: ["draft"], openai: ["draft", "openai"] } as const;

/** The limits that Anthropic's headers have names for; of several the first one counts. */
const ANTHROPIC_UNITS = [
  ["requests", ["rpm", "rpd"]],
  ["tokens", ["tpm", "tpd"]],
  ["input-tokens", ["itpm"]],
  ["output-tokens", ["otpm"]],
] as const;

function anthropicHeaders(statuses: readonly LimitStatus[], nowMs: number): HeaderList {
  const headers: HeaderList = [];
  for (const [unit, names] of ANTHROPIC_UNITS) {
    const status = names
      .map((name) => scarcestNamed(statuses, name))
      .find((each) => each !== undefined);
    if (status === undefined) continue;
    const { capacity } = status.limit;
    const name = `anthropic-ratelimit-${unit}`;
    headers.push(`${name}-limit`, String(capacity));
    headers.push(`${name}-remaining`, String(Math.max(0, status.available)));
    headers.push(`${name}-reset`, timeText(nowMs + fullInMs(status)));
  }
  return headers;
}

/** Returns the time until a limit is full; of slots it is an estimate. */
function fullInMs({ available, limit, fullAfterSeconds }: LimitStatus): number {
  if (limit.kind !== "rate") return Math.ceil(fullAfterSeconds * 1000);
  const missing = Math.max(0, limit.capacity - available);
  return Math.ceil((missing * limit.refillPeriodSeconds * 1000) / limit.refillAmount);
}

/** The last time that a date can have, in milliseconds. */
const TIME_MAX_MS = 8.64e15;

/** Returns a time as RFC 3339 writes it, in whole seconds that are not too early. */
function timeText(ms: number): string {
  const atMs = Math.min(Math.ceil(ms / 1000) * 1000, TIME_MAX_MS);
  return new Date(atMs).toISOString().replace(".000Z", "Z");
}

/** Returns headers without the one of a name. */
export function without(name: string, headers: HeaderList): HeaderList {
  return headers.filter((_, at) => headers[at - (at % 2)] !== name);
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

/** Whether a header of a request may be handed on, by its name. */
const forUpstream = new TextMemo((name) => {
  if (HOP_BY_HOP.has(name) || SET_FOR_UPSTREAM.has(name)) return false;
  return NO_CREDENTIALS.has(name) || !hasWord(name, CREDENTIAL_WORDS);
});

/** Whether a header of an answer may be handed on, by its name. */
const forClient = new TextMemo((name) => {
  if (HOP_BY_HOP.has(name) || name === REQUEST_ID) return false;
  return !hasWord(name, ACCOUNT_WORDS) && !ACCOUNT_LIMITS.test(name);
});

function hasWord(name: string, words: ReadonlySet<string>): boolean {
  return name.split("-").some((word) => words.has(word));
}
