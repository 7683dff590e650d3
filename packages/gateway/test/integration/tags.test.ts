/** Tags: cost centres that clients name by a header. They count a call, and never refuse it. */

import { TOTAL } from "@zae-limiter/limiter/index.ts";
import { chatEvents, responsesAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const asked = { model: Stage.MODEL, messages: "x".repeat(40), max_tokens: 100 };
const answer = {
  choices: [{ message: { content: "Hi" } }],
  usage: { prompt_tokens: 11, completion_tokens: 10 },
};
const TOKENS = 21;
/** At $2 and $10 for a million tokens. */
const COST = 22 + 100;

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start({ tags: ["research", "support"] });
  const { limits, prices } = stage.limiter.repository;
  await limits.setSystem(["rpm:3", "tpd:1000000/day"]);
  await prices.set(Stage.MODEL, { input: "2", output: "10" });
  stage.upstream.replyWith(json(answer));
});
afterEach(() => stage.stop());

const ask = (tag: string | undefined, body: object = asked) =>
  stage.ask(CHAT, body, tag === undefined ? {} : { headers: { "x-zael-tag": tag } });

/** Returns what a cost centre has counted. */
async function counted(tag: string) {
  const { usage } = stage.limiter.repository;
  return (await usage.summary({ entityId: `tag:${tag}` })).total;
}

test("a tag counts the request, the tokens and the dollars of a call, also without limits in money", async () => {
  expect((await ask("research")).status).toBe(200);
  stage.upstream.replyWith(stream(chatEvents(["Hi"]), { done: true }));
  await (await ask("research", { ...asked, stream: true })).text();
  const { tpm, rpm, usd } = await counted("research");
  expect({ rpm, isTwice: (tpm ?? 0) > TOKENS && (usd ?? 0) > COST }).toEqual({
    rpm: 2,
    isTwice: true,
  });
  expect(stage.upstream.arrived[0]?.headers["x-zael-tag"]).toBeUndefined();
});

test("a tag is settled by the usage of the answer, with the call", async () => {
  await ask("research");
  expect(await counted("research")).toEqual({ rpm: 1, tpm: TOKENS, usd: COST });
});

test("tags that the config does not name count as one, and calls without a tag in none", async () => {
  for (const tag of ["made-up", "__proto__", undefined]) await ask(tag);
  expect(await counted("other")).toEqual({ rpm: 2, tpm: 2 * TOKENS, usd: 2 * COST });
  expect(await counted("made-up")).toEqual({});
});

test("a gateway without tags in its config ignores the header", async () => {
  await stage.restart({});
  await ask("research");
  expect(await stage.limiter.repository.buckets.list("tag:other")).toEqual([]);
  expect(await stage.limiter.repository.buckets.list("tag:research")).toEqual([]);
});

test("a tag refuses nothing: limits of everyone and totals are none of its own", async () => {
  const { limits } = stage.limiter.repository;
  await limits.setResource(TOTAL, ["usd:$0.0005/day UTC"]);
  await limits.setEntity("team-a", ["rpm:100"], { resource: Stage.MODEL });
  await limits.setEntity("team-a", ["usd:$1/day UTC"], { resource: TOTAL });
  for (let call = 0; call < 5; call += 1) expect((await ask("support")).status).toBe(200);
  expect(await counted("support")).toEqual({ rpm: 5, tpm: 5 * TOKENS, usd: 5 * COST });
  const { headers } = await ask("support");
  expect(headers.get("ratelimit")).not.toContain("tag");
});

test("a call that a limit refuses counts for no tag", async () => {
  for (let call = 0; call < 3; call += 1) await ask("support");
  expect((await ask("support")).status).toBe(429);
  expect((await counted("support"))["rpm"]).toBe(3);
});

test("sums over entities leave tags out, since entities have counted the same", async () => {
  await ask("research");
  const { usage } = stage.limiter.repository;
  const { total } = await usage.summary({ resource: Stage.MODEL });
  expect(total).toEqual({ rpm: 1, tpd: TOKENS });
  const top = await usage.top({ by: "rpm" });
  expect(top.map(({ entityId }) => entityId)).toEqual(["team-a"]);
});

test("a model without a price counts no dollars for its tag, and is not refused", async () => {
  await stage.limiter.repository.prices.delete(Stage.MODEL);
  stage.upstream.models = [Stage.MODEL, "model-of-mine"];
  await stage.restart({ tags: ["research"] });
  expect((await ask("research", { ...asked, model: "model-of-mine" })).status).toBe(200);
  expect((await counted("research"))["tpm"]).toBe(TOKENS);
});

test("a background response is settled for its tag and its model when its usage is known", async () => {
  const { limits, usage } = stage.limiter.repository;
  await limits.setEntity("team-a", ["usd:$1/day UTC"], { resource: TOTAL });
  await limits.deleteSystem();
  const queued = { ...responsesAnswer, status: "queued", output: [], usage: null };
  stage.upstream.replyWith(json(queued));
  const body = { model: Stage.MODEL, input: "x".repeat(40), background: true };
  const headers = { "x-zael-tag": "research" };
  await stage.ask("/v1/responses", { ...body, max_output_tokens: 5000 }, { headers });
  expect(await counted("research")).toEqual({ rpm: 1, tpm: 5010, usd: 20 + 50_000 });
  stage.upstream.replyWith(json(responsesAnswer));
  expect((await stage.ask("/v1/responses/resp_1")).status).toBe(200);
  // 20 tokens of input, 16 from the cache and 87 of output; the poll is a request without a tag.
  const usd = 72 + 870;
  expect(await counted("research")).toEqual({ rpm: 1, tpm: 107, usd });
  for (const resource of [Stage.MODEL, TOTAL]) {
    const { total } = await usage.summary({ entityId: "team-a", resource });
    expect(total).toEqual({ usd });
  }
});
