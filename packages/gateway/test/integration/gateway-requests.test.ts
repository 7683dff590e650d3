/** Requests that the SDKs would never send, and clients and upstreams that misbehave. */

import { once } from "node:events";
import { createServer, type IncomingMessage, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { gzipSync } from "node:zlib";
import type { Gateway, GatewayOptions } from "@zae-limiter/gateway/gateway.ts";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { checkUpstream } from "@zae-limiter/gateway/upstreams.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KEYS, startGateway } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const asked = { model: "gpt-4o", messages: [{ role: "user", content: "x".repeat(40) }] };

const addresses = Object.values(networkInterfaces()).flatMap((known) => known ?? []);
const noIpv6 = addresses.some(({ address }) => address === "::1")
  ? undefined
  : "this machine has no address ::1";

let upstream: Upstream;
let limiter: RateLimiter;
let gateway: Gateway;
let key: string;

beforeEach(async () => {
  upstream = await Upstream.start();
  upstream.replyWith(json(chatAnswer));
  limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(["rpd:100/day", "tpd:100000/day"]);
  key = (await createKey(limiter.repository, "team-a", undefined)).key;
  gateway = await startGateway(limiter, upstream);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await gateway.stop(Promise.resolve());
  await limiter.close();
  await upstream.stop();
});

async function restart(options: Partial<GatewayOptions>): Promise<void> {
  await gateway.stop(Promise.resolve());
  gateway = await startGateway(limiter, upstream, options);
}

/** Starts a request whose path stays as it is written, which `fetch` would change. */
function opened(path: string, headers: Record<string, string> = {}, method = "POST") {
  const { port, hostname } = new URL(gateway.url);
  const all = { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers };
  return sendRequest({ hostname, port, path, method, headers: all });
}

async function ask(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  const request = opened(path, headers);
  request.end(body);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer) text += String(chunk);
  return { status: answer.statusCode, body: text };
}

async function consumed(resource = "gpt-4o") {
  const statuses = await limiter.status({ entityId: "team-a", resource });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

async function metric(line: RegExp): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(line.exec(text)?.[1] ?? 0);
}

test.each([
  ["is plain text", Buffer.from("hello")],
  ["is an array", Buffer.from("[]")],
  ["is empty", Buffer.alloc(0)],
  ["is in UTF-16", Buffer.from(JSON.stringify(asked), "utf16le")],
  ["begins with a byte order mark", Buffer.from(`\ufeff${JSON.stringify(asked)}`)],
  ["is compressed", gzipSync(JSON.stringify(asked))],
  ["has a model that is no text", Buffer.from(JSON.stringify({ ...asked, model: 5 }))],
])("a chat whose body %s is a 400, since its tokens could not be counted", async (_, body) => {
  const { status, body: text } = await ask(CHAT, body);
  expect(status).toBe(400);
  expect(JSON.parse(text).error.type).toBe("invalid_request_error");
  expect(upstream.arrived).toHaveLength(0);
});

test.each([
  ["with a space", "a b"],
  ["of 300 characters", "x".repeat(300)],
  ["with a hash", "a#b"],
  ["with an umlaut", "ä"],
])("a model whose name, %s, cannot be a resource is a 400, and no warning", async (_, model) => {
  const warned = vi.spyOn(process, "emitWarning");
  const { status, body } = await ask(CHAT, JSON.stringify({ ...asked, model }));
  expect(status).toBe(400);
  expect(JSON.parse(body).error.message).toContain("No model can have this name");
  expect(warned).not.toHaveBeenCalled();
  expect(upstream.arrived).toHaveLength(0);
});

test.each([
  ["another host", "http://example.com/v1/chat/completions", CHAT],
  ["no version", "/chat/completions", CHAT],
  ["a URL in its query", `${CHAT}?from=http://a/b`, `${CHAT}?from=http://a/b`],
])("tokens count for a path with %s", async (_, path, forwarded) => {
  expect(await ask(path, JSON.stringify(asked))).toMatchObject({ status: 200 });
  expect(upstream.arrived[0]?.path).toBe(forwarded);
  expect(await consumed()).toEqual({ rpd: 1, tpd: 21 });
});

test.each([
  ["an escape that it does not need", 404, "/v1/chat/completion%73"],
  ["capital letters", 404, "/v1/Chat/Completions"],
  ["more slashes", 404, "/v1/chat//completions//"],
  ["escaped dots", 404, "/v1/x/%2e%2E/chat/completions"],
  ["parameters", 404, `${CHAT};a=1`],
  ["an escaped slash", 404, `${CHAT}%2F`],
  ["nothing but slashes", 404, "//"],
  ["a deployment that cannot be read", 400, "/openai/deployments/%zz/chat/completions"],
  ["more than 2048 characters", 414, `${CHAT}?${"a".repeat(2048)}`],
])("a path with %s is a %d, and goes nowhere", async (_, status, path) => {
  const warned = vi.spyOn(process, "emitWarning");
  const { body, ...answer } = await ask(path, JSON.stringify(asked));
  expect(answer.status).toBe(status);
  expect(JSON.parse(body).error.message).toMatch(/\.$/);
  expect(warned).not.toHaveBeenCalled();
  expect(upstream.arrived).toHaveLength(0);
});

