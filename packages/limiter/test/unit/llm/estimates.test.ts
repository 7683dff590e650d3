import { DecayingHistogram } from "@zae-limiter/limiter/llm/decaying-histogram.ts";
import { readHttpCall } from "@zae-limiter/limiter/llm/http-call.ts";
import { COLD_START_TOKENS, OutputEstimate } from "@zae-limiter/limiter/llm/output-estimate.ts";
import { estimateInput } from "@zae-limiter/limiter/llm/prompt-size.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const input = (...parts: unknown[]) => estimateInput(parts, "gpt-4o", undefined);

describe("the estimate of input", () => {
  test("the estimate of input is UTF-8 bytes / 4 of what the model reads", () => {
    expect(input([{ role: "user", content: "x".repeat(400) }])).toBe(100);
    expect(input([{ role: "user", content: "日本語".repeat(100) }])).toBe(225);
    expect(input([{ role: "user", content: [{ type: "text", text: "x".repeat(401) }] }])).toBe(101);
    expect(input([])).toBe(0);
  });

  test("the estimate of input counts attachments by a fixed number and never by their bytes", () => {
    const data = "A".repeat(1_000_000);
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } };
    const source = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    expect(input([{ role: "user", content: [image, source] }])).toBe(2000);
    const text = {
      type: "document",
      source: { type: "text", media_type: "text/plain", data: "abcd" },
    };
    expect(input([{ role: "user", content: [text] }])).toBe(1);
    expect(input([{ role: "user", content: [{ type: "file", data: new Uint8Array(9) }] }])).toBe(
      1000,
    );
  });

  test("the estimate of input counts input that is token numbers already", () => {
    expect(input([1, 2, 3])).toBe(3);
    expect(input([[1, 2], [3]])).toBe(3);
  });

  test("the estimate of input asks the tokenizer for the model where there is one", () => {
    const seen: string[] = [];
    const tokenizer = (text: string, model: string) => {
      seen.push(`${model}: ${text}`);
      return 7.2;
    };
    expect(estimateInput([[{ content: "a" }, { content: "b" }]], "gpt-4o", tokenizer)).toBe(8);
    expect(seen).toEqual(["gpt-4o: ab"]);
  });
});

describe("the estimate of output", () => {
  test("the estimate of output begins with a stated value and never exceeds max_tokens", () => {
    const outputs = new OutputEstimate("learned");
    expect(outputs.of("m", undefined)).toBe(COLD_START_TOKENS);
    expect(outputs.of("m", 100)).toBe(100);
    for (let call = 0; call < 50; call += 1) outputs.learn("m", 80);
    expect(outputs.of("m", undefined)).toBeGreaterThanOrEqual(80);
    expect(outputs.of("m", undefined)).toBeLessThanOrEqual(96);
    expect(outputs.of("m", 40)).toBe(40);
    expect(outputs.of("another", undefined)).toBe(COLD_START_TOKENS);
  });

  test("the estimate of output follows a resource whose answers change", () => {
    const outputs = new OutputEstimate("learned");
    for (let call = 0; call < 1000; call += 1) outputs.learn("m", 100);
    for (let call = 0; call < 400; call += 1) outputs.learn("m", 2000);
    expect(outputs.of("m", undefined)).toBeGreaterThanOrEqual(2000);
  });

  test("the estimate of output is max_tokens with `max`, and the number that was given", () => {
    expect(new OutputEstimate("max").of("m", 4096)).toBe(4096);
    expect(new OutputEstimate("max").of("m", undefined)).toBe(COLD_START_TOKENS);
    expect(new OutputEstimate(300).of("m", undefined)).toBe(300);
    expect(new OutputEstimate(300).of("m", 20)).toBe(20);
  });

  test("a quantile is at least the true one and at most a fifth above it", () => {
    const values = fc.array(fc.integer({ min: 1, max: 1_000_000 }), {
      minLength: 1,
      maxLength: 20,
    });
    fc.assert(
      fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (list, share) => {
        const histogram = new DecayingHistogram();
        // All at once: so few numbers hardly lose weight.
        for (const value of list) histogram.add(value);
        const sorted = [...list].sort((left, right) => left - right);
        const found = histogram.quantile(share);
        const near = sorted.some((value) => value <= found && found <= value * 1.19 + 1);
        return near && found <= (sorted.at(-1) as number) * 1.19 + 1;
      }),
    );
  });

  test("an old histogram does not overflow", () => {
    const histogram = new DecayingHistogram();
    for (let call = 0; call < 50_000; call += 1) histogram.add(64);
    expect(histogram.quantile(0.5)).toBe(64);
    expect(histogram.quantile(1)).toBe(64);
  });
});

describe("a request", () => {
  const read = (url: string, body: object | string, method = "POST") =>
    readHttpCall({
      url,
      method,
      headersOf: () => new Headers(),
      body: typeof body === "string" ? body : JSON.stringify(body),
      signal: undefined,
    });

  test("a request of a chat names its model, its prompt and the most it can answer", () => {
    const messages = [{ role: "user", content: "Hi" }];
    const { facts } = read("https://x.test/v1/chat/completions?a=1", {
      model: "gpt-4o",
      messages,
      max_completion_tokens: 50,
      n: 3,
      tools: [{ type: "function", function: { name: "f" } }],
    });
    expect(facts.call).toMatchObject({ api: "chat", model: "gpt-4o", stream: false });
    expect(facts.prompt).toEqual([messages, '[{"type":"function","function":{"name":"f"}}]']);
    expect(facts.outputMax).toBe(150);
    expect(facts.hasOutput).toBe(true);
  });

  test("a request for a stream of OpenAI asks for usage and says that it has to be hidden", () => {
    const url = "https://x.test/v1/chat/completions";
    const asked = read(url, {
      model: "m",
      stream: true,
      stream_options: { include_obfuscation: false },
    });
    expect(JSON.parse(asked.body as string).stream_options).toEqual({
      include_obfuscation: false,
      include_usage: true,
    });
    expect(asked.hidesUsage).toBe(true);
    const own = read(url, { model: "m", stream: true, stream_options: { include_usage: true } });
    expect(own.hidesUsage).toBe(false);
    expect(read(url, { model: "m" }).hidesUsage).toBe(false);
    const messages = read("https://x.test/v1/messages", { model: "m", stream: true });
    expect(messages.hidesUsage).toBe(false);
  });

  test("a request of an unknown path, or without JSON, counts as a request only", () => {
    const { facts, format } = read("/v1/images", { model: "dall-e-3", prompt: "a cat" });
    expect(format).toBeUndefined();
    expect(facts).toMatchObject({ prompt: undefined, hasOutput: false, outputMax: undefined });
    expect(facts.call).toMatchObject({ api: "other", model: "dall-e-3" });
    expect(read("/v1/chat/completions", "no json").facts.call.api).toBe("other");
    expect(read("/v1/chat/completions", "{broken").facts.call.api).toBe("other");
    const azure = read("https://x.test/openai/deployments/mine/chat/completions?v=1", {});
    expect(azure.facts.call.model).toBe("mine");
  });
});
