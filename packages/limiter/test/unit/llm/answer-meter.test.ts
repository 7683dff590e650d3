/** Answers through a meter, and their costs. Prompts have 10 tokens, estimates 500 more. */

import { gzipSync } from "node:zlib";
import { answerMeter, usageOfError } from "@zae-limiter/limiter/llm/answer-meter.ts";
import { anyFormat, type Format, formatOf } from "@zae-limiter/limiter/llm/formats/format.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import {
  chatAnswer,
  chatEvents,
  messagesAnswer,
  messagesEvents,
  responsesAnswer,
  responsesEvents,
  sse,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const STREAM = "text/event-stream";
const JSON_TYPE = "application/json";

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
});
afterEach(() => world.limiter.close());

interface Way {
  readonly path?: string;
  readonly body?: object;
  readonly type?: string;
  readonly encoding?: string;
  readonly hidesUsage?: boolean;
  readonly bytesMax?: number;
  /** The size of the chunks. */
  readonly pieces?: number;
}

function format(path: string): Format {
  return formatOf("POST", path) as Format;
}

/** Sends an answer through a meter, and returns what came out and what it cost. */
async function metered(answer: string | Uint8Array, way: Way = {}) {
  const { path = "/v1/chat/completions", body = {}, type = STREAM, encoding = "" } = way;
  const call = await world.begin(factsOf(body, path));
  const headers = { contentType: type, contentEncoding: encoding };
  const { hidesUsage = false, bytesMax } = way;
  const meter = answerMeter(headers, format(path), call, hidesUsage, bytesMax);
  const bytes = Buffer.from(answer);
  const size = way.pieces ?? Math.max(1, bytes.length);
  const out: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    out.push(meter.push(bytes.subarray(at, at + size)));
  }
  const { rest, pendingId } = await meter.finish();
  const text = Buffer.concat([...out, rest]).toString();
  return { text, pendingId, call, tokens: await world.tokens() };
}

function ended(call: MeteredCall): boolean {
  return call.used !== undefined;
}

