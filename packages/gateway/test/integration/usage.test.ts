/** `GET /v1/usage`: what a key sees of its own entity. */

import { createKey } from "@zae-limiter/gateway/keys.ts";
import { TOTAL } from "@zae-limiter/limiter/index.ts";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const USAGE = "/v1/usage";
const asked = { model: Stage.MODEL, messages: [], max_tokens: 100 };

interface Usage {
  readonly entity_id: string;
  readonly limits: readonly {
    readonly entity_id: string;
    readonly resource: string;
    readonly limit_name: string;
    readonly used: number;
  }[];
  readonly has_more: boolean;
}

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  stage.upstream.replyWith(json(chatAnswer));
});
afterEach(() => stage.stop());

async function usageOf(key = stage.key): Promise<Usage> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await stage.ask(USAGE, undefined, { headers });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("application/json");
  return (await answer.json()) as Usage;
}

test("a key sees the limits of its entity over the models it used, and its totals", async () => {
  const { limits, prices } = stage.limiter.repository;
  await limits.setEntity("team-a", ["rpd:60/day", "usd:$5/hour"], { resource: TOTAL });
  await prices.set(Stage.MODEL, { input: "2", output: "10" });
  await (await stage.ask(CHAT, asked)).text();
  const usage = await usageOf();
  expect(usage).toMatchObject({ object: "usage", entity_id: "team-a", has_more: false });
  expect(usage).toMatchObject({ as_of: "2023-11-14T22:13:20Z" });
  const spent = usage.limits.map(({ resource, limit_name, used }) => [resource, limit_name, used]);
  const consumed = await stage.consumed();
  const total = await stage.consumed(TOTAL);
  expect(total["usd"]).toBeGreaterThan(0);
  expect(spent).toEqual([
    [Stage.MODEL, "rpd", 1],
    [Stage.MODEL, "tpd", consumed["tpd"]],
    [TOTAL, "rpd", 1],
    [TOTAL, "usd", total["usd"]],
  ]);
  expect(usage.limits.at(-1)).toEqual({
    entity_id: "team-a",
    resource: TOTAL,
    limit_name: "usd",
    limit: "usd:$5/hour",
    kind: "rate",
    unit: "micro_usd",
    capacity: 5_000_000,
    used: total["usd"],
    available: 5_000_000 - (total["usd"] ?? 0),
    full_in_seconds: expect.any(Number),
    resets_at: null,
  });
});

test("a quota says when it resets", async () => {
  const { limits } = stage.limiter.repository;
  await limits.setEntity("team-a", ["req:100/month Europe/Berlin"], { resource: TOTAL });
  const usage = await usageOf();
  expect(usage.limits).toMatchObject([
    { kind: "quota", used: 0, available: 100, resets_at: "2023-11-30T23:00:00Z" },
  ]);
});

test("a key that has used nothing sees no models, and the answer counts as no call", async () => {
  expect((await usageOf()).limits).toEqual([]);
  expect(await stage.consumed()).toEqual({ rpd: 0, tpd: 0 });
  expect(stage.upstream.arrived).toHaveLength(0);
});

test("ancestors are shown only where the operator allows it", async () => {
  const { entities } = stage.limiter.repository;
  await entities.create({ id: "team-b" });
  await entities.create({ id: "ann", parentId: "team-b", cascade: true });
  const { key } = await createKey(stage.limiter.repository, "ann", undefined);
  const headers = { authorization: `Bearer ${key}` };
  await (await stage.ask(CHAT, asked, { headers })).text();
  const shown = async () => new Set((await usageOf(key)).limits.map((each) => each.entity_id));
  expect(await shown()).toEqual(new Set(["ann"]));
  await stage.restart({ showAncestors: true });
  expect(await shown()).toEqual(new Set(["ann", "team-b"]));
});

test("an answer is given again for five seconds, and models beyond twenty are left out", async () => {
  const models = Array.from({ length: 22 }, (_, at) => `model-${at}`);
  for (const resource of models) {
    stage.nowMs += 1;
    const lease = await stage.limiter.acquire({
      entityId: "team-a",
      resource,
      consume: { rpd: 1 },
    });
    await lease.commit();
  }
  const first = await usageOf();
  expect(new Set(first.limits.map(({ resource }) => resource)).size).toBe(20);
  expect(first.limits[0]?.resource).toBe("model-21");
  expect(first.has_more).toBe(true);
  await (await stage.ask(CHAT, asked)).text();
  stage.nowMs += 4000;
  expect(await usageOf()).toEqual(first);
  stage.nowMs += 1001;
  expect((await usageOf()).limits[0]?.resource).toBe(Stage.MODEL);
});

test("usage needs a key and GET", async () => {
  const unknown = await stage.ask(USAGE, undefined, { headers: { authorization: "Bearer no" } });
  expect(unknown.status).toBe(401);
  expect((await stage.ask(USAGE, {})).status).toBe(405);
});

test("a model that is switched off is left out, and an entity that is switched off gets a 403", async () => {
  const { limits } = stage.limiter.repository;
  await (await stage.ask(CHAT, asked)).text();
  await limits.disable({ entityId: "team-a", resource: Stage.MODEL });
  expect((await usageOf()).limits).toEqual([]);
});
