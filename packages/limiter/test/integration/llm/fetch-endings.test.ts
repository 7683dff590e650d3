/** The ends of calls that `limitFetch` makes, against an upstream over real sockets. */

import { gzipSync } from "node:zlib";
import { RateLimiter, TOTAL } from "@zae-limiter/limiter/index.ts";
import { type LlmOptions, limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import {
  chatAnswer,
  chatEvents,
  chatUsage,
  responsesAnswer,
  sse,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { json, type Reply, stall, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

const MODEL = "gpt-4o";
/** 10 tokens by estimate. */
const chat = { model: MODEL, messages: [{ role: "user", content: "x".repeat(40) }] };

let upstream: Upstream;
let limiter: RateLimiter;

beforeAll(async () => {
  upstream = await Upstream.start();
});
afterAll(() => upstream.stop());
beforeEach(async () => {
  limiter = await RateLimiter.open("memory:", { clock: () => 1_700_000_000_000 });
  await limiter.repository.limits.setSystem(["rpm:100", "tpm:1000000"]);
});
afterEach(() => limiter.close());

function ask(
  body: object,
  more: { path?: string; signal?: AbortSignal } & Partial<LlmOptions> = {},
) {
  const { path = "/v1/chat/completions", signal, ...options } = more;
  const fetch = limitFetch(limiter, { entityId: "team-a", ...options });
  const init = { method: "POST", body: JSON.stringify(body), ...(signal && { signal }) };
  return fetch(upstream.url + path, init);
}

async function consumed(resource = MODEL) {
  const statuses = await limiter.status({ entityId: "team-a", resource });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

test("a total of 60 passes 60 calls over three models, and refuses the next on each", async () => {
  const { limits } = limiter.repository;
  await limits.setEntity("team-a", ["rpm:60/day", "tpm:100000/day"], { resource: TOTAL });
  upstream.replyWith(json(chatAnswer));
  const models = ["gpt-4o", "gpt-5-mini", "llama3.1:8b"];
  for (let call = 0; call < 60; call += 1) {
    const answer = await ask({ ...chat, model: models[call % 3] });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  const arrived = upstream.arrived.length;
  for (const model of models) {
    const answer = await ask({ ...chat, model });
    expect(answer.status).toBe(429);
    const { error } = (await answer.json()) as { error: { message: string } };
    expect(error.message).toContain("team-a/@all: [rpm] over all resources");
    expect((await consumed(model))["rpm"]).toBe(20);
  }
  expect(upstream.arrived).toHaveLength(arrived);
  // Settled as the models were: by the usage that the provider reported.
  const perCall = (await consumed(MODEL))["tpm"] as number;
  expect(await consumed(TOTAL)).toEqual({ rpm: 60, tpm: 3 * perCall });
});

/** Begins an answer in JSON and never ends it. */
const halfAnswer: Reply = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.write('{"id":"chatcmpl-1",');
};

test("an answer that fetch has decompressed is read, and so is a stream", async () => {
  const compressed = (type: string, text: string): Reply => {
    const headers = { "content-type": type, "content-encoding": "gzip" };
    return (_, response) => void response.writeHead(200, headers).end(gzipSync(text));
  };
  upstream.replyWith(
    compressed("application/json", JSON.stringify(chatAnswer)),
    compressed("text/event-stream", sse(chatEvents(["Hi"]), { done: true })),
  );
  expect(await (await ask(chat)).json()).toEqual(chatAnswer);
  expect(await consumed()).toEqual({ rpm: 1, tpm: 21 });
  expect(await (await ask({ ...chat, stream: true })).text()).toContain("[DONE]");
  expect(await consumed()).toEqual({ rpm: 2, tpm: 42 });
});

test("a stream whose lines end with CR alone is read", async () => {
  const text = sse(chatEvents(["Hi"]), { done: true }).replaceAll("\n", "\r");
  upstream.replyWith((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
  });
  await (await ask({ ...chat, stream: true })).text();
  expect(await consumed()).toEqual({ rpm: 1, tpm: 21 });
});

test.each([
  ["400", 400, 1],
  ["503", 503, 1],
])(
  "an error of status %s that states usage costs that usage, and comes through",
  async (_, status, rpm) => {
    const body = { error: { message: "late", type: "x" }, usage: chatUsage };
    upstream.replyWith(json(body, status));
    const response = await ask(chat);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual(body);
    expect(await consumed()).toEqual({ rpm, tpm: 21 });
  },
);

test("a long error, and one that breaks off, are passed on as they are", async () => {
  const long = { error: { message: "x".repeat(200_000) } };
  upstream.replyWith(json(long, 500), (_, response) => {
    response.writeHead(500, { "content-type": "application/json" });
    response.write('{"error":', () => response.destroy());
  });
  expect(await (await ask(chat)).json()).toEqual(long);
  const broken = await ask(chat);
  expect(broken.status).toBe(500);
  await expect(broken.json()).rejects.toThrow();
  expect(await consumed()).toEqual({ rpm: 0, tpm: 0 });
});

test("a body that is cancelled costs the most that the call can, and ends the upstream", async () => {
  upstream.replyWith(halfAnswer);
  const response = await ask({ ...chat, max_tokens: 3000 });
  await response.body?.cancel();
  await upstream.untilHungUp(1);
  expect(await consumed()).toEqual({ rpm: 1, tpm: 3010 });
});

test("a plain answer that is aborted on its way costs the most that the call can", async () => {
  upstream.replyWith(halfAnswer);
  const abort = new AbortController();
  const response = await ask(chat, { signal: abort.signal });
  const text = expect(response.text()).rejects.toThrow("aborted");
  abort.abort();
  await text;
  await upstream.untilHungUp(1);
  expect(await consumed()).toEqual({ rpm: 1, tpm: 16_394 });
});

test("a plain answer that the upstream breaks off keeps the estimate", async () => {
  upstream.replyWith((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write("{", () => response.destroy());
  });
  await expect((await ask(chat)).text()).rejects.toThrow();
  expect(await consumed()).toEqual({ rpm: 1, tpm: 510 });
});

test("a stream that is aborted before its first byte keeps the estimate", async () => {
  const abort = new AbortController();
  upstream.replyWith(() => abort.abort());
  const asked = ask({ ...chat, stream: true }, { signal: abort.signal });
  await expect(asked).rejects.toThrow("aborted");
  expect(await consumed()).toEqual({ rpm: 1, tpm: 510 });
});

test("a call that is aborted while it is granted is not sent and costs nothing", async () => {
  const abort = new AbortController();
  upstream.replyWith(json(chatAnswer));
  const resource = () => {
    queueMicrotask(() => abort.abort(new Error("changed my mind")));
    return MODEL;
  };
  const asked = ask(chat, { signal: abort.signal, resource });
  await expect(asked).rejects.toThrow("changed my mind");
  expect(upstream.arrived).toEqual([]);
  expect(await consumed()).toEqual({ rpm: 0, tpm: 0 });
});

test("a reasoning model whose stream is cut costs the rest of its estimate", async () => {
  upstream.replyWith(stall(chatEvents(["Hi"], "none").slice(0, 2)));
  const response = await ask({ ...chat, model: "o4-mini", stream: true });
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(await consumed("o4-mini")).toEqual({ rpm: 1, tpm: 510 });
});

test("a background response costs the most, and teaches nothing", async () => {
  const queued = { ...responsesAnswer, status: "queued", output: [], usage: null };
  upstream.replyWith(json(queued));
  const fetch = limitFetch(limiter, { entityId: "team-a" });
  const body = JSON.stringify({ model: MODEL, input: "x".repeat(40), background: true });
  for (let call = 1; call <= 6; call += 1) {
    await (await fetch(`${upstream.url}/v1/responses`, { method: "POST", body })).json();
    expect(await consumed()).toEqual({ rpm: call, tpm: call * 16_394 });
  }
  upstream.replyWith(halfAnswer);
  const held = await fetch(`${upstream.url}/v1/responses`, { method: "POST", body });
  expect(await consumed()).toEqual({ rpm: 7, tpm: 6 * 16_394 + 510 });
  await held.body?.cancel();
});

test("absurd usage ends the lease with the estimate", async () => {
  const usage = { prompt_tokens: 1e15, completion_tokens: 1e15 };
  upstream.replyWith(json({ ...chatAnswer, usage }));
  await (await ask(chat)).json();
  expect(await consumed()).toEqual({ rpm: 1, tpm: 510 });
});
