/** `limitFetch` and `anthropicMiddleware` with the real client of Anthropic. */

import Anthropic from "@anthropic-ai/sdk";
import { RateLimitExceeded, RateLimiter } from "@zae-limiter/limiter/index.ts";
import {
  anthropicMiddleware,
  type LlmOptions,
  limitFetch,
} from "@zae-limiter/limiter/llm/index.ts";
import { messagesAnswer, messagesEvents } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stall, stream, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

const MODEL = "claude-test";
const messages = [{ role: "user" as const, content: "x".repeat(40) }];
const call = { model: MODEL, max_tokens: 100, messages };

let upstream: Upstream;
let limiter: RateLimiter;

beforeAll(async () => {
  upstream = await Upstream.start();
});
afterAll(() => upstream.stop());
beforeEach(async () => {
  limiter = await RateLimiter.open("memory:", { clock: () => 1_700_000_000_000 });
  await limiter.repository.limits.setSystem(["rpm:100", "itpm:10000", "otpm:10000"]);
});
afterEach(() => limiter.close());

async function consumed(entityId = "team-a") {
  const statuses = await limiter.status({ entityId, resource: MODEL });
  return Object.fromEntries(
    statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
  );
}

const WAYS = {
  limitFetch: (options: LlmOptions) => ({ fetch: limitFetch(limiter, options) }),
  anthropicMiddleware: (options: LlmOptions) => ({
    middleware: [anthropicMiddleware(limiter, options)],
  }),
};

describe.each(Object.entries(WAYS))("%s with the Anthropic client", (_, way) => {
  function client(options: Partial<LlmOptions> = {}, maxRetries = 0): Anthropic {
    const baseURL = upstream.url;
    return new Anthropic({
      apiKey: "sk-test",
      baseURL,
      maxRetries,
      ...way({ entityId: "team-a", ...options }),
    });
  }

  test("a message is settled by its usage; writing a cache counts, reading it does not", async () => {
    upstream.replyWith(json(messagesAnswer));
    const answer = await client().messages.create(call);
    expect(answer.content).toEqual([{ type: "text", text: "Hello there" }]);
    expect(await consumed()).toEqual({ rpm: 1, itpm: 30, otpm: 15 });
  });

  for (const pieceBytes of [3, 100_000]) {
    test(`a stream in pieces of ${pieceBytes} bytes is settled by its last events`, async () => {
      upstream.replyWith(stream(messagesEvents(["Grüße ", "世界"]), { named: true, pieceBytes }));
      const message = await client().messages.stream(call).finalMessage();
      expect(message.content).toMatchObject([{ type: "text", text: "Grüße 世界" }]);
      expect(message.usage.output_tokens).toBe(15);
      expect(await consumed()).toEqual({ rpm: 1, itpm: 30, otpm: 15 });
    });
  }

  test("a budget lowers the output that the model is asked for", async () => {
    upstream.replyWith(json(messagesAnswer));
    await limiter.repository.limits.setEntity("team-a", ["usd:$0.00302/month UTC"]);
    const prices = [{ model: MODEL, price: { input: "2", output: "10" } }];
    const before = upstream.arrived.length;
    const options = { prices, capOutput: true };
    await client(options).messages.create({ ...call, max_tokens: 5000 });
    expect(upstream.arrived[before]?.body).toMatchObject({ max_tokens: 300, messages });
  });

  test("a reader that stops aborts the upstream and keeps the exact input", async () => {
    const events = messagesEvents(["12345678", "1234"], { ends: false });
    upstream.replyWith(stall(events, { named: true }));
    const parts = await client().messages.create({ ...call, stream: true });
    for await (const part of parts) if (part.type === "content_block_stop") break;
    await upstream.untilHungUp(1);
    expect(await consumed()).toEqual({ rpm: 1, itpm: 30, otpm: 3 });
  });

  test("input that turns out to be cached is refunded in the middle of a stream", async () => {
    const events = messagesEvents(["Hi"], { ends: false });
    upstream.replyWith(stall(events, { named: true }));
    const long = [{ role: "user" as const, content: "x".repeat(8000) }];
    const parts = await client({ flushEvery: 500 }).messages.create({
      ...call,
      messages: long,
      stream: true,
    });
    const iterator = parts[Symbol.asyncIterator]();
    await iterator.next();
    expect(await consumed()).toEqual({ rpm: 1, itpm: 30, otpm: 100 });
    await iterator.return?.();
    await upstream.untilHungUp(1);
  });

  test("an overloaded upstream is refunded, and a retry acquires again", async () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    upstream.replyWith(json(error, 529, { "retry-after-ms": "1" }), json(messagesAnswer));
    await client({}, 1).messages.create(call);
    expect(upstream.arrived).toHaveLength(2);
    expect(await consumed()).toEqual({ rpm: 1, itpm: 30, otpm: 15 });
  });

  test("a refusal is a 429 in the shape of Anthropic and sends nothing", async () => {
    await limiter.repository.limits.setEntity("team-a", ["rpm:1"]);
    upstream.replyWith(json(messagesAnswer));
    await client().messages.create(call);
    const refused = await client()
      .messages.create(call)
      .catch((error) => error);
    expect(refused).toBeInstanceOf(Anthropic.RateLimitError);
    expect(refused.error).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
    expect(refused.headers.get("retry-after")).toBe("61");
    expect(upstream.arrived).toHaveLength(1);
  });
});

test("an error that anthropicMiddleware throws reaches the caller as it is, without retries", async () => {
  await limiter.repository.limits.setEntity("team-a", ["rpm:1"]);
  upstream.replyWith(json(messagesAnswer));
  const middleware = [anthropicMiddleware(limiter, { entityId: "team-a", onRefused: "throw" })];
  const anthropic = new Anthropic({
    apiKey: "k",
    baseURL: upstream.url,
    middleware,
    maxRetries: 5,
  });
  await anthropic.messages.create(call);
  await expect(anthropic.messages.create(call)).rejects.toBeInstanceOf(RateLimitExceeded);
  expect(upstream.arrived).toHaveLength(1);
});
