/** The clients that people use, when a budget is spent: one answer that says so, asked for once. */

import Anthropic from "@anthropic-ai/sdk";
import { TOTAL } from "@zae-limiter/limiter/index.ts";
import { messagesAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const BUDGET = "usd:$0.0005/month Europe/Berlin";
const PRICE = { input: "2", output: "10" };
const messages = [{ role: "user" as const, content: "x".repeat(40) }];
/** Spends the budget with the first call. */
const usage = { prompt_tokens: 50, completion_tokens: 40 };
const SPENT =
  /^Budget usd of team-a is spent: \$0\.0005 of \$0\.0005, resets 2023-12-01 00:00 Europe\/Berlin$/;
const answered = /^zae_limiter_gateway_requests_total\{http_response_status_code="429"\} (\d+)$/m;

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  const { limits, prices } = stage.limiter.repository;
  await limits.setEntity("team-a", [BUDGET], { resource: TOTAL });
  for (const model of [Stage.MODEL, "claude-test"]) await prices.set(model, PRICE);
});
afterEach(() => stage.stop());

test("the client of OpenAI gets budget_exceeded with its sentence, and asks once", async () => {
  stage.upstream.replyWith(json({ choices: [{ message: { content: "Hi" } }], usage }));
  const client = new OpenAI({ apiKey: stage.key, baseURL: `${stage.gateway.url}/v1` });
  const body = { model: Stage.MODEL, messages, max_tokens: 10 };
  expect((await client.chat.completions.create(body)).choices[0]?.message.content).toBe("Hi");
  const error = await client.chat.completions.create(body).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OpenAI.RateLimitError);
  expect(error).toMatchObject({ status: 429, code: "budget_exceeded" });
  const { error: said } = error as { error: { message: string } };
  expect(said.message).toMatch(SPENT);
  expect(stage.upstream.arrived).toHaveLength(1);
  expect(await stage.metric(answered)).toBe(1);
});

test("the client of Anthropic gets the same sentence in its shape, and asks once", async () => {
  stage.upstream.replyWith(
    json({ ...messagesAnswer, usage: { input_tokens: 50, output_tokens: 40 } }),
  );
  const client = new Anthropic({ apiKey: stage.key, baseURL: stage.gateway.url });
  const body = { model: "claude-test", messages, max_tokens: 10 };
  await client.messages.create(body);
  const error = await client.messages.create(body).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Anthropic.RateLimitError);
  const { error: said } = error as { error: { error: { message: string } } };
  expect(said.error.message).toMatch(SPENT);
  expect(stage.upstream.arrived).toHaveLength(1);
  expect(await stage.metric(answered)).toBe(1);
});
