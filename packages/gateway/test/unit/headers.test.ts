/** Which headers pass the gateway, both ways. */

import { clientHeaders, clientKey, upstreamHeaders } from "@zae-limiter/gateway/headers.ts";
import { checkUpstream } from "@zae-limiter/gateway/upstreams.ts";
import { expect, test } from "vitest";

const env = { OPENAI_API_KEY: "sk-real", ANTHROPIC_API_KEY: "sk-ant-real" };
const openai = checkUpstream({ url: "https://api.openai.com/v1" }, env, false);
const anthropic = checkUpstream({ url: "https://api.anthropic.com/v1" }, env, false);
const open = checkUpstream({ url: "https://api.openai.com/v1" }, {}, true);

const NEVER_FORWARDED = [
  ["Connection", "keep-alive"],
  ["Keep-Alive", "timeout=5"],
  ["Proxy-Authorization", "Basic eA=="],
  ["proxy-connection", "keep-alive"],
  ["TE", "trailers"],
  ["Trailer", "x"],
  ["Transfer-Encoding", "chunked"],
  ["Upgrade", "h2c"],
  ["Host", "gateway.local"],
  ["Content-Length", "99"],
  ["Accept-Encoding", "gzip, br"],
  ["AUTHORIZATION", "Bearer zael-client"],
  ["X-Api-Key", "zael-client"],
  ["Cookie", "a=b"],
  ["Expect", "100-continue"],
].flat();

test("the upstream gets its own key and host, and what is about the request itself", () => {
  const kept = ["X-Kept", "1", "x-kept", "2", "Content-Type", "application/json"];
  const raw = [...NEVER_FORWARDED, ...kept];
  const common = ["Host", "api.openai.com", "Accept-Encoding", "identity"];
  const length = ["Content-Length", "7"];
  expect(upstreamHeaders(raw, openai, "zael-client", 7)).toEqual([
    ...common,
    "Authorization",
    "Bearer sk-real",
    ...length,
    ...kept,
  ]);
  expect(upstreamHeaders(raw, open, "sk-client", undefined)).toEqual([
    ...common,
    "Authorization",
    "Bearer sk-client",
    ...kept,
  ]);
  const [, , ...rest] = upstreamHeaders(raw, anthropic, "zael-client", 7);
  expect(rest.slice(2, 4)).toEqual(["x-api-key", "sk-ant-real"]);
  expect(JSON.stringify(rest)).not.toContain("zael-client");
});

test("headers that the connection names stay here, whatever their letters, and ours never do", () => {
  const raw = ["X-A", "1", "x-b", "2", "x-c", "3", "Connection", "x-a, X-B", "connection", "host"];
  const sent = upstreamHeaders([...raw, "Connection", "authorization"], openai, "zael-client", 0);
  expect(sent).toEqual([
    ...["Host", "api.openai.com", "Accept-Encoding", "identity"],
    ...["Authorization", "Bearer sk-real", "Content-Length", "0", "x-c", "3"],
  ]);
  expect(clientHeaders(raw, false).headers).toEqual(["x-c", "3"]);
});

test("the client gets no cookie, no limits of the provider's account and nothing hop by hop", () => {
  const raw = [
    ...["Content-Type", "text/event-stream", "Set-Cookie", "a=b", "X-RateLimit-Limit", "9"],
    ...["anthropic-ratelimit-tokens-remaining", "9", "Transfer-Encoding", "chunked"],
    ...["Content-Length", "5", "request-id", "r1", "content-type", "text/plain"],
  ];
  const kept = ["Content-Type", "text/event-stream", "Content-Length", "5", "request-id", "r1"];
  const { headers, contentType } = clientHeaders(raw, false);
  expect(headers).toEqual([...kept, "content-type", "text/plain"]);
  expect(contentType).toBe("text/event-stream");
  expect(clientHeaders(raw, true).headers).not.toContain("Content-Length");
});

test("a key comes as a bearer token or as x-api-key", () => {
  expect(clientKey({ authorization: "Bearer a" })).toBe("a");
  expect(clientKey({ authorization: "bearer  a " })).toBe("a");
  expect(clientKey({ authorization: "Basic a", "x-api-key": "b" })).toBe("b");
  expect(clientKey({ "x-api-key": "" })).toBeUndefined();
  expect(clientKey({})).toBeUndefined();
});

test("an upstream without a key gets neither its own nor the client's", () => {
  const keyless = checkUpstream({ url: "http://127.0.0.1:11434/v1", key: "none" }, env, false);
  const raw = ["Authorization", "Bearer zael-client", "X-Kept", "1"];
  expect(upstreamHeaders(raw, keyless, "zael-client", undefined)).toEqual([
    "Host",
    "127.0.0.1:11434",
    "Accept-Encoding",
    "identity",
    "X-Kept",
    "1",
  ]);
});
