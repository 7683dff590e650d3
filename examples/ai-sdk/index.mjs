/** Limits a model of the AI SDK. The model is a double, so that it runs without a key. */

import { generateText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { RateLimiter } from "zae-limiter";
import { rateLimitMiddleware } from "zae-limiter/llm";

const limiter = await RateLimiter.open("memory:");
await limiter.repository.limits.ensureSystem(["rpd:1000/day", "tpd:10000/day"]);

// In your program: const double = openai("gpt-4o-mini"), from @ai-sdk/openai.
const double = new MockLanguageModelV3({
  modelId: "gpt-4o-mini",
  doGenerate: async () => ({
    content: [{ type: "text", text: "Hello" }],
    finishReason: { unified: "stop", raw: "stop" },
    usage: { inputTokens: { total: 12 }, outputTokens: { total: 30 } },
    warnings: [],
  }),
});
const middleware = rateLimitMiddleware(limiter, { entityId: "team-a" });
const model = wrapLanguageModel({ model: double, middleware });

const { text } = await generateText({ model, prompt: "Say hello." });
const left = await limiter.available({ entityId: "team-a", resource: "gpt-4o-mini" });
console.log(`${text}: ${left.rpd} requests and ${left.tpd} tokens are left today`);
await limiter.close();
