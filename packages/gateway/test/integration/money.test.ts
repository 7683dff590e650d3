/** Budgets in money in front of a provider: what calls reserve, settle and are refused by. */

import { ModelNotPriced, TOTAL } from "@zae-limiter/limiter/index.ts";
import {
  chatEvents,
  messagesAnswer,
  responsesAnswer,
} from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage, upstreamAt } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
/** Ten tokens of input; the bound of the output is 100. */
const asked = {
  model: Stage.MODEL,
  messages: "x".repeat(40),
  max_tokens: 100,
};
/** 11 tokens of input, 8 from the cache, 10 of output. */
const answer = {
  choices: [{ message: { content: "Hi" } }],
  usage: {
    prompt_tokens: 19,
    completion_tokens: 10,
    prompt_tokens_details: { cached_tokens: 8 },
  },
};
/** $2 for a million tokens of input, $1 from the cache, $10 of output. */
const PRICE = { input: "2", cachedInput: "1", output: "10" };
const COST = 22 + 8 + 100;

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  await stage.limiter.repository.limits.setSystem(["rpm:1000", "usd:$1/hour"]);
  await stage.limiter.repository.prices.set(Stage.MODEL, PRICE);
});
afterEach(() => stage.stop());

const spent = async () => (await stage.consumed())["usd"];

test("a call is settled at the price of its usage, streamed or not", async () => {
  stage.upstream.replyWith(json(answer));
  expect((await stage.ask(CHAT, asked)).status).toBe(200);
  expect(await spent()).toBe(COST);
  stage.upstream.replyWith(stream(chatEvents(["Hi"]), { done: true }));
  await (await stage.ask(CHAT, { ...asked, stream: true })).text();
  expect(await spent()).toBe(2 * COST);
});

test("a spent budget refuses by name, and SDKs do not try again", async () => {
  await stage.limiter.repository.limits.setEntity("team-a", ["rpm:1000", "usd:$0.001/hour"]);
  stage.upstream.replyWith(json(answer));
  const refused = await stage.ask(CHAT, asked);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-should-retry")).toBe("false");
  expect(await refused.json()).toMatchObject({
    error: {
      code: "budget_exceeded",
      message: expect.stringMatching(
        /^Budget usd of team-a does not pay for this call: \$0\.00102 needed, \$0\.001 of \$0\.001 left/,
      ),
    },
  });
  expect(stage.upstream.arrived).toHaveLength(0);
});

test("a spent budget of a month says when it resets, on the clock of its zone", async () => {
  const { limits } = stage.limiter.repository;
  await limits.setEntity("team-a", ["usd:$0.0001/month Europe/Berlin"], { resource: TOTAL });
  await stage.limiter.repository.prices.set(Stage.MODEL, { input: "9", output: "0.1" });
  stage.upstream.replyWith(json(answer));
  expect((await stage.ask(CHAT, { ...asked, max_tokens: 1 })).status).toBe(200);
  const refused = await stage.ask(CHAT, { ...asked, max_tokens: 1 });
  const { error } = (await refused.json()) as { error: { message: string } };
  expect(error.message).toMatch(
    /^Budget usd of team-a is spent: \$0\.000\d+ of \$0\.0001, resets 2023-12-01 00:00 Europe\/Berlin$/,
  );
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(86_400);
});

test("a model without a price is a 400 that names the command, and consumes nothing", async () => {
  const other = { ...asked, model: "model-of-mine" };
  stage.upstream.models = [Stage.MODEL, "model-of-mine"];
  await stage.restart({});
  stage.upstream.replyWith(json(answer));
  const refused = await stage.ask(CHAT, other);
  expect(refused.status).toBe(400);
  const { message } = new ModelNotPriced("model-of-mine");
  expect(message).toContain("zae-limiter prices set model-of-mine --input");
  expect(await refused.json()).toMatchObject({
    error: { code: "model_not_priced", message: expect.stringContaining("prices set") },
  });
  expect(await stage.consumed("model-of-mine")).toEqual({ rpm: 0, usd: 0 });
  await stage.restart({ unpriced: "allow" });
  expect((await stage.ask(CHAT, other)).status).toBe(200);
  expect(await stage.consumed("model-of-mine")).toEqual({ rpm: 1, usd: 0 });
});

test("an upstream of the config has prices of its own, below those that are stored", async () => {
  await stage.limiter.repository.prices.delete(Stage.MODEL);
  const prices = { [Stage.MODEL]: { input: "20", output: "100" } };
  await stage.restart({ upstreams: [upstreamAt(stage.upstream, { prices })] });
  stage.upstream.replyWith(json(answer));
  await stage.ask(CHAT, asked);
  expect(await spent()).toBe(380 + 1000);
});

