/** `rateLimitMiddleware` with major 5 of the AI SDK, whose models and usage have another shape. */

import { RateLimitExceeded, RateLimiter } from "@zae-limiter/limiter/index.ts";
import { rateLimitMiddleware } from "@zae-limiter/limiter/llm/index.ts";
import { generateText, streamText, wrapLanguageModel } from "ai-5";
import { MockLanguageModelV2, simulateReadableStream } from "ai-5/test";
import { afterEach, beforeEach, expect, test } from "vitest";

const MODEL = "gpt-4o";
const usage = { inputTokens: 19, outputTokens: 10, totalTokens: 29, cachedInputTokens: 8 };
const finishReason = "stop" as const;
const nowMs = 1_700_000_000_000;
let limiter: RateLimiter;

beforeEach(async () => {
  limiter = await RateLimiter.open("memory:", { clock: () => nowMs });
  await limiter.repository.limits.setSystem(["rpm:2", "tpm:100000", "otpm:100000"]);
});
afterEach(() => limiter.close());

function wrapped(double: Partial<MockLanguageModelV2>, onRefused?: "throw") {
  const model = new MockLanguageModelV2({ modelId: MODEL, provider: "openai.chat", ...double });
  const more = onRefused === undefined ? {} : { onRefused };
  const limits = rateLimitMiddleware(limiter, { entityId: "team-a", ...more });
  // Major 5 has no `specificationVersion` in its type, and does not read it.
  const middleware = limits as unknown as Parameters<typeof wrapLanguageModel>[0]["middleware"];
  return wrapLanguageModel({ model, middleware });
}

async function consumed() {
  const statuses = await limiter.status({ entityId: "team-a", resource: MODEL });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

const content = [{ type: "text" as const, text: "Hello there" }];
const doGenerate = async () => ({ content, finishReason, usage, warnings: [] });

test("a text generated with AI SDK 5 is settled by its usage", async () => {
  const { text } = await generateText({ model: wrapped({ doGenerate }), prompt: "x".repeat(40) });
  expect(text).toBe("Hello there");
  expect(await consumed()).toEqual({ rpm: 1, tpm: 21, otpm: 10 });
});

test("a stream of AI SDK 5 is settled by its last part", async () => {
  const stream = simulateReadableStream({
    chunks: [
      { type: "stream-start" as const, warnings: [] },
      { type: "text-start" as const, id: "1" },
      { type: "text-delta" as const, id: "1", delta: "Hi you" },
      { type: "text-end" as const, id: "1" },
      { type: "finish" as const, finishReason, usage },
    ],
    chunkDelayInMs: null,
  });
  const result = streamText({
    model: wrapped({ doStream: async () => ({ stream }) }),
    prompt: "x",
  });
  expect(await result.text).toBe("Hi you");
  expect(await consumed()).toEqual({ rpm: 1, tpm: 21, otpm: 10 });
});

test("a refusal reaches the caller of AI SDK 5 as it is", async () => {
  const model = wrapped({ doGenerate }, "throw");
  for (let call = 0; call < 2; call += 1) await generateText({ model, prompt: "x" });
  const refused = generateText({ model, prompt: "x" });
  await expect(refused).rejects.toBeInstanceOf(RateLimitExceeded);
  expect(await consumed()).toMatchObject({ rpm: 2 });
});
