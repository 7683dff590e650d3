/** Limits over all models, through a gateway. */

import { createKey } from "@zae-limiter/gateway/keys.ts";
import { TOTAL } from "@zae-limiter/limiter/index.ts";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "x".repeat(40) }];
const MODELS = ["gpt-4o", "claude-test", "text-embedding-3-small"];

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  stage.upstream.replyWith(json(chatAnswer));
});
afterEach(() => stage.stop());

test("a total of 60 passes 60 calls over three models, and refuses the next on each", async () => {
  const { limits } = stage.limiter.repository;
  await limits.setEntity("team-a", ["rpm:60/day"], { resource: TOTAL });
  for (let call = 0; call < 60; call += 1) {
    const answer = await stage.ask(CHAT, { model: MODELS[call % 3], messages });
    expect(answer.status).toBe(200);
    const left = 60 - call - 1;
    expect(answer.headers.get("x-ratelimit-remaining-requests")).toBe(String(left));
    expect(answer.headers.get("ratelimit")).toContain(`"@all/rpm";r=${left};`);
    await answer.text();
  }
  const arrived = stage.upstream.arrived.length;
  for (const model of MODELS) {
    const answer = await stage.ask(CHAT, { model, messages });
    expect(answer.status).toBe(429);
    const { error } = (await answer.json()) as { error: { message: string } };
    expect(error.message).toContain("team-a/@all: [rpm] over all resources");
    expect(answer.headers.get("retry-after")).toBe("1441");
    expect((await stage.consumed(model))["rpd"]).toBe(20);
  }
  expect(stage.upstream.arrived).toHaveLength(arrived);
  expect(await stage.consumed(TOTAL)).toEqual({ rpm: 60 });
});

test("a team has a total over the keys of its members, and answers show nothing of it", async () => {
  const { entities, limits } = stage.limiter.repository;
  await limits.deleteSystem();
  await entities.create({ id: "team-b" });
  await limits.setEntity("team-b", ["rpm:2/day"], { resource: TOTAL });
  const keys: string[] = [];
  for (const id of ["ann", "bob", "cat"]) {
    await entities.create({ id, parentId: "team-b", cascade: true });
    keys.push((await createKey(stage.limiter.repository, id, undefined)).key);
  }
  const answers: Response[] = [];
  for (const [at, key] of keys.entries()) {
    const headers = { authorization: `Bearer ${key}` };
    answers.push(await stage.ask(CHAT, { model: MODELS[at], messages }, { headers }));
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[0]?.headers.get("ratelimit")).toBeNull();
  expect(await answers[2]?.text()).not.toContain("team-b");
});

test("no client can name the resource of totals as its model", async () => {
  const answer = await stage.ask(CHAT, { model: TOTAL, messages });
  expect(answer.status).toBe(400);
  expect(stage.upstream.arrived).toHaveLength(0);
});