describe("a streamed answer", () => {
  for (const end of ["\n", "\r", "\r\n"]) {
    const lines = JSON.stringify(end);
    for (const pieces of [1, 7, 100_000]) {
      test(`a stream with ${lines} in chunks of ${pieces} bytes is read whole`, async () => {
        const whole = sse(chatEvents(["Grüße ", "世界"]), { done: true }).replaceAll("\n", end);
        const shown = await metered(whole, { pieces });
        expect(shown).toMatchObject({ text: whole, tokens: 21 });
        const hidden = await metered(whole, { pieces, hidesUsage: true });
        expect(hidden.tokens).toBe(42);
        expect(hidden.text).not.toContain('"usage"');
        expect(hidden.text.replaceAll(end, "\n").replace(/\n+/g, "\n")).toBe(
          sse(chatEvents(["Grüße ", "世界"]).slice(0, -1), { done: true }).replace(/\n+/g, "\n"),
        );
      });
    }
  }

  test("usage that comes in the last event without a blank line is read and hidden", async () => {
    const whole = sse(chatEvents(["Hi"])).trimEnd();
    expect(await metered(whole, { hidesUsage: true })).toMatchObject({ tokens: 21 });
    const { text } = await metered(whole, { hidesUsage: true });
    expect(text).toBe(sse(chatEvents(["Hi"]).slice(0, -1)));
    const cut = `${sse(chatEvents(["Hi"]).slice(0, 2))}data: {"choi`;
    expect((await metered(cut, { hidesUsage: true })).text).toBe(cut);
  });

  test("text with characters that chunks cut is counted by its bytes", async () => {
    const whole = sse(chatEvents(["世界".repeat(20)], "none"), { done: true });
    expect(await metered(whole, { pieces: 1 })).toMatchObject({ tokens: 40 });
  });

  test("a stream of zeros, comments and pings costs the estimate", async () => {
    const whole = ': keep-alive\n\nevent: ping\n\ndata: {"type":"ping"}\n\ndata: [DONE]\n\n';
    expect(await metered(whole)).toMatchObject({ tokens: 510 });
    expect(await metered("")).toMatchObject({ tokens: 1020 });
  });

  test("an event that cannot be read costs the most, unless usage follows", async () => {
    const broken = 'data: {"choices":[\n\n';
    const body = { max_tokens: 4000 };
    expect(await metered(broken, { body })).toMatchObject({ tokens: 4010 });
    const usage = sse(chatEvents(["Hi"]));
    expect(await metered(broken + usage, { body })).toMatchObject({ tokens: 4010 + 21 });
    expect(await metered("<html>no stream</html>", { body })).toMatchObject({ tokens: 8041 });
  });

  test("an event longer than the bound is passed on, and costs the most", async () => {
    const long = sse(chatEvents(["x".repeat(2000)], "none"));
    const way = { bytesMax: 1000, pieces: 100, hidesUsage: true, body: { max_tokens: 4000 } };
    expect(await metered(long, way)).toMatchObject({ text: long, tokens: 4010 });
  });

  test("an event as long as the bound is read", async () => {
    const event = "data: 1234\n";
    const way = { bytesMax: event.length, pieces: 1, body: { max_tokens: 4000 } };
    const { call } = await metered(`${event}\n`, way);
    // It is no object, so it cannot be read either, but nothing was too long.
    expect(call.used?.output).toBe(4000);
    const read = sse([{ choices: [] }]);
    const fits = { ...way, bytesMax: read.length - 1 };
    expect((await metered(read, fits)).call.used?.output).toBe(500);
    expect((await metered(read, { ...fits, bytesMax: read.length - 2 })).call.used?.output).toBe(
      4000,
    );
  });

  test("a stream of Anthropic is read whole", async () => {
    const whole = sse(messagesEvents(["Hello"]), { named: true });
    const path = "/v1/messages";
    expect(await metered(whole, { path, pieces: 3 })).toMatchObject({ tokens: 45 });
  });
});

describe("a plain answer", () => {
  const type = JSON_TYPE;

  test("a plain answer costs its usage", async () => {
    const whole = JSON.stringify(chatAnswer);
    expect(await metered(whole, { type, pieces: 5 })).toMatchObject({ text: whole, tokens: 21 });
    const message = JSON.stringify(messagesAnswer);
    expect(await metered(message, { type, path: "/v1/messages" })).toMatchObject({ tokens: 66 });
  });

  test("a plain answer that is empty, or without usage and output, costs the estimate", async () => {
    expect(await metered("", { type })).toMatchObject({ tokens: 510 });
    expect(await metered('{"id":"x"}', { type })).toMatchObject({ tokens: 1020 });
    const queued = JSON.stringify({ ...responsesAnswer, usage: null, output: [] });
    expect(await metered(queued, { type, path: "/v1/responses" })).toMatchObject({ tokens: 1530 });
  });

  test.each([
    ["compressed", gzipSync(JSON.stringify(chatAnswer)), { encoding: "gzip" }],
    ["compressed by br", "xxx", { encoding: " BR " }],
    ["compressed without saying so", gzipSync(JSON.stringify(chatAnswer)), {}],
    ["not JSON", "<html>", {}],
    ["cut JSON", '{"usage":{', {}],
    ["of another type", JSON.stringify(chatAnswer), { type: "audio/mpeg" }],
    ["longer than the bound", JSON.stringify(chatAnswer), { bytesMax: 100, pieces: 10 }],
  ])("a plain answer that is %s costs the most", async (_, answer, way) => {
    const body = { max_tokens: 4000 };
    const { text, tokens } = await metered(answer, { type, body, ...way });
    expect(text).toBe(Buffer.from(answer).toString());
    expect(tokens).toBe(4010);
  });

  test("a plain answer as long as the bound is read, and one byte more is not", async () => {
    const whole = JSON.stringify(chatAnswer);
    const bytesMax = whole.length;
    expect((await metered(whole, { type, bytesMax })).call.used?.output).toBe(10);
    const less = { type, bytesMax: bytesMax - 1, pieces: 1 };
    expect((await metered(whole, less)).call.used?.output).toBe(16_384);
  });

  test("an answer that says it is not compressed is read", async () => {
    const whole = JSON.stringify(chatAnswer);
    expect(await metered(whole, { type, encoding: "identity" })).toMatchObject({ tokens: 21 });
  });
});

