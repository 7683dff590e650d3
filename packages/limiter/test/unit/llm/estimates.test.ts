import { DecayingHistogram } from "@zae-limiter/limiter/core/decaying-histogram.ts";
import { readHttpCall } from "@zae-limiter/limiter/llm/call.ts";
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
  const A = { entityId: "a", resource: "m" };
  const B = { entityId: "b", resource: "m" };
  const times = (count: number, work: () => void) => {
    for (let call = 0; call < count; call += 1) work();
  };

  test("the estimate of output begins with a stated value and never exceeds max_tokens", () => {
    const outputs = new OutputEstimate("learned");
    expect(outputs.of(A, undefined)).toBe(COLD_START_TOKENS);
    expect(outputs.of(A, 100)).toBe(100);
    times(50, () => outputs.learn(A, 80));
    expect(outputs.of(A, undefined)).toBeGreaterThanOrEqual(80);
    expect(outputs.of(A, undefined)).toBeLessThanOrEqual(96);
    expect(outputs.of(A, 40)).toBe(40);
    expect(outputs.of({ ...A, resource: "another" }, undefined)).toBe(COLD_START_TOKENS);
  });

  test("the estimate of output follows an entity whose answers change", () => {
    const outputs = new OutputEstimate("learned");
    times(1000, () => outputs.learn(A, 100));
    times(400, () => outputs.learn(A, 2000));
    expect(outputs.of(A, undefined)).toBeGreaterThanOrEqual(2000);
  });

  test("calls of one entity are the first estimate of another, and never move its own", () => {
    const outputs = new OutputEstimate("learned");
    times(30, () => outputs.learn(B, 16_384));
    expect(outputs.of(A, undefined)).toBe(16_384);
    times(5, () => outputs.learn(A, 64));
    expect(outputs.of(A, undefined)).toBe(64);
    times(1000, () => outputs.learn(B, 16_384));
    expect(outputs.of(A, undefined)).toBe(64);
    expect(outputs.of(B, undefined)).toBe(16_384);
  });

  test("the estimate of output remembers a bounded number of entities and resources", () => {
    const outputs = new OutputEstimate("learned");
    times(5, () => outputs.learn(A, 64));
    for (let at = 0; at < 6000; at += 1) outputs.learn({ entityId: `${at}`, resource: `${at}` }, 9);
    expect(outputs.of(A, undefined)).toBe(COLD_START_TOKENS);
  });

  test("the estimate of output is max_tokens with `max`, and the number that was given", () => {
    expect(new OutputEstimate("max").of(A, 4096)).toBe(4096);
    expect(new OutputEstimate("max").of(A, undefined)).toBe(COLD_START_TOKENS);
    expect(new OutputEstimate(300).of(A, undefined)).toBe(300);
    expect(new OutputEstimate(300).of(A, 20)).toBe(20);
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
      headers: new Headers(),
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
  });

  test("the deployment in a path of Azure goes before the model of the body", () => {
    const url = "https://x.test/openai/deployments/mine/chat/completions?v=1";
    expect(read(url, {}).facts.call.model).toBe("mine");
    expect(read(url, { model: "invented" }).facts.call.model).toBe("mine");
  });

  test("the larger of two bounds of the output counts, because servers read different ones", () => {
    const both = { max_completion_tokens: 1, max_tokens: 5000 };
    expect(read("/v1/chat/completions", both).facts.outputMax).toBe(5000);
  });

  test("a bound of the output that no model has is none, and choices cannot exceed 10^12", () => {
    const max = (fields: object) => read("/v1/chat/completions", fields).facts.outputMax;
    expect(max({ max_tokens: 1e15 })).toBeUndefined();
    expect(max({ max_tokens: -1 })).toBeUndefined();
    expect(max({ max_tokens: 1.5 })).toBeUndefined();
    expect(max({ max_tokens: 1e12, n: 1e12 })).toBe(1e12);
    expect(max({ max_tokens: 7, n: 0 })).toBe(7);
  });

  test("all answers that a completion is billed for bound its output", () => {
    const max = (fields: object) =>
      read("/v1/completions", { model: "m", max_tokens: 10, ...fields }).facts.outputMax;
    expect(max({ prompt: "a" })).toBe(10);
    expect(max({ prompt: "a", n: 2, best_of: 5 })).toBe(50);
    expect(max({ prompt: ["a", "b", "c"], n: 2 })).toBe(60);
    expect(max({ prompt: [[1, 2], [3]] })).toBe(20);
    expect(max({ prompt: [1, 2, 3] })).toBe(10);
    expect(max({ prompt: [] })).toBe(10);
  });

  test.each([
    ["reasoning_effort", "chat/completions", { reasoning_effort: "high" }],
    ["thinking", "messages", { thinking: { type: "enabled", budget_tokens: 9 } }],
    ["reasoning", "responses", { reasoning: { effort: "low" } }],
    ["an o-series model", "responses", { model: "o3-mini" }],
    ["an o-series model with a date", "chat/completions", { model: "openai/o1-2024-12-17" }],
    ["GPT-5", "chat/completions", { model: "GPT-5.1-mini" }],
    ["previous_response_id", "responses", { previous_response_id: "resp_1" }],
    ["a conversation", "responses", { conversation: { id: "c" } }],
    ["a stored prompt", "responses", { prompt: { id: "p" } }],
    ["a file", "messages", { messages: [{ content: [{ source: { file_id: "f" } }] }] }],
    ["a reference", "responses", { input: [{ type: "item_reference", id: "i" }] }],
  ])("a request with %s has parts that its text does not show", (_, path, fields) => {
    expect(read(`/v1/${path}`, { model: "m", ...fields }).facts.hasHiddenParts).toBe(true);
  });

  test.each([
    ["a chat", "chat/completions", { model: "gpt-4o", reasoning_effort: null }],
    ["a completion with a prompt", "completions", { model: "m", prompt: "Hi" }],
    ["embeddings of a reasoning model", "embeddings", { model: "o1" }],
    ["a model whose name only begins alike", "chat/completions", { model: "o1b" }],
  ])("a request of %s shows all that it is billed for", (_, path, fields) => {
    expect(read(`/v1/${path}`, fields).facts.hasHiddenParts).toBe(false);
  });

  test("only the Responses API has background calls", () => {
    const isBackground = (path: string) =>
      read(path, { model: "m", background: true }).facts.isBackground;
    expect(isBackground("/v1/responses")).toBe(true);
    expect(isBackground("/v1/chat/completions")).toBe(false);
  });
});
