/** The provider's account: what goes to the provider, and what of it comes back. */

import { chatAnswer, chatUsage } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KEYS, Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "x".repeat(40) }];
const body = { model: Stage.MODEL, messages };

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  stage.upstream.replyWith(json(chatAnswer));
});
afterEach(() => stage.stop());

test.each([400, 401, 500])("the provider's key is cut from a %d", async (status) => {
  const message = `Incorrect API key provided: Bearer ${KEYS.OPENAI_API_KEY}.`;
  const headers = { "x-echo": KEYS.OPENAI_API_KEY, "openai-organization": "org-1" };
  stage.upstream.replyWith(json({ error: { message } }, status, headers));
  const answer = await stage.ask(CHAT, body);
  expect(answer.status).toBe(status);
  expect(await answer.json()).toEqual({
    error: { message: "Incorrect API key provided: Bearer [hidden]." },
  });
  expect(answer.headers.get("x-echo")).toBeNull();
  expect(answer.headers.get("openai-organization")).toBeNull();
});

test("credentials of the client do not reach the provider", async () => {
  const headers = { "api-key": "k1", "x-goog-api-key": "k2", "openai-organization": "org-2" };
  await (await stage.ask(CHAT, body, { headers })).text();
  const sent = JSON.stringify(stage.upstream.arrived[0]?.headers);
  for (const secret of ["k1", "k2", "org-2", stage.key]) expect(sent).not.toContain(`"${secret}"`);
});

test("a redirect is not followed, and does not reach the client", async () => {
  stage.upstream.replyWith(json({}, 307, { location: "https://elsewhere.example/v1" }));
  const answer = await stage.ask(CHAT, body);
  expect(answer.status).toBe(502);
  expect(answer.headers.get("location")).toBeNull();
  expect(stage.upstream.arrived).toHaveLength(1);
});

test("an error that carries usage is settled by it", async () => {
  stage.upstream.replyWith(json({ error: { message: "cut" }, usage: chatUsage }, 500));
  expect((await stage.ask(CHAT, body)).status).toBe(500);
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 21 });
});

test("a connection that dies after the request was sent keeps the estimate", async () => {
  stage.upstream.replyWith((_, response) => void response.destroy());
  expect((await stage.ask(CHAT, { ...body, max_tokens: 90 })).status).toBe(502);
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 100 });
});

test("what is sent is what was read: one model, whatever the body repeats", async () => {
  const text = `{"model":"other-1","model":"${Stage.MODEL}","messages":[]}`;
  const headers = { authorization: `Bearer ${stage.key}`, "content-type": "application/json" };
  const sent = (content: string) =>
    fetch(stage.gateway.url + CHAT, { method: "POST", headers, body: content });
  expect((await sent(text)).status).toBe(200);
  expect(stage.upstream.arrived[0]?.headers["content-length"]).toBe(
    String(JSON.stringify({ model: Stage.MODEL, messages: [] }).length),
  );
  const cased = await sent(text.replace("model", "Model"));
  expect(cased.status).toBe(400);
  expect(stage.upstream.arrived).toHaveLength(1);
});

test("names that no list has share one resource, and are a 404 where the operator says so", async () => {
  for (const model of ["invented-1", "invented-2", "invented-3"]) {
    expect((await stage.ask(CHAT, { ...body, model })).status).toBe(200);
  }
  expect(await stage.consumed("other")).toEqual({ rpd: 3, tpd: 63 });
  await stage.restart({ unknownModels: "refuse" });
  const answer = await stage.ask(CHAT, { ...body, model: "invented-1" });
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ error: { code: "model_not_found" } });
});

test("the deployment of the path counts, and not the model of the body", async () => {
  const path = `/openai/deployments/${Stage.MODEL}/chat/completions?api-version=1`;
  expect((await stage.ask(path, { ...body, model: "fresh-1" })).status).toBe(200);
  expect(stage.upstream.arrived[0]?.path).toBe(`/v1${path}`);
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 21 });
});

test("files, jobs and other responses of the account cannot be reached", async () => {
  for (const path of ["/v1/files", "/v1/responses/resp_other", "/v1/fine_tuning/jobs"]) {
    expect((await stage.ask(path)).status).toBe(404);
  }
  expect((await stage.ask("/v1/models/ft:a", undefined, { method: "DELETE" })).status).toBe(405);
  expect(stage.upstream.arrived).toHaveLength(0);
});

test("a path that the operator has opened counts as a request, and by the usage of its answer", async () => {
  await stage.restart({ allowPaths: ["/audio"] });
  stage.upstream.replyWith(json({ text: "a", usage: { input_tokens: 7, output_tokens: 5 } }));
  expect((await stage.ask("/v1/audio/transcriptions", body)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 12 });
  stage.upstream.replyWith(json({ text: "a" }));
  expect((await stage.ask("/v1/audio/transcriptions", body)).status).toBe(200);
  expect(await stage.consumed()).toEqual({ rpd: 2, tpd: 12 });
});

test("every answer, also a refusal, has the id that the access log has", async () => {
  stage.upstream.replyWith(json(chatAnswer));
  const answers = [
    await stage.ask("/v1/chat/completions", { model: Stage.MODEL, messages: [] }),
    await stage.ask("/v1/files"),
    await stage.ask("/v1/models"),
  ];
  const ids = answers.map(({ headers }) => headers.get("x-gateway-request-id") ?? "");
  for (const id of ids) expect(id).toMatch(/^req_[\w-]{13,}$/);
  expect(new Set(ids).size).toBe(3);
});

test("counting tokens is one request without tokens", async () => {
  stage.upstream.replyWith(json({ input_tokens: 2095 }));
  const answer = await stage.ask("/v1/messages/count_tokens", { ...body, model: "claude-test" });
  expect(answer.status).toBe(200);
  expect(await stage.consumed("claude-test")).toEqual({ rpd: 1, tpd: 0 });
});
