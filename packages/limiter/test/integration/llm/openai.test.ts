/** `limitFetch` with the real client of OpenAI, against an upstream over real sockets. */

import { Limit, RateLimiter } from "@zae-limiter/limiter/index.ts";
import { type LlmOptions, limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import {
  chatAnswer,
  chatEvents,
  chatToolEvents,
  embeddingsAnswer,
  responsesAnswer,
  responsesEvents,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { breakOff, json, stall, stream, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

const LIMITS = ["rpm:100", "tpm:100000", "itpm:100000", "otpm:100000"];
const MODEL = "gpt-4o";
const messages = [{ role: "user" as const, content: "x".repeat(40) }];

let upstream: Upstream;
let limiter: RateLimiter;
/** A fixed time: nothing is refilled. */
let nowMs = 1_700_000_000_000;

beforeAll(async () => {
  upstream = await Upstream.start();
});
afterAll(() => upstream.stop());
beforeEach(async () => {
  limiter = await RateLimiter.open("memory:", { clock: () => nowMs });
  await limiter.repository.limits.setSystem(LIMITS);
});
afterEach(() => limiter.close());

function client(options: Partial<LlmOptions> = {}, maxRetries = 0): OpenAI {
  const fetch = limitFetch(limiter, { entityId: "team-a", ...options });
  return new OpenAI({ apiKey: "sk-test", baseURL: `${upstream.url}/v1`, fetch, maxRetries });
}

/** Returns what was consumed of each limit so far. */
async function consumed(resource = MODEL, entityId = "team-a") {
  const statuses = await limiter.status({ entityId, resource });
  return Object.fromEntries(
    statuses
      .filter((status) => status.entityId === entityId)
      .map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

describe("plain calls of the OpenAI client", () => {
  test("a chat is settled by its usage, without cached input", async () => {
    upstream.replyWith(json(chatAnswer));
    const answer = await client().chat.completions.create({ model: MODEL, messages });
    expect(answer.choices[0]?.message.content).toBe("Hello there");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21, itpm: 11, otpm: 10 });
    expect(upstream.arrived[0]?.body).toEqual({ model: MODEL, messages });
  });

  test("cached input counts by a factor", async () => {
    upstream.replyWith(json(chatAnswer));
    const openai = client({ count: { cachedTokens: 0.5 } });
    await openai.chat.completions.create({ model: MODEL, messages });
    expect(await consumed()).toEqual({ rpm: 1, tpm: 25, itpm: 15, otpm: 10 });
  });

  test("a chat without usage is counted by its text", async () => {
    upstream.replyWith(json({ ...chatAnswer, usage: undefined }));
    await client().chat.completions.create({ model: MODEL, messages });
    // 40 bytes of input are 10 tokens, 11 bytes of output are 3.
    expect(await consumed()).toEqual({ rpm: 1, tpm: 13, itpm: 10, otpm: 3 });
  });

  test("the Responses API and embeddings are settled by their usage", async () => {
    upstream.replyWith(json(responsesAnswer), json(embeddingsAnswer));
    const openai = client();
    await openai.responses.create({ model: MODEL, input: "Hi" });
    expect(await consumed()).toEqual({ rpm: 1, tpm: 107, itpm: 20, otpm: 87 });
    await openai.embeddings.create({ model: "embed", input: ["Hi", "you"] });
    expect(await consumed("embed")).toEqual({ rpm: 1, tpm: 8, itpm: 8, otpm: 0 });
  });

  test("an unknown path counts as a request only", async () => {
    upstream.replyWith(json({ object: "list", data: [] }));
    await client().models.list();
    expect(await consumed("llm")).toEqual({ rpm: 1, tpm: 0, itpm: 0, otpm: 0 });
  });

  test("limits that the entity does not have are passed over", async () => {
    await limiter.repository.limits.setEntity("small", ["tpm:1000"]);
    upstream.replyWith(json(chatAnswer));
    await client({ entityId: "small" }).chat.completions.create({ model: MODEL, messages });
    expect(await consumed(MODEL, "small")).toEqual({ tpm: 21 });
  });

  test("a limit that `count` names and that is not there is an error", async () => {
    upstream.replyWith(json(chatAnswer));
    const openai = client({ count: { tokens: "tmp" } });
    await expect(openai.chat.completions.create({ model: MODEL, messages })).rejects.toMatchObject({
      cause: { code: "ZAEL_VALIDATION" },
    });
    expect(upstream.arrived).toEqual([]);
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, itpm: 0, otpm: 0 });
  });

  test("entity and resource are found out by functions", async () => {
    upstream.replyWith(json(chatAnswer));
    const openai = client({
      entityId: async (call) => call.headers?.get("x-team") ?? "nameless",
      resource: (call) => `openai/${call.model}`,
    });
    await openai.chat.completions.create(
      { model: MODEL, messages },
      { headers: { "x-team": "b" } },
    );
    expect(await consumed(`openai/${MODEL}`, "b")).toMatchObject({ rpm: 1, tpm: 21 });
  });
});

describe("streams of the OpenAI client", () => {
  async function textOf(
    openai: OpenAI,
    more: object = {},
  ): Promise<{ text: string; usages: number }> {
    const parts = await openai.chat.completions.create({
      model: MODEL,
      messages,
      stream: true,
      ...more,
    });
    let text = "";
    let usages = 0;
    for await (const part of parts) {
      text += part.choices[0]?.delta.content ?? "";
      if (part.choices.length === 0) usages += 1;
    }
    return { text, usages };
  }

  for (const pieceBytes of [1, 7, 100_000]) {
    test(`a stream in pieces of ${pieceBytes} bytes is settled by usage, which stays hidden`, async () => {
      const events = chatEvents(["Grüße ", "世界", "👋🏽"]);
      upstream.replyWith(stream(events, { done: true, pieceBytes }));
      expect(await textOf(client())).toEqual({ text: "Grüße 世界👋🏽", usages: 0 });
      expect(await consumed()).toEqual({ rpm: 1, tpm: 21, itpm: 11, otpm: 10 });
      expect(upstream.arrived[0]?.body["stream_options"]).toEqual({ include_usage: true });
    });
  }

  test("a caller that asked for usage gets it", async () => {
    upstream.replyWith(stream(chatEvents(["Hi"]), { done: true }));
    const asked = { stream_options: { include_usage: true } };
    expect(await textOf(client(), asked)).toEqual({ text: "Hi", usages: 1 });
    expect(await consumed()).toMatchObject({ tpm: 21 });
  });

  for (const place of ["last choice", "every chunk", "x_groq"] as const) {
    test(`usage in ${place} is found`, async () => {
      upstream.replyWith(stream(chatEvents(["Hi"], place), { done: true }));
      await textOf(client());
      expect(await consumed()).toMatchObject({ tpm: 21 });
    });
  }

  test("a stream without usage is counted by what was streamed", async () => {
    upstream.replyWith(stream(chatEvents(["12345678", "1234"], "none"), { done: true }));
    await textOf(client());
    expect(await consumed()).toEqual({ rpm: 1, tpm: 13, itpm: 10, otpm: 3 });
    upstream.replyWith(stream(chatToolEvents, { done: true }));
    await textOf(client({ entityId: "tools", tokenizer: (text) => [...text].length }));
    expect(await consumed(MODEL, "tools")).toEqual({ rpm: 1, tpm: 62, itpm: 40, otpm: 22 });
  });

  test("the Responses API is settled by its last event", async () => {
    upstream.replyWith(stream(responsesEvents, { named: true, pieceBytes: 11 }));
    const parts = await client().responses.create({ model: MODEL, input: "Hi", stream: true });
    const types: string[] = [];
    for await (const part of parts) types.push(part.type);
    expect(types.at(-1)).toBe("response.completed");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 107, itpm: 20, otpm: 87 });
  });

  test("a reader that stops aborts the upstream and keeps what was streamed and the input", async () => {
    upstream.replyWith(stall(chatEvents(["12345678", "1234"], "none").slice(0, 3)));
    const parts = await client().chat.completions.create({ model: MODEL, messages, stream: true });
    let text = "";
    for await (const part of parts) {
      text += part.choices[0]?.delta.content ?? "";
      if (text.length === 12) break;
    }
    await upstream.untilHungUp(1);
    expect(await consumed()).toEqual({ rpm: 1, tpm: 13, itpm: 10, otpm: 3 });
  });

  test("an abort keeps what was streamed, also of a reader that never reads again", async () => {
    upstream.replyWith(stall(chatEvents(["12345678"], "none").slice(0, 2)));
    const abort = new AbortController();
    const fetch = limitFetch(limiter, { entityId: "team-a" });
    const response = await fetch(`${upstream.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: MODEL, messages, stream: true }),
      signal: abort.signal,
    });
    const reader = response.body?.getReader();
    await reader?.read();
    abort.abort();
    await upstream.untilHungUp(1);
    expect(await consumed()).toEqual({ rpm: 1, tpm: 12, itpm: 10, otpm: 2 });
  });

  test("an abort before a plain answer costs the most that the call can", async () => {
    const abort = new AbortController();
    upstream.replyWith(() => abort.abort());
    const call = client().chat.completions.create(
      { model: MODEL, messages, max_tokens: 4096 },
      { signal: abort.signal },
    );
    await expect(call).rejects.toThrow("aborted");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 4106, itpm: 10, otpm: 4096 });
  });

  test("an upstream that breaks off keeps what was streamed", async () => {
    upstream.replyWith(breakOff(chatEvents(["12345678"], "none").slice(0, 2)));
    await expect(textOf(client())).rejects.toThrow();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 12, itpm: 10, otpm: 2 });
  });

  test("a long stream is written in the middle, beyond its estimate", async () => {
    upstream.replyWith(stall(chatEvents(["x".repeat(4000)], "none").slice(0, 2)));
    const openai = client({ reserve: 10, flushEvery: 100 });
    const parts = await openai.chat.completions.create({ model: MODEL, messages, stream: true });
    const iterator = parts[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.next();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 1010, itpm: 10, otpm: 1000 });
    await iterator.return?.();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 1010, itpm: 10, otpm: 1000 });
  });
});

describe("failures and refusals of the OpenAI client", () => {
  for (const status of [429, 500, 503]) {
    test(`a ${status} of the upstream is refunded`, async () => {
      upstream.replyWith(json({ error: { message: "no", type: "x", code: null } }, status));
      await expect(
        client().chat.completions.create({ model: MODEL, messages }),
      ).rejects.toMatchObject({
        status,
      });
      expect(await consumed()).toEqual({ rpm: 0, tpm: 0, itpm: 0, otpm: 0 });
    });
  }

  test("a 400 is a request that used no tokens; another rule may refund it", async () => {
    upstream.replyWith(json({ error: { message: "bad", type: "x", code: null } }, 400));
    const bad = (openai: OpenAI) => openai.chat.completions.create({ model: MODEL, messages });
    await expect(bad(client())).rejects.toMatchObject({ status: 400 });
    expect(await consumed()).toEqual({ rpm: 1, tpm: 0, itpm: 0, otpm: 0 });
    await expect(bad(client({ refundWhen: () => true }))).rejects.toMatchObject({ status: 400 });
    expect(await consumed()).toEqual({ rpm: 1, tpm: 0, itpm: 0, otpm: 0 });
  });

  test("a connection that is lost after the request was sent keeps the estimate", async () => {
    upstream.replyWith((_, response) => void response.destroy());
    await expect(client().chat.completions.create({ model: MODEL, messages })).rejects.toThrow();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 510, itpm: 10, otpm: 500 });
  });

  test("an upstream that cannot be reached is refunded", async () => {
    const gone = await Upstream.start();
    await gone.stop();
    const fetch = limitFetch(limiter, { entityId: "team-a" });
    const body = JSON.stringify({ model: MODEL, messages });
    const url = `${gone.url}/v1/chat/completions`;
    await expect(fetch(url, { method: "POST", body })).rejects.toThrow("fetch failed");
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, itpm: 0, otpm: 0 });
  });

  test("retries of the SDK each acquire, and only the answered one stays counted", async () => {
    const busy = json({ error: { message: "busy", type: "x", code: null } }, 503, {
      "retry-after-ms": "1",
    });
    upstream.replyWith(busy, busy, json(chatAnswer));
    await client({}, 2).chat.completions.create({ model: MODEL, messages });
    expect(upstream.arrived).toHaveLength(3);
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21, itpm: 11, otpm: 10 });
  });

  test("a refusal is a 429 in the shape of OpenAI, and the SDK's own retry waits for tokens", async () => {
    await limiter.repository.limits.setEntity("slow", [
      Limit.custom({ name: "rpm", capacity: 1, refillAmount: 100, refillPeriodSeconds: 1 }),
    ]);
    upstream.replyWith(json(chatAnswer));
    const openai = client({ entityId: "slow" });
    await openai.chat.completions.create({ model: MODEL, messages });
    const refused = await openai.chat.completions
      .create({ model: MODEL, messages })
      .catch((e) => e);
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    expect(refused).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("retry-after-ms")).toBe("11");
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect(refused.message).toContain("rpm");
    expect(upstream.arrived).toHaveLength(1);
    const retried = client({ entityId: "slow" }, 1).chat.completions.create({
      model: MODEL,
      messages,
    });
    nowMs += 20;
    expect((await retried).usage?.total_tokens).toBe(29);
  });

  test("a refusal that no wait can help is not retried", async () => {
    upstream.replyWith(json(chatAnswer));
    await limiter.repository.limits.setEntity("tiny", ["rpm:5", "tpm:8"]);
    const call = client({ entityId: "tiny" }, 5).chat.completions.create({
      model: MODEL,
      messages,
    });
    const refused = await call.catch((e) => e);
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("retry-after")).toBeNull();
  });

  test("an estimate larger than a whole bucket is clipped to it", async () => {
    upstream.replyWith(json(chatAnswer));
    await limiter.repository.limits.setEntity("narrow", ["tpm:100"]);
    const openai = client({ entityId: "narrow", reserve: "max" });
    await openai.chat.completions.create({ model: MODEL, messages, max_tokens: 4096 });
    expect(await consumed(MODEL, "narrow")).toEqual({ tpm: 21 });
  });

  test("with onRefused: 'throw' a plain fetch throws RateLimitExceeded", async () => {
    await limiter.repository.limits.setEntity("one", ["rpm:1"]);
    upstream.replyWith(json(chatAnswer));
    const fetch = limitFetch(limiter, { entityId: "one", onRefused: "throw" });
    const call = () =>
      fetch(`${upstream.url}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ model: MODEL, messages }),
      });
    await (await call()).json();
    await expect(call()).rejects.toMatchObject({ code: "ZAEL_RATE_LIMIT_EXCEEDED" });
  });

  test("a Request object is limited like a URL", async () => {
    upstream.replyWith(stream(chatEvents(["Hi"]), { done: true }));
    const fetch = limitFetch(limiter, { entityId: "team-a" });
    const body = JSON.stringify({ model: MODEL, messages, stream: true });
    const request = new Request(`${upstream.url}/v1/chat/completions`, { method: "POST", body });
    const text = await (await fetch(request)).text();
    expect(text).toContain("[DONE]");
    expect(text).not.toContain('"usage":{');
    expect(await consumed()).toMatchObject({ rpm: 1, tpm: 21 });
  });
});
