import { aiSdkUsage } from "@zae-limiter/limiter/llm/ai-sdk-usage.ts";
import {
  anyFormat,
  deploymentOf,
  type Format,
  formatOf,
} from "@zae-limiter/limiter/llm/formats/format.ts";
import type { Fields } from "@zae-limiter/limiter/llm/usage.ts";
import {
  chatAnswer,
  chatEvents,
  chatToolEvents,
  chatUsage,
  embeddingsAnswer,
  messagesAnswer,
  messagesEvents,
  responsesAnswer,
  responsesEvents,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { describe, expect, test } from "vitest";

function format(path: string): Format {
  const found = formatOf("POST", path);
  if (found === undefined) throw new Error(`${path} is not known`);
  return found;
}

/** Returns the news of all events of a stream; later usage replaces earlier usage. */
function read(path: string, events: readonly object[]) {
  const news = events.map((event) => format(path).readEvent(event as Fields));
  const usage = Object.assign(
    {},
    ...news.map(({ usage: known }) =>
      Object.fromEntries(Object.entries(known ?? {}).filter(([, value]) => value !== undefined)),
    ),
  );
  return {
    usage,
    text: news.map(({ text }) => text ?? "").join(""),
    hidden: news.filter((each) => each.isUsageOnly),
  };
}

describe("the formats of providers", () => {
  test("a path is known by its end, and only for POST", () => {
    expect(formatOf("post", "/v1/chat/completions/")?.api).toBe("chat");
    expect(formatOf("POST", "/openai/deployments/my-gpt/chat/completions")?.api).toBe("chat");
    expect(formatOf("POST", "/v1/completions")?.api).toBe("completions");
    expect(formatOf("POST", "/v1/responses")?.api).toBe("responses");
    expect(formatOf("POST", "/v1/embeddings")?.api).toBe("embeddings");
    expect(formatOf("POST", "/v1/messages")?.api).toBe("messages");
    expect(formatOf("GET", "/v1/chat/completions")).toBeUndefined();
    expect(formatOf("POST", "/v1/messages/count_tokens")).toBeUndefined();
    expect(formatOf("POST", "/v1/images/generations")).toBeUndefined();
    expect(deploymentOf("/openai/deployments/my%20gpt/chat/completions")).toBe("my gpt");
    expect(deploymentOf("/v1/chat/completions")).toBeUndefined();
  });

  for (const place of ["own chunk", "last choice", "every chunk", "x_groq"] as const) {
    test(`usage of a chat stream is found in ${place}`, () => {
      const { usage, text, hidden } = read(
        "/chat/completions",
        chatEvents(["Hello", " you"], place),
      );
      const outputParts = { reasoning: 4 };
      expect(usage).toMatchObject({ input: 11, cached: 8, output: 10, outputParts });
      expect(text).toBe("Hello you");
      expect(hidden).toHaveLength(place === "own chunk" ? 1 : 0);
    });
  }

  test("a chat stream without usage still tells its text and its tool calls", () => {
    expect(read("/chat/completions", chatEvents(["a", "b"], "none"))).toMatchObject({
      usage: {},
      text: "ab",
    });
    expect(read("/chat/completions", chatToolEvents).text).toBe('weather{"city":"Köln"}');
  });

  test("a plain answer tells its usage without cached input", () => {
    expect(format("/chat/completions").readUsage(chatAnswer)).toEqual({
      input: 11,
      cached: 8,
      output: 10,
      outputParts: { reasoning: 4 },
    });
    expect(format("/chat/completions").readUsage({ choices: [] })).toBeUndefined();
    expect(format("/chat/completions").readUsage({ usage: null })).toBeUndefined();
  });

  test("reasoning that a provider counts apart is output", () => {
    const usage = { ...chatUsage, total_tokens: 19 + 10 + 4 };
    expect(format("/chat/completions").readUsage({ usage })?.output).toBe(14);
  });

  test("the Responses API tells usage in its last event", () => {
    const { usage, text } = read("/responses", responsesEvents);
    expect(usage).toEqual({ input: 20, cached: 16, output: 87, outputParts: { reasoning: 64 } });
    expect(text).toBe("Hi there");
    expect(format("/responses").readUsage(responsesAnswer)).toEqual(usage);
  });

  test("embeddings have input only", () => {
    expect(format("/embeddings").readUsage(embeddingsAnswer)).toEqual({
      input: 8,
      cached: 0,
      output: 0,
    });
  });

  test("Anthropic tells input first and output last; writing a cache is input", () => {
    const { usage, text } = read("/messages", messagesEvents(["Hello", " you"]));
    const inputParts = { input: 25, cachedInput: 100, cacheWrite: 5, cacheWrite1h: 0 };
    expect(usage).toEqual({ input: 30, cached: 100, output: 15, inputParts });
    expect(text).toBe("Hello you");
    expect(read("/messages", messagesEvents(["Hello"], { ends: false })).usage).toEqual({
      input: 30,
      cached: 100,
      inputParts,
    });
    expect(format("/messages").readUsage(messagesAnswer)).toEqual(usage);
  });

  test("the tool input and the thinking of Anthropic are output", () => {
    const events = [
      {
        type: "content_block_start",
        content_block: { type: "tool_use", id: "t", name: "weather" },
      },
      { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: "{}" } },
      { type: "content_block_delta", delta: { type: "thinking_delta", thinking: "hm" } },
      { type: "content_block_delta", delta: { type: "signature_delta", signature: "xyz" } },
    ];
    expect(read("/messages", events).text).toBe("weather{}hm");
  });

  test.each([
    ["negative", { prompt_tokens: 9, completion_tokens: -1 }],
    ["a fraction", { prompt_tokens: 9.5, completion_tokens: 1 }],
    ["a text", { prompt_tokens: "19", completion_tokens: 1 }],
    ["above 10^12", { prompt_tokens: 9, completion_tokens: 1e15 }],
    ["above 10^12 together", { prompt_tokens: 1e12, completion_tokens: 1 }],
    ["not a number", { prompt_tokens: Number.NaN, completion_tokens: 1 }],
    ["a negative cache", { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: -1 } }],
  ])("usage with a count that is %s is absurd as a whole", (_, usage) => {
    expect(format("/chat/completions").readUsage({ usage })).toEqual({ isAbsurd: true });
  });

  test("usage without some of its counts is known in part", () => {
    const usage = { prompt_tokens: 9, completion_tokens: null };
    expect(format("/chat/completions").readUsage({ usage })).toEqual({ input: 9, cached: 0 });
    expect(format("/chat/completions").readUsage({ usage: {} })).toEqual({});
  });

  test("more cached input than input is all of the input, and never less than none", () => {
    const cached = (prompt: number, stored: number) =>
      format("/chat/completions").readUsage({
        usage: { prompt_tokens: prompt, prompt_tokens_details: { cached_tokens: stored } },
      });
    expect(cached(5, 9)).toMatchObject({ input: 0, cached: 5 });
    expect(cached(5, 5)).toMatchObject({ input: 0, cached: 5 });
    expect(cached(5, 4)).toMatchObject({ input: 1, cached: 4 });
    const stored = { input_tokens: 5, input_tokens_details: { cached_tokens: 9 } };
    expect(format("/responses").readUsage({ usage: stored })).toMatchObject({
      input: 0,
      cached: 5,
    });
    const objects = { inputTokens: { total: 5, cacheRead: 9 }, outputTokens: { total: 1 } };
    expect(aiSdkUsage(objects, "openai")).toMatchObject({ input: 0, cached: 5 });
  });

  test("any format finds usage in the shape of either provider, and no text", () => {
    const usage = { input: 11, cached: 8, output: 10, outputParts: { reasoning: 4 } };
    expect(anyFormat.readUsage(chatAnswer)).toEqual(usage);
    expect(anyFormat.readUsage(responsesAnswer)).toMatchObject({ input: 20, output: 87 });
    expect(anyFormat.readUsage(messagesAnswer)).toMatchObject({ input: 30, cached: 100 });
    expect(anyFormat.readUsage({ id: "x" })).toBeUndefined();
    expect(anyFormat.readUsage({ usage: { input_tokens: -1 } })).toEqual({ isAbsurd: true });
    const news = (event: object) => anyFormat.readEvent(event as Fields);
    expect(news({ usage: chatUsage, choices: [] })).toEqual({ usage, isLast: true });
    expect(news({ response: responsesAnswer }).usage).toMatchObject({ output: 87 });
    expect(news({ message: messagesAnswer }).usage).toMatchObject({ input: 30 });
    expect(news({ type: "ping" })).toEqual({ usage: undefined, isLast: false });
  });

  test("usage of the AI SDK is read as numbers and as objects", () => {
    const v5 = { inputTokens: 19, outputTokens: 10, cachedInputTokens: 8 };
    expect(aiSdkUsage(v5, "openai.chat")).toEqual({ input: 11, cached: 8, output: 10 });
    expect(aiSdkUsage(v5, "anthropic.messages")).toEqual({ input: 19, cached: 8, output: 10 });
    const inputParts = { input: 6, cachedInput: 8, cacheWrite: 5, cacheWrite1h: 0 };
    const v6 = {
      inputTokens: { total: 19, noCache: 6, cacheRead: 8, cacheWrite: 5 },
      outputTokens: { total: 10, text: 6, reasoning: 4 },
    };
    expect(aiSdkUsage(v6, "anthropic")).toEqual({
      input: 11,
      cached: 8,
      output: 10,
      inputParts,
      outputParts: { reasoning: 4 },
    });
    const part = { inputTokens: { noCache: 6, cacheRead: 8, cacheWrite: 5 }, outputTokens: {} };
    expect(aiSdkUsage(part, "x")).toEqual({ input: 11, cached: 8, inputParts });
    expect(aiSdkUsage(undefined, "x")).toEqual({});
  });
});
