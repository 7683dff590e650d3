/** The gateway with real clients in front of upstreams over real sockets. */

import Anthropic from "@anthropic-ai/sdk";
import type { Gateway, GatewayOptions } from "@zae-limiter/gateway/gateway.ts";
import { createKey, hashOf, idOf, listKeys } from "@zae-limiter/gateway/keys.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import {
  chatAnswer,
  chatEvents,
  messagesAnswer,
  sse,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stall, stream, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KEYS, startGateway, upstreamAt } from "../started-gateway.ts";

const MODEL = "gpt-4o";
const messages = [{ role: "user" as const, content: "x".repeat(40) }];
const atOnce = Promise.resolve();

let upstream: Upstream;
let limiter: RateLimiter;
let gateway: Gateway;
let key: string;
let nowMs: number;

beforeEach(async () => {
  nowMs = 1_700_000_000_000;
  upstream = await Upstream.start();
  limiter = await RateLimiter.open("memory:", { clock: () => nowMs });
  await limiter.repository.limits.setSystem(["rpm:100", "tpm:100000"]);
  key = (await createKey(limiter.repository, "team-a", undefined)).key;
  gateway = await start();
});
afterEach(async () => {
  await gateway.stop(atOnce);
  await limiter.close();
  await upstream.stop();
});

function start(options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  return startGateway(limiter, upstream, options);
}

/** Starts another one in its place. */
async function restart(options: Partial<GatewayOptions>): Promise<void> {
  await gateway.stop(atOnce);
  gateway = await start(options);
}

function client(apiKey = key): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

function chat(openai = client()) {
  return openai.chat.completions.create({ model: MODEL, messages });
}

async function consumed(entityId = "team-a", resource = MODEL) {
  const statuses = await limiter.status({ entityId, resource });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

/** Calls that wait for tokens now. */
async function waiting(): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/^zae_limiter_queue_size\{.*\} (\d+)$/m.exec(text)?.[1]);
}

describe("keys of the gateway", () => {
  test("a key counts for its entity, and the provider's key stays behind the gateway", async () => {
    upstream.replyWith(json(chatAnswer, 200, { "x-ratelimit-remaining-tokens": "7" }));
    const { response } = await client()
      .chat.completions.create({ model: MODEL, messages })
      .withResponse();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21 });
    const [arrived] = upstream.arrived;
    expect(arrived?.path).toBe("/v1/chat/completions");
    expect(arrived?.headers.authorization).toBe(`Bearer ${KEYS.OPENAI_API_KEY}`);
    expect(JSON.stringify(arrived?.headers)).not.toContain(key);
    expect(response.headers.get("x-ratelimit-remaining-tokens")).not.toBe("7");
    expect(response.headers.get("ratelimit-policy")).toContain('"rpm";q=100;w=60');
  });

  test("only the hash of a key is stored", async () => {
    const [stored] = await listKeys(limiter.repository, "team-a");
    expect(stored?.id).toBe(`gateway-key:${hashOf(key)}`);
    expect(JSON.stringify(stored)).not.toContain(key);
    expect(stored?.hint).toBe(key.slice(0, 10));
  });

  test("an unknown key, a stored id, a revoked key and an expired one get 401", async () => {
    const expected = { status: 401, code: "invalid_api_key" };
    await expect(chat(client("zael-unknown"))).rejects.toMatchObject(expected);
    await expect(chat(client(idOf(key)))).rejects.toMatchObject(expected);
    const expiring = await createKey(limiter.repository, "team-a", nowMs + 60_000);
    upstream.replyWith(json(chatAnswer));
    await chat(client(expiring.key));
    await chat();
    await limiter.repository.entities.delete(idOf(key));
    nowMs += 30_000;
    await expect(chat()).rejects.toMatchObject(expected);
    nowMs += 30_000;
    await expect(chat(client(expiring.key))).rejects.toMatchObject(expected);
    expect(upstream.arrived).toHaveLength(2);
  });

  test("an open gateway forwards the client's own key and counts for its hash", async () => {
    await restart({ isOpen: true, upstreams: [upstreamAt(upstream, { models: [MODEL] }, true)] });
    upstream.replyWith(json(chatAnswer));
    await chat(client("sk-of-the-client"));
    expect(upstream.arrived[0]?.headers.authorization).toBe("Bearer sk-of-the-client");
    expect(await consumed(`sha256:${hashOf("sk-of-the-client")}`)).toEqual({ rpm: 1, tpm: 21 });
  });
});

