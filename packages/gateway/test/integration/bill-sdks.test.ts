/**
 * The clients that people use, through the gateway: calls that are answered, repeated by the
 * client, and left in the middle cost what the provider bills.
 */

import Anthropic from "@anthropic-ai/sdk";
import { promptOf } from "@zae-limiter/test-support/llm/billing-upstream.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { APICallError, generateText, streamText } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AttackedGateway } from "../attacked-gateway.ts";
import { BILLED_MODELS } from "../billed-calls.ts";

const CALLS = 60;
const SEED = 20_261_118;
const INPUT = 20;
/** Tokens of an event that was cut where the client hung up, and of one on its way. */
const CUT_TOKENS = 2;

let attacked: AttackedGateway;
beforeEach(async () => {
  attacked = await AttackedGateway.start();
});
afterEach(() => attacked.stop());

interface SdkCall {
  readonly prompt: string;
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

/** Sends a call and reads its answer to the end. */
type Client = (call: SdkCall) => Promise<unknown>;

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

function openai(key: string): Client {
  const client = new OpenAI({ apiKey: key, baseURL: `${attacked.gateway.url}/v1` });
  return async ({ prompt, stream, signal }) => {
    const body = {
      model: "gpt-4o",
      max_tokens: 1000,
      messages: [{ role: "user" as const, content: prompt }],
    };
    if (!stream) return client.chat.completions.create(body, { signal });
    return drained(await client.chat.completions.create({ ...body, stream }, { signal }));
  };
}

function openaiResponses(key: string): Client {
  const client = new OpenAI({ apiKey: key, baseURL: `${attacked.gateway.url}/v1` });
  return async ({ prompt, stream, signal }) => {
    const body = { model: "gpt-4o", input: prompt };
    if (!stream) return client.responses.create(body, { signal });
    return drained(await client.responses.create({ ...body, stream }, { signal }));
  };
}

function anthropic(key: string): Client {
  const client = new Anthropic({ apiKey: key, baseURL: attacked.gateway.url });
  return async ({ prompt, stream, signal }) => {
    const body = {
      model: "claude-test",
      max_tokens: 1000,
      messages: [{ role: "user" as const, content: prompt }],
    };
    if (!stream) return client.messages.create(body, { signal });
    return drained(await client.messages.create({ ...body, stream }, { signal }));
  };
}

/** Throws an error as providers of the AI SDK do, which repeats calls that may be repeated. */
function asCallError(error: unknown): never {
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) throw error;
  throw new APICallError({
    message: error.message,
    url: attacked.gateway.url,
    requestBodyValues: {},
    statusCode: error.status,
    responseHeaders: Object.fromEntries(error.headers ?? []),
    isRetryable: error.status === 429 || error.status >= 500,
  });
}

/** The AI SDK retries and aborts by itself; its model is the client of OpenAI. */
function aiSdk(key: string): Client {
  const baseURL = `${attacked.gateway.url}/v1`;
  const client = new OpenAI({ apiKey: key, baseURL, maxRetries: 0 });
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  };
  const finish = { finishReason: { unified: "stop" as const, raw: "stop" }, usage };
  return async ({ prompt, stream, signal: abortSignal }) => {
    const messages = [{ role: "user" as const, content: prompt }];
    const body = { model: "gpt-4o", messages };
    const model = new MockLanguageModelV3({
      doGenerate: async ({ abortSignal: signal }) => {
        const answer = await client.chat.completions.create(body, { signal }).catch(asCallError);
        const text = answer.choices[0]?.message.content ?? "";
        return { content: [{ type: "text", text }], warnings: [], ...finish };
      },
      doStream: async ({ abortSignal: signal }) => {
        const asked = { ...body, stream: true as const };
        const chunks = await client.chat.completions.create(asked, { signal }).catch(asCallError);
        const parts = (async function* () {
          yield { type: "stream-start" as const, warnings: [] };
          yield { type: "text-start" as const, id: "1" };
          for await (const { choices } of chunks) {
            const delta = choices[0]?.delta.content ?? "";
            yield { type: "text-delta" as const, id: "1", delta };
          }
          yield { type: "text-end" as const, id: "1" };
          yield { type: "finish" as const, ...finish };
        })();
        return { stream: ReadableStream.from(parts) };
      },
    });
    if (!stream) return generateText({ model, prompt, abortSignal });
    const answer = streamText({ model, prompt, abortSignal, onError: () => {} });
    return drained(answer.textStream);
  };
}

type Way = "answered" | "repeated" | "left";

test.each([
  ["openai with chat completions", openai],
  ["openai with responses", openaiResponses],
  ["@anthropic-ai/sdk", anthropic],
  ["ai", aiSdk],
])("calls of %s cost what the provider bills", async (_, clientOf) => {
  const random = seededRandom(SEED);
  const send = clientOf(attacked.key);
  const ways: readonly Way[] = ["answered", "repeated", "left"];
  const calls = Array.from({ length: CALLS }, (__, at) => {
    const way = ways[at % ways.length] as Way;
    const stream = random() < 0.6;
    const at1 = random();
    const text = 10 + Math.floor(random() * 60);
    // Where reasoning is hidden, a stream that is left is charged its estimate instead.
    const reasoning = way === "left" && stream ? 0 : Math.floor(random() * 100);
    const status = random() < 0.5 ? 429 : 503;
    const plan = attacked.plan({
      text,
      reasoning,
      fates:
        way === "answered"
          ? [{ kind: "answer" }]
          : way === "repeated"
            ? [{ kind: "status", status }, { kind: "answer" }]
            : [{ kind: "hold", at: at1 }],
    });
    return { way, plan, stream };
  });
  const next = calls[Symbol.iterator]();
  const work = async () => {
    for (const { way, plan, stream } of next) {
      const abort = new AbortController();
      const prompt = promptOf(plan, INPUT);
      const sent = send({ prompt, stream, signal: abort.signal });
      if (way !== "left") {
        await sent;
        continue;
      }
      const ended = sent.then(
        () => {},
        () => {},
      );
      await attacked.upstream.reached(plan);
      abort.abort();
      await ended;
      attacked.upstream.release(plan);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  await attacked.untilIdle();
  let consumed = 0;
  for (const model of BILLED_MODELS) consumed += await attacked.consumed("team-a", model);
  const left = calls.filter(({ way, stream }) => way === "left" && stream).length;
  expect(consumed).toBeGreaterThanOrEqual(attacked.billed() - CUT_TOKENS * left);
  expect(consumed).toBeGreaterThanOrEqual(0.99 * attacked.billed());
  const complete = attacked.upstream.bill.filter(({ isComplete }) => isComplete).length;
  expect(complete).toBeGreaterThanOrEqual(calls.length - left);
});