describe("a background response", () => {
  const path = "/v1/responses";
  const body = { background: true };
  const queued = { ...responsesAnswer, status: "queued", output: [], usage: null };

  test("a response that is not final leaves the lease open for its caller", async () => {
    for (const status of ["queued", "in_progress"]) {
      const answer = JSON.stringify({ ...queued, status });
      const { call, pendingId } = await metered(answer, { path, body, type: JSON_TYPE });
      expect(pendingId).toBe("resp_1");
      expect(ended(call)).toBe(false);
    }
  });

  test.each(["completed", "incomplete", "failed", "cancelled"])(
    "a response that is %s ends its lease",
    async (status) => {
      const answer = JSON.stringify({ ...responsesAnswer, status });
      const { tokens, pendingId } = await metered(answer, { path, body, type: JSON_TYPE });
      expect({ tokens, pendingId }).toEqual({ tokens: 107, pendingId: undefined });
    },
  );

  test("a response that is not final and has no id costs the most", async () => {
    const { id: _, ...nameless } = queued;
    const way = { path, body, type: JSON_TYPE };
    expect(await metered(JSON.stringify(nameless), way)).toMatchObject({
      tokens: 16_394,
      pendingId: undefined,
    });
  });

  test("a background stream that ends before its last event leaves the lease open", async () => {
    const begun = sse(responsesEvents.slice(0, 2), { named: true });
    const { call, pendingId } = await metered(begun, { path, body: { ...body, stream: true } });
    expect(pendingId).toBe("resp_1");
    expect(ended(call)).toBe(false);
    const whole = sse(responsesEvents, { named: true });
    const complete = await metered(whole, { path, body: { ...body, stream: true } });
    expect(complete.pendingId).toBeUndefined();
    expect(complete.call.used?.output).toBe(87);
  });

  test("a stream that is not in the background ends its lease whatever its status is", async () => {
    const begun = sse(responsesEvents.slice(0, 2), { named: true });
    const { pendingId, tokens } = await metered(begun, { path, body: { stream: true } });
    expect({ pendingId, tokens }).toEqual({ pendingId: undefined, tokens: 11 });
  });
});

describe("the usage of an error", () => {
  test.each([
    ["next to the error", { error: { message: "x" }, usage: chatAnswer.usage }, 10],
    ["in the error", { error: { message: "x", usage: chatAnswer.usage } }, 10],
    ["in a response", { response: responsesAnswer }, 87],
    ["of Anthropic", { type: "error", error: {}, usage: messagesAnswer.usage }, 15],
  ])("the usage of an error is found %s", (_, body, output) => {
    const text = JSON.stringify(body);
    expect(usageOfError(text, anyFormat)).toMatchObject({ output });
    expect(usageOfError(text, format("/v1/chat/completions"))).toMatchObject({ output });
  });

  test.each([
    ["no JSON", "Bad gateway"],
    ["no usage", '{"error":{"message":"x"}}'],
    ["zeros", '{"usage":{"prompt_tokens":0,"completion_tokens":0}}'],
    ["absurd usage", '{"usage":{"prompt_tokens":-1,"completion_tokens":9}}'],
  ])("an error with %s states no usage", (_, text) => {
    expect(usageOfError(text, format("/v1/chat/completions"))).toBeUndefined();
  });
});