describe("calls through the gateway", () => {
  test("a stream comes through whole and is settled by its usage", async () => {
    upstream.replyWith(stream(chatEvents(["Grüße ", "世界"]), { done: true, pieceBytes: 5 }));
    const parts = await client().chat.completions.create({ model: MODEL, messages, stream: true });
    let text = "";
    for await (const part of parts) text += part.choices[0]?.delta.content ?? "";
    expect(text).toBe("Grüße 世界");
    await expect.poll(() => consumed()).toEqual({ rpm: 1, tpm: 21 });
  });

  test("a client that hangs up ends the upstream's answer and keeps what was streamed", async () => {
    upstream.replyWith(stall(chatEvents(["12345678"], "none").slice(0, 2)));
    const parts = await client().chat.completions.create({ model: MODEL, messages, stream: true });
    for await (const part of parts) if (part.choices[0]?.delta.content === "12345678") break;
    await upstream.untilHungUp(1);
    await expect.poll(() => consumed()).toEqual({ rpm: 1, tpm: 12 });
  });

  test("a call that may wait is forwarded when tokens come back", async () => {
    await limiter.repository.limits.setEntity("team-a", ["rpm:1"]);
    await restart({ maxWaitSeconds: 120 });
    let fail = () => {};
    const reached = new Promise<void>((resolve) => {
      upstream.replyWith((_, response) => {
        fail = () => void response.writeHead(503).end("{}");
        resolve();
      }, json(chatAnswer));
    });
    const first = expect(chat()).rejects.toMatchObject({ status: 503 });
    await reached;
    const second = chat();
    await expect.poll(() => waiting()).toBe(1);
    expect(upstream.arrived).toHaveLength(1);
    fail();
    await first;
    expect(await second).toMatchObject({ object: "chat.completion" });
    expect(await consumed()).toEqual({ rpm: 1 });
  });

  test("a client that hangs up while it waits for tokens consumes nothing", async () => {
    await limiter.repository.limits.setEntity("team-a", ["rpm:1"]);
    await restart({ maxWaitSeconds: 120 });
    upstream.replyWith(json(chatAnswer));
    await chat();
    const leaving = new AbortController();
    const { signal } = leaving;
    const asked = client().chat.completions.create({ model: MODEL, messages }, { signal });
    const failed = expect(asked).rejects.toThrow("aborted");
    await expect.poll(() => waiting()).toBe(1);
    leaving.abort();
    await failed;
    await expect.poll(() => waiting()).toBe(0);
    expect(upstream.arrived).toHaveLength(1);
    expect(await consumed()).toEqual({ rpm: 1 });
  });

  test("a refusal is a 429 of OpenAI that tells the limits of the entity, and no parent", async () => {
    const { entities, limits } = limiter.repository;
    await entities.create({ id: "company" });
    await entities.create({ id: "team-b", parentId: "company", cascade: true });
    await limits.setEntity("company", ["rpm:1"]);
    const openai = client((await createKey(limiter.repository, "team-b", undefined)).key);
    upstream.replyWith(json(chatAnswer));
    await chat(openai);
    const refused = await chat(openai).catch((error) => error);
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    expect(refused.message).not.toContain("company");
    expect(refused.headers.get("retry-after")).toBe("61");
    expect(refused.headers.get("ratelimit")).toBe('"rpm";r=99;t=1, "tpm";r=99979;t=1');
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("99");
    expect(upstream.arrived).toHaveLength(1);
  });

  test("an error of the upstream comes through and is refunded", async () => {
    upstream.replyWith(json({ error: { message: "busy", code: "x" } }, 503));
    await expect(chat()).rejects.toMatchObject({ status: 503 });
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0 });
  });

  test("an upstream that cannot be reached is a 502, and one that is silent too", async () => {
    upstream.replyWith((_, response) => void response.destroy());
    await expect(chat()).rejects.toMatchObject({ status: 502 });
    await restart({ timeoutMs: 50 });
    upstream.replyWith(() => {});
    await expect(chat()).rejects.toThrow("502 The upstream did not answer in time.");
    expect(await consumed()).toEqual({ rpm: 2, tpm: 1020 });
  });

  test("a request on a connection that the upstream has closed is sent once more", async () => {
    const known = new WeakSet<object>();
    upstream.replyWith((request, response) => {
      const socket = response.socket as object & { destroy(): void };
      if (known.has(socket)) return void socket.destroy();
      known.add(socket);
      return json(chatAnswer)(request, response);
    });
    await chat();
    await chat();
    expect(upstream.arrived).toHaveLength(3);
    expect(await consumed()).toEqual({ rpm: 2, tpm: 42 });
  });

  test("an answer that breaks off on a reused connection is not asked for again", async () => {
    let calls = 0;
    upstream.replyWith((request, response) => {
      calls += 1;
      if (calls !== 2) return json(chatAnswer)(request, response);
      response.writeHead(200, { "content-type": "application/json", "content-length": "999" });
      return void response.write("{", () => response.socket?.resetAndDestroy());
    });
    await chat();
    await expect(chat()).rejects.toThrow();
    await chat();
    expect(upstream.arrived).toHaveLength(3);
  });

  test("models go to the upstream with the longest beginning", async () => {
    const other = await Upstream.start();
    const claude = upstreamAt(other, { models: ["claude-"], api: "anthropic" });
    await restart({ upstreams: [upstreamAt(upstream, { models: ["gpt-"] }), claude] });
    other.replyWith(json(messagesAnswer));
    const anthropic = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    await anthropic.messages.create({ model: "claude-test", max_tokens: 9, messages });
    expect(other.arrived[0]?.headers["x-api-key"]).toBe(KEYS.ANTHROPIC_API_KEY);
    expect(other.arrived[0]?.path).toBe("/v1/messages");
    expect(await consumed("team-a", "claude-test")).toEqual({ rpm: 1, tpm: 45 });
    const unknown = client().chat.completions.create({ model: "llama", messages });
    await expect(unknown).rejects.toThrow('404 No upstream of this gateway serves "llama".');
    const listed = await client().models.list();
    expect(listed.data.map(({ id }) => id)).toEqual(["gpt-4o"]);
    await other.stop();
  });

  test("a body that is too long is a 413, and hop-by-hop headers stay here", async () => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const url = `${gateway.url}/v1/chat/completions`;
    const long = JSON.stringify({ model: MODEL, messages, more: "x".repeat(20_000) });
    const refused = await fetch(url, { method: "POST", headers, body: long });
    expect(refused.status).toBe(413);
    upstream.replyWith(json(chatAnswer, 200, { "keep-alive": "timeout=99", "set-cookie": "a=b" }));
    const body = JSON.stringify({ model: MODEL, messages });
    const more = { ...headers, te: "trailers", cookie: "secret=1", "x-kept": "yes" };
    const answer = await fetch(url, { method: "POST", headers: more, body });
    await answer.json();
    expect(answer.headers.get("set-cookie")).toBeNull();
    expect(answer.headers.get("keep-alive")).not.toBe("timeout=99");
    const [arrived] = upstream.arrived;
    expect(arrived?.headers.te).toBeUndefined();
    expect(arrived?.headers.cookie).toBeUndefined();
    expect(arrived?.headers["x-kept"]).toBe("yes");
  });

  test("/healthz says whether the store answers, without a key", async () => {
    const healthy = await fetch(`${gateway.url}/healthz`);
    expect(healthy.status).toBe(200);
    expect(await healthy.json()).toEqual({ status: "ok" });
  });

  test("/metrics tells Prometheus of calls, tokens and answers, and names no entity", async () => {
    await limiter.repository.limits.setEntity("team-a", ["rpm:1", "tpm:1000"]);
    upstream.replyWith(json(chatAnswer));
    await chat();
    await expect(chat()).rejects.toMatchObject({ status: 429 });
    const answer = await fetch(`${gateway.url}/metrics`);
    expect(answer.headers.get("content-type")).toContain("text/plain; version=0.0.4");
    const text = await answer.text();
    const labels = `zae_limiter_resource="${MODEL}",zae_limiter_namespace="default"`;
    const refused = `${labels},zae_limiter_limit="rpm",zae_limiter_hierarchy_level="entity"`;
    for (const line of [
      "# TYPE zae_limiter_acquires_total counter",
      `zae_limiter_acquires_total{zae_limiter_outcome="granted",${labels}} 1`,
      `zae_limiter_acquires_total{zae_limiter_outcome="refused",${refused}} 1`,
      `zae_limiter_acquire_duration_seconds_count{zae_limiter_outcome="granted",${labels}} 1`,
      'zae_limiter_gateway_requests_total{http_response_status_code="200"} 1',
      'zae_limiter_gateway_requests_total{http_response_status_code="429"} 1',
      "# TYPE zae_limiter_gateway_open_requests gauge",
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).not.toContain("team-a");
  });

  test("a gateway that stops lets a stream end, and ends its lease", async () => {
    let finish = () => {};
    const events = chatEvents(["12345678"]);
    upstream.replyWith(async (request, response) => {
      await stall(events.slice(0, 2))(request, response);
      finish = () => response.end(sse(events.slice(2), { done: true }));
    });
    const parts = await client().chat.completions.create({ model: MODEL, messages, stream: true });
    const iterator = parts[Symbol.asyncIterator]();
    await iterator.next();
    const stopped = gateway.stop(new Promise(() => {}));
    finish();
    while (!(await iterator.next()).done);
    await stopped;
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21 });
    gateway = await start();
  });

  test("a gateway that must not wait breaks streams off and counts what was streamed", async () => {
    upstream.replyWith(stall(chatEvents(["12345678"], "none").slice(0, 2)));
    const parts = await client().chat.completions.create({ model: MODEL, messages, stream: true });
    const iterator = parts[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.next();
    const read = expect(iterator.next()).rejects.toThrow();
    await gateway.stop(atOnce);
    await read;
    expect(await consumed()).toEqual({ rpm: 1, tpm: 12 });
    gateway = await start();
  });
});
