/** Bounds of the output that budgets lower: what a call reserves, and what its request says. */

import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { type CallFacts, readHttpCall } from "@zae-limiter/limiter/llm/call.ts";
import { formatOf } from "@zae-limiter/limiter/llm/formats/format.ts";
import { limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import type { LlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { withOutputMax } from "@zae-limiter/limiter/llm/output-cap.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const TARGET = { entityId: "a", resource: "gpt-4o" };
/** Two micro-dollars for a token of input, ten for one of output. */
const prices = [{ model: "gpt-4o", price: { input: "2", output: "10" } }];
/** The input of the calls of this file: ten tokens. */
const INPUT = 20;

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
});
afterEach(() => world.limiter.close());

/** Gives the entity a budget that pays for an input and this much output. */
async function payFor(output: number, soft = ""): Promise<void> {
  const dollars = ((INPUT + 10 * output) / 1_000_000).toFixed(6);
  await world.limiter.repository.limits.setEntity("a", [`usd:$${dollars}/month UTC${soft}`]);
}

function begin(facts: CallFacts, options: Partial<LlmOptions> = {}) {
  return world.metering({ prices, capOutput: true, ...options }).begin(facts, TARGET);
}

async function granted(facts: CallFacts, options: Partial<LlmOptions> = {}): Promise<MeteredCall> {
  const call = await begin(facts, options);
  if (call instanceof MeteredCall) return call;
  throw new Error(`The call was not granted: ${call}`);
}

describe("the bound that a call gets", () => {
  test("a bound that the budget pays for stays", async () => {
    await payFor(5000);
    expect((await granted(factsOf({ max_tokens: 5000 }))).outputMax).toBeUndefined();
  });

  test("a bound above what the budget pays for is lowered to that", async () => {
    await payFor(3000);
    expect((await granted(factsOf({ max_tokens: 5000 }))).outputMax).toBe(3000);
  });

  test("a request without a bound gets one, and one of several choices its part", async () => {
    await payFor(3000);
    expect((await granted(factsOf({ n: 4 }))).outputMax).toBe(750);
  });

  test("the estimate is cut to what the budget pays for, and the answer cannot cost more", async () => {
    await payFor(300);
    const call = await granted(factsOf({ max_tokens: 5000 }));
    expect(call.outputMax).toBe(300);
    await call.chargeMost();
    expect(await world.limiter.available(TARGET)).toEqual({ usd: 0 });
  });

  test("a budget that pays for no useful answer refuses, with nothing consumed", async () => {
    await payFor(255);
    expect(await begin(factsOf({ max_tokens: 5000 }))).toBeInstanceOf(Refusal);
    expect(await world.limiter.available(TARGET)).toEqual({ usd: INPUT + 2550 });
    expect((await granted(factsOf({ max_tokens: 200 }))).outputMax).toBeUndefined();
  });

  test("thinking that the request sets apart must fit, too", async () => {
    await payFor(1200);
    const thinking = { type: "enabled", budget_tokens: 1000 };
    const asked = { max_tokens: 5000, thinking };
    expect(await begin(factsOf(asked, "/v1/messages"))).toBeInstanceOf(Refusal);
    await payFor(1256);
    expect((await granted(factsOf(asked, "/v1/messages"))).outputMax).toBe(1256);
  });

  test("calls that reserve the most share a budget, and their bounds together never pass it", async () => {
    await payFor(3000);
    const options = { reserveMoney: "max" } as const;
    const first = await granted(factsOf({ max_tokens: 2000 }), options);
    const second = await granted(factsOf(), options);
    expect(first.outputMax).toBeUndefined();
    // The second input costs two tokens of output.
    expect(second.outputMax).toBe(998);
    expect(await begin(factsOf(), options)).toBeInstanceOf(Refusal);
  });

  test("a soft budget lowers nothing, and neither does a call that is free", async () => {
    await payFor(300, " soft");
    expect((await granted(factsOf({ max_tokens: 5000 }))).outputMax).toBeUndefined();
    await payFor(300);
    const free = [{ model: "gpt-4o", price: { free: true } }];
    const call = await granted(factsOf({ max_tokens: 5000 }), { prices: free });
    expect(call.outputMax).toBeUndefined();
  });

  test("without the option the bound stays, and the call is refused", async () => {
    await payFor(300);
    const options = { capOutput: false };
    expect(await begin(factsOf({ max_tokens: 5000 }), options)).toBeInstanceOf(Refusal);
  });
});

test("limitFetch sends the bound in place of the request's", async () => {
  await payFor(3000);
  const sent: unknown[] = [];
  const upstream = async (_: unknown, init?: RequestInit) => {
    sent.push(JSON.parse(String(init?.body)));
    return Response.json({ usage: { prompt_tokens: 10, completion_tokens: 3 } });
  };
  const call = limitFetch(world.limiter, {
    entityId: "a",
    prices,
    capOutput: true,
    fetch: upstream as typeof fetch,
  });
  const url = "https://api.openai.com/v1/chat/completions";
  const body = { model: "gpt-4o", messages: "x".repeat(40), max_tokens: 9000 };
  await (await call(url, { method: "POST", body: JSON.stringify(body) })).json();
  expect(sent).toEqual([{ ...body, max_tokens: 3000 }]);
});

describe("the body that is sent", () => {
  test.each([
    ["/v1/chat/completions", {}, { max_completion_tokens: 300 }],
    ["/v1/chat/completions", { max_tokens: 9000 }, { max_tokens: 300 }],
    [
      "/v1/chat/completions",
      { max_tokens: 200, max_completion_tokens: 9000 },
      { max_tokens: 200, max_completion_tokens: 300 },
    ],
    ["/v1/responses", { max_output_tokens: null }, { max_output_tokens: 300 }],
    ["/v1/messages", { max_tokens: 301 }, { max_tokens: 300 }],
  ])("a bound of 300 is written to %s with %j", (path, given, expected) => {
    const format = formatOf("POST", path);
    if (format === undefined) throw new Error(`${path} is not known`);
    expect(withOutputMax(format, { model: "m", ...given }, 300)).toEqual({
      model: "m",
      ...expected,
    });
  });

  test("a call without output has no bound", () => {
    const url = "https://api.openai.com/v1/embeddings";
    const body = JSON.stringify({ model: "text-embedding-3-small", input: "x" });
    const request = { url, method: "POST", headers: new Headers(), body, signal: undefined };
    const { format, facts } = readHttpCall(request);
    expect(facts.hasOutput).toBe(false);
    expect(format && withOutputMax(format, {}, 300)).toEqual({});
  });
});
