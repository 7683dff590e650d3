/** Responses that a provider makes in the background: they keep their reserve until a poll. */

import { createKey } from "@zae-limiter/gateway/keys.ts";
import { responsesAnswer, responsesEvents } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stall, stream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage, startGateway } from "../started-gateway.ts";

const RESPONSES = "/v1/responses";
const asked = {
  model: Stage.MODEL,
  input: "x".repeat(40),
  background: true,
  max_output_tokens: 5000,
};
const queued = { ...responsesAnswer, status: "queued", output: [], usage: null };

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
});
afterEach(() => stage.stop());

async function startResponse(): Promise<void> {
  stage.upstream.replyWith(json(queued));
  const answer = await stage.ask(RESPONSES, asked);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual(queued);
}

test("a background response keeps its whole reserve until its usage is known", async () => {
  await startResponse();
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 5010 });
  stage.upstream.replyWith(json({ ...queued, status: "in_progress" }));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
  stage.upstream.replyWith(json(responsesAnswer));
  const done = await stage.ask(`${RESPONSES}/resp_1`);
  expect(await done.json()).toEqual(responsesAnswer);
  expect(stage.upstream.arrived[0]?.path).toBe("/v1/responses/resp_1");
  // 36 tokens of input, of which 16 came from a cache, and 87 of output.
  expect(await stage.consumed()).toEqual({ rpd: 3, tpd: 107 });
});

test("another gateway settles it too, and it is settled once", async () => {
  await startResponse();
  stage.upstream.replyWith(json(responsesAnswer));
  const other = await startGateway(stage.limiter, stage.upstream);
  const headers = { authorization: `Bearer ${stage.key}` };
  const polls = [other, stage.gateway, other, stage.gateway].map(({ url }) =>
    fetch(`${url}${RESPONSES}/resp_1`, { headers }),
  );
  for (const poll of polls) expect((await poll).status).toBe(200);
  await other.stop(Promise.resolve());
  expect(await stage.consumed()).toEqual({ rpd: 5, tpd: 107 });
});

test("only the key that made a response can read it, and no other response can be read", async () => {
  await startResponse();
  const { key } = await createKey(stage.limiter.repository, "team-a", undefined);
  const headers = { authorization: `Bearer ${key}` };
  stage.upstream.replyWith(json(responsesAnswer));
  expect((await stage.ask(`${RESPONSES}/resp_1`, undefined, { headers })).status).toBe(404);
  expect((await stage.ask(`${RESPONSES}/resp_2`)).status).toBe(404);
  expect(stage.upstream.arrived).toHaveLength(0);
});

test("a response that ended without usage keeps its reserve", async () => {
  await startResponse();
  stage.upstream.replyWith(json({ ...queued, status: "failed" }));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
});

test("a response that ended with a usage of zeros keeps its reserve", async () => {
  await startResponse();
  const usage = { input_tokens: 0, output_tokens: 0 };
  stage.upstream.replyWith(json({ ...queued, status: "completed", usage }));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
});

test("a response that states only its output keeps the reserve of its input", async () => {
  await startResponse();
  const usage = { output_tokens: 87 };
  stage.upstream.replyWith(json({ ...queued, status: "completed", usage }));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
});

test("a response that was made by a path of Azure is read by that path", async () => {
  stage.upstream.replyWith(json(queued));
  expect((await stage.ask("/openai/v1/responses", asked)).status).toBe(200);
  stage.upstream.replyWith(json(responsesAnswer));
  expect((await stage.ask("/openai/v1/responses/resp_1")).status).toBe(200);
  expect(stage.upstream.arrived[0]?.path).toBe("/v1/openai/v1/responses/resp_1");
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 107 });
});

test("a gateway may refuse background responses", async () => {
  await stage.restart({ background: "refuse" });
  const answer = await stage.ask(RESPONSES, asked);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: "background_not_allowed" } });
  expect(await stage.consumed()).toEqual({ rpd: 0, tpd: 0 });
});

test("a background response that was streamed to its end can be read later, too", async () => {
  const [created, ...events] = responsesEvents;
  stage.upstream.replyWith(stream([created as object, ...events], { named: true }));
  const answer = await stage.ask(RESPONSES, { ...asked, stream: true });
  await answer.text();
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 107 });
  stage.upstream.replyWith(json(responsesAnswer));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 107 });
});

test("a background response can be read while it is streamed, and counts once", async () => {
  stage.upstream.replyWith(stall(responsesEvents.slice(0, 2)));
  const leaving = new AbortController();
  const { signal } = leaving;
  const answer = await stage.ask(RESPONSES, { ...asked, stream: true }, { signal });
  await answer.body?.getReader().read();
  stage.upstream.replyWith(json({ ...queued, status: "in_progress" }));
  expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
  // A client that leaves the stream holds the reserve, until a poll brings the usage.
  leaving.abort();
  await expect.poll(() => stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
  stage.upstream.replyWith(json(responsesAnswer));
  await expect
    .poll(async () => {
      expect((await stage.ask(`${RESPONSES}/resp_1`)).status).toBe(200);
      return (await stage.consumed())["tpd"];
    })
    .toBe(107);
});

test("a background response that is asked for as a stream is settled at its end", async () => {
  await startResponse();
  stage.upstream.replyWith(stream(responsesEvents.slice(0, 2), { named: true }));
  await (await stage.ask(`${RESPONSES}/resp_1?stream=true`)).text();
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 5010 });
  stage.upstream.replyWith(stream(responsesEvents, { named: true }));
  await (await stage.ask(`${RESPONSES}/resp_1?stream=true&starting_after=1`)).text();
  expect(await stage.consumed()).toEqual({ rpd: 3, tpd: 107 });
});
