/**
 * `rateLimitMiddleware` with the real AI SDK. The model is a double: a provider's package is HTTP.
 */

import { Limit, RateLimitExceeded, RateLimiter, TOTAL } from "@zae-limiter/limiter/index.ts";
import { type LlmOptions, rateLimitMiddleware } from "@zae-limiter/limiter/llm/index.ts";
import { chatUsage } from "@zae-limiter/test-support/llm/shapes.ts";
import { generateText, RetryError, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const MODEL = "gpt-4o";
const usage = {
  inputTokens: { total: 19, noCache: 11, cacheRead: 8, cacheWrite: undefined },
  outputTokens: { total: 10, text: 6, reasoning: 4 },
};
const finishReason = { unified: "stop" as const, raw: "stop" };

let limiter: RateLimiter;
let nowMs = 1_700_000_000_000;
/** Wakes of sleepers: the timer of the limiter is in the hands of the test. */
let sleepers: { ms: number; wake: () => void }[] = [];
let timerMs = 0;

const timer = {
  nowMs: () => timerMs,
  sleep: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      if (signal?.aborted === true) return resolve();
      signal?.addEventListener("abort", () => resolve(), { once: true });
      sleepers.push({ ms, wake: resolve });
    }),
};

beforeEach(async () => {
  sleepers = [];
  timerMs = 0;
  limiter = await RateLimiter.open("memory:", { clock: () => nowMs, timer });
  await limiter.repository.limits.setSystem(["rpm:100", "tpm:100000", "otpm:100000"]);
});
afterEach(() => limiter.close());

