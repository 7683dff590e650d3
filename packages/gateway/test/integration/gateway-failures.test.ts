/** Answers to calls that cannot be decided, or whose client may not pass. */

import type { Gateway } from "@zae-limiter/gateway/gateway.ts";
import { createKey, idOf } from "@zae-limiter/gateway/keys.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { delayingProxy } from "@zae-limiter/test-support/delaying-proxy.ts";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startGateway, upstreamAt } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const MESSAGES = "/v1/messages";

let upstream: Upstream;
let limiter: RateLimiter;
let gateway: Gateway;
let key: string;
let nowMs: number;

beforeEach(async () => {
  nowMs = 1_700_000_000_000;
  upstream = await Upstream.start();
  upstream.replyWith(json(chatAnswer));
  limiter = await RateLimiter.open("memory:", { clock: () => nowMs });
  key = (await createKey(limiter.repository, "team-a", undefined)).key;
  gateway = await startGateway(limiter, upstream);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await gateway.stop(Promise.resolve());
  await limiter.close();
  await upstream.stop();
});

async function ask(path: string, headers: Record<string, string>, at = gateway) {
  const messages = [{ role: "user", content: "hello" }];
  const body = JSON.stringify({ model: "gpt-4o", max_tokens: 9, messages });
  const answer = await fetch(at.url + path, { method: "POST", headers, body });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, json: JSON.parse(text) };
}

function bearer(text = key) {
  return { authorization: `Bearer ${text}` };
}

test("a call without any limits gets a code in the shape of its provider, and no retry", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const chat = await ask(CHAT, bearer());
  expect(chat.status).toBe(500);
  expect(chat.headers.get("content-type")).toBe("application/json");
  expect(chat.headers.get("x-should-retry")).toBe("false");
  expect(chat.json.error).toMatchObject({ code: "limits_not_configured", param: null });
  const message = await ask(MESSAGES, { "x-api-key": key });
  expect(message.json).toMatchObject({ type: "error", error: { type: "api_error" } });
  expect(chat.text + message.text).not.toContain("team-a");
  expect(warned).toHaveBeenCalledTimes(2);
  expect(upstream.arrived).toHaveLength(0);
});

test("an unexpected error gets a body without the text of the error", async () => {
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  await limiter.repository.limits.setSystem(["rpm:100"]);
  await gateway.stop(Promise.resolve());
  // A line break cannot be part of a header.
  const upstreams = [{ ...upstreamAt(upstream), key: "sk-real\n" }];
  gateway = await startGateway(limiter, upstream, { upstreams });
  const { status, headers, json: body } = await ask(CHAT, bearer());
  expect(status).toBe(500);
  expect(headers.get("x-should-retry")).toBe("false");
  expect(body.error).toEqual({
    message: "The gateway failed. The log of the gateway says why.",
    type: "gateway_error",
    param: null,
    code: "gateway_error",
  });
  const left = await limiter.available({ entityId: "team-a", resource: "gpt-4o" });
  expect(left).toEqual({ rpm: 100 });
});

test("a 401 says whether a key was sent, and how to send one", async () => {
  const how = 'Send one as "Authorization: Bearer <key>" or as "x-api-key: <key>".';
  const none = `The request has no key. ${how}`;
  for (const headers of [{}, { authorization: "Basic abc" }, { "x-api-key": "" }]) {
    const { status, json: body } = await ask(CHAT, headers as Record<string, string>);
    expect({ status, ...body.error }).toMatchObject({ status: 401, message: none });
  }
  const wrong = `The key of the request is not valid: unknown, revoked or expired. ${how}`;
  for (const text of ["zael-unknown", "sk-other", idOf(key)]) {
    const { status, json: body } = await ask(MESSAGES, { "x-api-key": text });
    expect({ status, ...body.error }).toEqual({
      status: 401,
      type: "authentication_error",
      message: wrong,
    });
  }
});

test("a key is refused within half a minute after its entity was deleted", async () => {
  await limiter.repository.limits.setSystem(["rpm:100"]);
  expect((await ask(CHAT, bearer())).status).toBe(200);
  await limiter.repository.entities.delete("team-a");
  nowMs += 30_000;
  expect((await ask(CHAT, bearer())).status).toBe(401);
  expect(upstream.arrived).toHaveLength(1);
});

describeEngines("a gateway whose store goes away", ({ endpoint }) => {
  test("the operator is told once, and every call is a 503", async () => {
    const table = `gateway-${crypto.randomUUID()}`;
    const network = await delayingProxy(endpoint, 0);
    const there = { endpoint: network.endpoint, timeoutMs: 20_000 };
    const repository = await Repository.createTable(table, there);
    await repository.limits.setSystem(["rpm:100/day"]);
    const { key: seen } = await createKey(repository, "team-a", undefined);
    const { key: unseen } = await createKey(repository, "team-a", undefined);
    await repository.close();
    const shared = new RateLimiter(await Repository.connect(table, { ...there, timeoutMs: 1000 }));
    const lenient = new RateLimiter(shared.repository, { onUnavailable: "allow" });
    const lines: string[] = [];
    const lenientLines: string[] = [];
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const away = await startGateway(shared, upstream, { tell: (line) => lines.push(line) });
    const tell = (line: string) => lenientLines.push(line);
    const passing = await startGateway(lenient, upstream, { tell });
    expect((await ask(CHAT, bearer(seen), away)).status).toBe(200);
    expect((await ask(CHAT, bearer(seen), passing)).status).toBe(200);
    await network.close();
    // The key that was not seen yet has to be read first.
    for (const text of [unseen, seen]) {
      const { status, json: body } = await ask(CHAT, bearer(text), away);
      expect({ status, code: body.error.code }).toEqual({ status: 503, code: "server_error" });
    }
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^The store cannot be reached: /);
    expect(warned).not.toHaveBeenCalledWith(expect.stringContaining("A request failed"));
    // A call that passes uncounted must not go unnoticed either.
    expect((await ask(CHAT, bearer(seen), passing)).status).toBe(200);
    expect(lenientLines).toEqual(["The store cannot be reached"]);
    await passing.stop(Promise.resolve());
    await away.stop(Promise.resolve());
    await shared.close().catch(() => {});
  });
});
