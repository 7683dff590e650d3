/** The cost centre of a call in code, and what it leaves as it was. */

import { ValidationError } from "@zae-limiter/limiter/index.ts";
import { limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const URL = "https://api.openai.com/v1/chat/completions";
const usage = { prompt_tokens: 9, completion_tokens: 3 };

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open(["rpm:100", "tpm:100000"]);
});
afterEach(() => world.limiter.close());

const counted = async (tag: string) =>
  (await world.limiter.repository.usage.summary({ entityId: `tag:${tag}` })).total;

async function call(tag: Parameters<typeof limitFetch>[1]["tag"], model = "gpt-4o") {
  const upstream = async () => Response.json({ usage });
  const given = tag === undefined ? {} : { tag };
  const fetch = limitFetch(world.limiter, { entityId: "a", fetch: upstream, ...given });
  const body = JSON.stringify({ model, messages: [] });
  const answer = await fetch(URL, { method: "POST", body, headers: { "x-feature": "search" } });
  await answer.text();
  return answer.status;
}

test("a call in code names its tag by a text or by a function of the call", async () => {
  await call("batch");
  await call(({ headers }) => headers?.get("x-feature") ?? undefined);
  await call(() => undefined);
  // The list price of gpt-4o is $2.50 and $10 for a million tokens.
  expect(await counted("batch")).toEqual({ rpm: 1, tpm: 12, usd: 53 });
  expect((await counted("search"))["rpm"]).toBe(1);
  expect(await world.consumed()).toEqual({ rpm: 3, tpm: 36 });
});

test("a tag with another name than a name is refused before the call", async () => {
  expect(() => checkLlmOptions({ entityId: "a", tag: "a b" })).toThrow(ValidationError);
  await expect(call(() => "a:b")).rejects.toThrow("expected 1 to 64 letters, digits");
});

test("the money of a tag is no limit: no warning, no refusal of a model without a price", async () => {
  const warn = vi.spyOn(process, "emitWarning");
  expect(await call("batch", "model-of-mine")).toBe(200);
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
  expect(await counted("batch")).toEqual({ rpm: 1, tpm: 12 });
});