test("money reserves the most output when told to, and tokens do not", async () => {
  await stage.limiter.repository.limits.setSystem(["tpm:100000", "usd:$1/hour"]);
  await stage.restart({ reserveMoney: "max" });
  const held: Promise<number | undefined>[] = [];
  stage.upstream.replyWith(async (_, response) => {
    held.push(spent());
    await held[0];
    response.end(JSON.stringify(answer));
  });
  await (await stage.ask(CHAT, { ...asked, max_tokens: 5000 })).text();
  expect(await held[0]).toBe(20 + 50_000);
  expect(await spent()).toBe(22 + 8 + 100);
});

test("a budget lowers the bound of the output that is sent, when told to", async () => {
  // 20 for the input, and 300 tokens of output.
  await stage.limiter.repository.limits.setEntity("team-a", ["rpm:1000", "usd:$0.00302/hour"]);
  await stage.restart({ capOutput: true });
  stage.upstream.replyWith(json(answer));
  const call = { ...asked, max_tokens: 5000, seed: 1 };
  expect((await stage.ask(CHAT, call)).status).toBe(200);
  const [sent] = stage.upstream.arrived;
  expect(sent?.body).toEqual({ ...call, max_tokens: 300 });
  expect(await spent()).toBe(COST);
});

test("a background response is settled by the price it was granted with", async () => {
  const queued = { ...responsesAnswer, status: "queued", output: [], usage: null };
  stage.upstream.replyWith(json(queued));
  const body = { model: Stage.MODEL, input: "x".repeat(40), background: true };
  await stage.ask(RESPONSES, { ...body, max_output_tokens: 5000 });
  expect(await spent()).toBe(20 + 50_000);
  await stage.limiter.repository.prices.set(Stage.MODEL, { input: "900", output: "900" });
  stage.upstream.replyWith(json(responsesAnswer));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  // 20 tokens of input and 16 from the cache, 87 of output.
  expect(await spent()).toBe(40 + 16 + 870);
});

test("a list of models and a count of tokens need no price", async () => {
  expect((await stage.ask("/v1/models")).status).toBe(200);
  stage.upstream.replyWith(json({ input_tokens: 3 }));
  const count = { model: "claude-test", messages: [] };
  expect((await stage.ask("/v1/messages/count_tokens", count)).status).toBe(200);
});

test("a path that the operator opened is refused where money applies and its model has no price", async () => {
  await stage.restart({ allowPaths: ["/v1/images"] });
  stage.upstream.replyWith(json({ data: [], usage: { input_tokens: 10, output_tokens: 1000 } }));
  const refused = await stage.ask("/v1/images/generations", { model: "gpt-image-of-mine" });
  expect(refused.status).toBe(400);
  expect((await stage.ask("/v1/images/generations", { model: Stage.MODEL })).status).toBe(200);
  expect(await spent()).toBe(20 + 10_000);
});

test("a refusal by money has the shape of Anthropic for its clients", async () => {
  await stage.limiter.repository.limits.setEntity("team-a", ["usd:$0.000001/hour"]);
  await stage.limiter.repository.prices.set("claude-test", PRICE);
  stage.upstream.replyWith(json(messagesAnswer));
  const body = { model: "claude-test", max_tokens: 100, messages: [] };
  const headers = { "anthropic-version": "2023-06-01" };
  const refused = await stage.ask("/v1/messages", body, { headers });
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    type: "error",
    error: { type: "rate_limit_error", message: expect.stringContaining("Budget usd of team-a") },
  });
});

test("dollars are counted by model below a total, and refuse nothing there", async () => {
  const { limits, usage } = stage.limiter.repository;
  await limits.deleteSystem();
  await limits.setEntity("team-a", ["usd:$0.0003/month UTC"], { resource: TOTAL });
  stage.upstream.replyWith(json(answer));
  const small = { ...asked, max_tokens: 1 };
  expect((await stage.ask(CHAT, small)).status).toBe(200);
  expect((await stage.ask(CHAT, small)).status).toBe(200);
  const dollars = async (resource?: string) => {
    const query = resource === undefined ? {} : { resource };
    return (await usage.summary({ entityId: "team-a", ...query })).total["usd"];
  };
  expect(await dollars(Stage.MODEL)).toBe(2 * COST);
  expect(await dollars(TOTAL)).toBe(2 * COST);
  // The total is left out of a sum over resources, which have all of it.
  expect(await dollars()).toBe(2 * COST);
  const refused = await stage.ask(CHAT, { ...asked, max_tokens: 10 });
  expect(refused.status).toBe(429);
  expect(await dollars()).toBe(2 * COST);
});
