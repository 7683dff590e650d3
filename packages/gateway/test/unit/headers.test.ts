/** Which headers pass the gateway, both ways. */

import * as headers from "@zae-limiter/gateway/headers.ts";
import { checkUpstream } from "@zae-limiter/gateway/upstreams.ts";
import { Limit } from "@zae-limiter/limiter/index.ts";
import { expect, test } from "vitest";

const env = { OPENAI_API_KEY: "sk-real", ANTHROPIC_API_KEY: "sk-ant-real" };
const openai = checkUpstream({ url: "https://api.openai.com/v1" }, env, false);
const anthropic = checkUpstream({ url: "https://api.anthropic.com/v1" }, env, false);
const open = checkUpstream({ url: "https://api.openai.com/v1" }, {}, true);
const keyless = checkUpstream({ url: "http://127.0.0.1:11434/v1", key: "none" }, {}, false);

const { clientKey } = headers;

/** Returns headers by their names, each of which may come once. */
function byName(list: headers.HeaderList): Readonly<Record<string, string>> {
  const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]]] : []));
  const found = Object.fromEntries(pairs) as Record<string, string>;
  expect(Object.keys(found)).toHaveLength(pairs.length);
  return found;
}

const upstreamHeaders = (...given: Parameters<typeof headers.upstreamHeaders>) =>
  byName(headers.upstreamHeaders(...given));
const clientHeaders = (...given: Parameters<typeof headers.clientHeaders>) =>
  byName(headers.clientHeaders(...given));
const limitHeaders = (...given: Parameters<typeof headers.limitHeaders>) =>
  byName(headers.limitHeaders(...given));

const NEVER_FORWARDED = {
  connection: "keep-alive",
  "keep-alive": "timeout=5",
  "proxy-authorization": "Basic eA==",
  "proxy-connection": "keep-alive",
  te: "trailers",
  trailer: "x",
  "transfer-encoding": "chunked",
  host: "gateway.local",
  "content-length": "99",
  "accept-encoding": "gzip, br",
  authorization: "Bearer zael-client",
  "x-api-key": "zael-client",
  "api-key": "zael-client",
  "x-goog-api-key": "zael-client",
  "x-auth-token": "zael-client",
  "openai-organization": "org-1",
  "openai-project": "proj-1",
  cookie: "a=b",
  expect: "100-continue",
};

test("the upstream gets its own key and host, and what is about the request itself", () => {
  const kept = {
    "x-kept": "1, 2",
    "content-type": "application/json",
    "idempotency-key": "one",
    "anthropic-beta": "a",
  };
  const headers = { ...NEVER_FORWARDED, ...kept };
  const own = { host: "api.openai.com", "accept-encoding": "identity", ...kept };
  expect(upstreamHeaders(headers, openai, "zael-client", 7)).toEqual({
    ...own,
    authorization: "Bearer sk-real",
    "content-length": "7",
  });
  expect(upstreamHeaders(headers, open, "sk-client", undefined)).toEqual({
    ...own,
    authorization: "Bearer sk-client",
  });
  expect(upstreamHeaders(headers, anthropic, "zael-client", 7)).toEqual({
    ...own,
    host: "api.anthropic.com",
    "x-api-key": "sk-ant-real",
    "content-length": "7",
  });
  const azure = checkUpstream(
    { url: "https://a.openai.azure.com" },
    { AZURE_OPENAI_API_KEY: "k" },
    false,
  );
  const forAzure = upstreamHeaders(headers, azure, "zael-client", 7);
  expect(forAzure["api-key"]).toBe("k");
  expect(forAzure["authorization"]).toBeUndefined();
  const none = upstreamHeaders(headers, keyless, "zael-client", 7);
  expect(none["authorization"]).toBeUndefined();
  expect(JSON.stringify(none)).not.toContain("zael-client");
});

test("headers by which a server may read another path than that of the request stay here", () => {
  const headers = { "x-original-url": "/v1/files", "x-rewrite-url": "/v1/files", "x-a": "1" };
  expect(Object.keys(upstreamHeaders(headers, openai, "zael-client", 2))).not.toContain(
    "x-original-url",
  );
  expect(Object.keys(upstreamHeaders(headers, openai, "zael-client", 2))).not.toContain(
    "x-rewrite-url",
  );
});

test("headers that the connection names stay here, and those of the gateway do not", () => {
  const headers = {
    "x-a": "1",
    "x-b": "2",
    "x-c": "3",
    connection: "x-a, X-B, host, authorization",
  };
  expect(upstreamHeaders(headers, openai, "zael-client", 0)).toEqual({
    host: "api.openai.com",
    "accept-encoding": "identity",
    authorization: "Bearer sk-real",
    "content-length": "0",
    "x-c": "3",
  });
  expect(clientHeaders(headers, openai)).toEqual({ "x-c": "3" });
});

test("the client gets nothing about the provider's account, and nothing hop by hop", () => {
  const kept = { "content-type": "text/event-stream", "request-id": "r1", "x-request-id": "r2" };
  const headers = {
    ...kept,
    "set-cookie": ["a=b"],
    "x-ratelimit-limit-requests": "9",
    "anthropic-ratelimit-tokens-remaining": "9",
    "x-ratelimitbysize-remaining-month": "9",
    "x-rate-limit-remaining": "9",
    "anthropic-priority-input-tokens-remaining": "9",
    "anthropic-organization-id": "org-1",
    "openai-organization": "org-1",
    "openai-project": "proj-1",
    "www-authenticate": "Bearer",
    "transfer-encoding": "chunked",
    "x-echo": "key=sk-real",
    "x-gateway-request-id": "of another gateway",
  };
  expect(clientHeaders(headers, openai)).toEqual(kept);
});

test("a client of Anthropic is told its limits by Anthropic's headers", () => {
  const status = (text: string, available: number) => {
    const limit = Limit.parse(text);
    const rest = { requested: 1, exceeded: false, retryAfterSeconds: 0, deficit: 0 };
    const place = { entityId: "a", resource: "m", limitName: limit.name };
    return { ...place, limit, available, ...rest } as never;
  };
  const nowMs = Date.UTC(2026, 0, 1);
  const statuses = [status("rpm:60", 30), status("tpm:1000", -5), status("itpm:100", 100)];
  expect(limitHeaders(statuses, nowMs, "anthropic")).toMatchObject({
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "30",
    "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:30Z",
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": "2026-01-01T00:01:01Z",
    "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:00Z",
  });
  const slow = limitHeaders([status("rpm:1/day:1000000000000", 0)], nowMs, "anthropic");
  expect(slow["anthropic-ratelimit-requests-reset"]).toContain("275760");
  expect(limitHeaders(statuses, nowMs, "openai")["x-ratelimit-limit-requests"]).toBe("60");
});

test("a key comes as a bearer token or as x-api-key", () => {
  expect(clientKey({ authorization: "Bearer a" })).toBe("a");
  expect(clientKey({ authorization: "bearer  a " })).toBe("a");
  expect(clientKey({ authorization: "Basic a", "x-api-key": "b" })).toBe("b");
  expect(clientKey({ authorization: "Bearer " })).toBeUndefined();
  expect(clientKey({ "x-api-key": "" })).toBeUndefined();
  expect(clientKey({})).toBeUndefined();
});