async function consumed(entityId = "team-a") {
  const statuses = await limiter.status({ entityId, resource: MODEL });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

type Parts = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"];

function parts(texts: readonly string[], withUsage = true) {
  return [
    { type: "stream-start" as const, warnings: [] },
    { type: "text-start" as const, id: "1" },
    ...texts.map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
    ...(withUsage
      ? [
          { type: "text-end" as const, id: "1" },
          { type: "finish" as const, finishReason, usage },
        ]
      : []),
  ];
}

function wrapped(double: Partial<MockLanguageModelV3>, options: Partial<LlmOptions> = {}) {
  const model = new MockLanguageModelV3({ modelId: MODEL, provider: "openai.chat", ...double });
  const middleware = rateLimitMiddleware(limiter, { entityId: "team-a", ...options });
  return wrapLanguageModel({ model, middleware });
}

const generated = {
  content: [{ type: "text" as const, text: "Hello there" }],
  finishReason,
  usage,
  warnings: [],
};
const streaming = (stream: Parts) => ({ doStream: async () => ({ stream }) });
const chunks = (texts: readonly string[], withUsage = true) =>
  simulateReadableStream({ chunks: parts(texts, withUsage), chunkDelayInMs: null });

describe("the middleware of the AI SDK", () => {
  test("a generated text is settled by its usage", async () => {
    const model = wrapped({ doGenerate: async () => generated });
    const { text } = await generateText({ model, prompt: "x".repeat(40) });
    expect(text).toBe("Hello there");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21, otpm: 10 });
  });

  test("a total counts over all models, and is settled like the model", async () => {
    const { limits } = limiter.repository;
    await limits.setEntity("team-a", ["rpm:2/day", "tpm:1000/day"], { resource: TOTAL });
    const ask = (modelId: string) =>
      generateText({
        model: wrapped({ modelId, doGenerate: async () => generated }),
        prompt: "x".repeat(40),
        maxRetries: 0,
      });
    await ask("gpt-4o");
    await ask("gpt-5-mini");
    await expect(ask("llama3.1:8b")).rejects.toThrow("team-a/@all: [rpm] over all resources");
    const left = await limiter.available({ entityId: "team-a", resource: TOTAL });
    expect(left).toEqual({ rpm: 0, tpm: 1000 - 2 * 21 });
  });

  test("a budget lowers the output that the model is asked for", async () => {
    const prices = [{ model: MODEL, price: { input: "2", output: "10" } }];
    await limiter.repository.limits.setEntity("team-a", ["usd:$0.01/month UTC"]);
    const asked: unknown[] = [];
    const model = wrapped(
      {
        doGenerate: async ({ maxOutputTokens }) => {
          asked.push(maxOutputTokens);
          return generated;
        },
        doStream: async ({ maxOutputTokens }) => {
          asked.push(maxOutputTokens);
          return { stream: chunks(["Hi"]) };
        },
      },
      { prices, capOutput: true },
    );
    const ask = { model, prompt: "x".repeat(40), maxOutputTokens: 5000 };
    await generateText(ask);
    await streamText(ask).text;
    // 11 tokens of input, 8 from the cache and 10 of output cost 138; the prompt, about 20.
    expect(asked).toEqual([998, 984]);
  });

  test("a stream is settled by its last part", async () => {
    const result = streamText({ model: wrapped(streaming(chunks(["Hi", " you"]))), prompt: "Hi" });
    expect(await result.text).toBe("Hi you");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21, otpm: 10 });
  });

  test("a stream without usage is counted by what was streamed", async () => {
    const model = wrapped(streaming(chunks(["12345678", "1234"], false)));
    const result = streamText({ model, prompt: "x".repeat(40), onError: () => {} });
    for await (const _ of result.textStream);
    expect(await consumed()).toEqual({ rpm: 1, tpm: 13, otpm: 3 });
  });

  test("a reader that stops reading is counted by what it saw after the idle deadline", async () => {
    const model = wrapped(streaming(chunks(["12345678", "x".repeat(400)])), { idleSeconds: 7 });
    const { stream } = await model.doStream({
      prompt: [{ role: "user", content: [{ type: "text", text: "x".repeat(40) }] }],
    });
    const reader = stream.getReader();
    for (let part = 0; part < 3; part += 1) await reader.read();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 510, otpm: 500 });
    expect(sleepers.map(({ ms }) => ms)).toEqual([7000]);
    timerMs += 7000;
    sleepers[0]?.wake();
    await expect.poll(() => consumed()).toEqual({ rpm: 1, tpm: 12, otpm: 2 });
    // A reader that comes back goes on being counted.
    while (!(await reader.read()).done);
    expect(await consumed()).toEqual({ rpm: 1, tpm: 21, otpm: 10 });
  });

  test("an aborted stream keeps its input and what was streamed", async () => {
    const abort = new AbortController();
    let cancelled = false;
    const stream: Parts = new ReadableStream({
      start: (controller) => {
        for (const part of parts(["12345678"], false)) controller.enqueue(part);
        abort.signal.addEventListener("abort", () => controller.error(abort.signal.reason));
      },
      cancel: () => {
        cancelled = true;
      },
    });
    const result = streamText({
      model: wrapped(streaming(stream)),
      prompt: "x".repeat(40),
      abortSignal: abort.signal,
      onError: () => {},
    });
    for await (const text of result.textStream) if (text === "12345678") abort.abort();
    await expect.poll(() => consumed()).toEqual({ rpm: 1, tpm: 12, otpm: 2 });
    expect(cancelled).toBe(false);
  });

  test("a model that fails is refunded", async () => {
    const doGenerate = async () => {
      throw Object.assign(new Error("down"), { statusCode: 503 });
    };
    await expect(
      generateText({ model: wrapped({ doGenerate }), prompt: "Hi", maxRetries: 0 }),
    ).rejects.toThrow("down");
    expect(await consumed()).toEqual({ rpm: 0, tpm: 0, otpm: 0 });
  });

  test("an aborted generation costs the most that the call can", async () => {
    const abort = new AbortController();
    const doGenerate = async () => {
      abort.abort();
      throw abort.signal.reason;
    };
    const model = wrapped({ doGenerate });
    const prompt = "x".repeat(40);
    const asked = { model, prompt, abortSignal: abort.signal, maxOutputTokens: 3000 };
    await expect(generateText(asked)).rejects.toThrow("aborted");
    expect(await consumed()).toEqual({ rpm: 1, tpm: 3010, otpm: 3000 });
  });

  test.each([
    ["states usage costs that usage", { responseBody: JSON.stringify({ usage: chatUsage }) }, 21],
    ["proves nothing keeps the estimate", {}, 510],
    ["comes before the call was sent is refunded", { name: "AI_LoadAPIKeyError" }, 0],
  ])("an error of a model that %s", async (_, fields, tpm) => {
    const doGenerate = async () => {
      throw Object.assign(new Error("failed"), fields);
    };
    const prompt = "x".repeat(40);
    await expect(
      generateText({ model: wrapped({ doGenerate }), prompt, maxRetries: 0 }),
    ).rejects.toThrow("failed");
    expect(await consumed()).toMatchObject({ tpm });
  });

  test("a stream with hidden reasoning that is cut costs the rest of its estimate", async () => {
    const { stream } = await wrapped(streaming(chunks(["Hi"], false))).doStream({
      prompt: [{ role: "user", content: [{ type: "text", text: "x".repeat(40) }] }],
      providerOptions: { openai: { reasoningEffort: "high" } },
    });
    const reader = stream.getReader();
    for (let part = 0; part < 3; part += 1) await reader.read();
    await reader.cancel();
    expect(await consumed()).toEqual({ rpm: 1, tpm: 510, otpm: 500 });
  });

  test("a refusal is RateLimitExceeded, and the SDK's own retry waits for tokens", async () => {
    await limiter.repository.limits.setEntity("slow", [
      Limit.custom({ name: "rpm", capacity: 1, refillAmount: 100, refillPeriodSeconds: 1 }),
    ]);
    let calls = 0;
    const doGenerate = async () => {
      calls += 1;
      return generated;
    };
    const model = wrapped({ doGenerate }, { entityId: "slow" });
    await generateText({ model, prompt: "Hi" });
    const refused = generateText({ model, prompt: "Hi", maxRetries: 0 });
    await expect(refused).rejects.toBeInstanceOf(RateLimitExceeded);
    const failed = await generateText({ model, prompt: "Hi", maxRetries: 1 }).catch((e) => e);
    expect(failed).toBeInstanceOf(RetryError);
    expect(failed.lastError).toBeInstanceOf(RateLimitExceeded);
    const retried = generateText({ model, prompt: "Hi", maxRetries: 1 });
    nowMs += 20;
    expect((await retried).text).toBe("Hello there");
    expect(calls).toBe(2);
  });

  test("with onRefused: 'throw' a refusal is not retried", async () => {
    await limiter.repository.limits.setEntity("one", ["rpm:1"]);
    const options = { entityId: "one", onRefused: "throw" } as const;
    const model = wrapped({ doGenerate: async () => generated }, options);
    await generateText({ model, prompt: "Hi" });
    const refused = generateText({ model, prompt: "Hi", maxRetries: 5 });
    await expect(refused).rejects.toBeInstanceOf(RateLimitExceeded);
  });
});