test("a request with more than 200 headers is a 431: Node.js would drop the rest of them", async () => {
  const more = Array.from({ length: 200 }, (_, at) => [`x-${at}`, "a"]);
  const many = { host: "a", ...Object.fromEntries(more) };
  const { status, body } = await ask(CHAT, JSON.stringify(asked), many);
  expect([status, JSON.parse(body).error.code]).toEqual([431, "too_many_headers"]);
  expect(upstream.arrived).toHaveLength(0);
});

test("an error that is compressed without being asked for is handed on in words", async () => {
  upstream.replyWith((_, response) => {
    response.writeHead(400, { "content-encoding": "gzip", "content-type": "application/json" });
    response.end(gzipSync('{"error":{"message":"Incorrect API key: sk-real-provider-key"}}'));
  });
  const { status, body } = await ask(CHAT, JSON.stringify(asked));
  expect(status).toBe(400);
  expect(JSON.parse(body).error.message).toContain("compressed");
});

test("a client that hangs up while it sends its body is counted as such, without a warning", async () => {
  const warned = vi.spyOn(process, "emitWarning");
  const request = opened(CHAT, { "content-length": "100" });
  request.on("error", () => {});
  request.write("{");
  await expect.poll(() => metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(2);
  request.destroy();
  const hungUp = /^zae_limiter_gateway_requests_total\{http_response_status_code="499"\} (\d+)$/m;
  await expect.poll(() => metric(hungUp)).toBe(1);
  expect(await metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(1);
  expect(warned).not.toHaveBeenCalled();
});

test("the gateway itself answers an expectation, and the upstream gets none", async () => {
  expect(await ask(CHAT, JSON.stringify(asked), { expect: "100-continue" })).toMatchObject({
    status: 200,
  });
  expect(upstream.arrived[0]?.headers.expect).toBeUndefined();
});

test("a request without a body has the length 0 only where a body is usual", async () => {
  await restart({ allowPaths: ["/files"] });
  await ask("/v1/files", "");
  const get = opened("/v1/files", {}, "GET").end();
  const [answer] = (await once(get, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  const [posted, got] = upstream.arrived;
  expect(posted?.headers["content-length"]).toBe("0");
  expect(posted?.headers["transfer-encoding"]).toBeUndefined();
  expect(got?.headers["content-length"]).toBeUndefined();
  expect(got?.headers["transfer-encoding"]).toBeUndefined();
});

test("an upstream that switches protocols without being asked is a 502", async () => {
  await restart({ timeoutMs: 100 });
  upstream.replyWith((_, response) => {
    response.socket?.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
  });
  expect(await ask(CHAT, JSON.stringify(asked))).toMatchObject({ status: 502 });
  // Something was sent, so the estimate stays.
  expect(await consumed()).toEqual({ rpd: 1, tpd: 510 });
});

test("an answer that the client cannot be sent ends its lease and the connection", async () => {
  // No status of HTTP: the parser lets it pass, and the server refuses to write it.
  upstream.replyWith((_, response) => {
    response.socket?.end("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n");
  });
  const { status } = await ask(CHAT, JSON.stringify(asked));
  expect(status).toBe(502);
  await expect.poll(() => consumed()).toEqual({ rpd: 1, tpd: 0 });
  await expect.poll(() => metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(1);
});

itUnless(noIpv6)("an upstream may have an address of IPv6", async () => {
  const other = createServer((_, response) => void response.end("{}"));
  other.listen(0, "::1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const url = `http://[::1]:${port}/v1`;
  await restart({ upstreams: [checkUpstream({ url }, KEYS, false)] });
  expect(await ask(CHAT, JSON.stringify(asked))).toMatchObject({ status: 200, body: "{}" });
  other.closeAllConnections();
  other.close();
});

describeEngines("a gateway on DynamoDB", ({ endpoint }) => {
  test("the gateway keeps no client waiting for an answer that broke off during a refund", async () => {
    const table = `gateway-${crypto.randomUUID()}`;
    const repository = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    await repository.limits.setSystem(["rpd:100/day"]);
    const shared = new RateLimiter(repository);
    const { key: other } = await createKey(repository, "team-a", undefined);
    const slow = await startGateway(shared, upstream);
    upstream.replyWith((_, response) => {
      response.writeHead(503, { "content-length": "99" });
      response.write("{", () => response.socket?.destroy());
    });
    const headers = { authorization: `Bearer ${other}` };
    const body = JSON.stringify(asked);
    const whole = async () => {
      const answer = await fetch(slow.url + CHAT, { method: "POST", headers, body });
      await answer.text();
      return answer.status;
    };
    // Which of the two comes depends on whether the refund or the end of the answer is first.
    expect([502, "broken off"]).toContain(await whole().catch(() => "broken off"));
    await slow.stop(Promise.resolve());
    const left = await shared.available({ entityId: "team-a", resource: "gpt-4o" });
    expect(left).toEqual({ rpd: 100 });
    await shared.close();
  });
});
