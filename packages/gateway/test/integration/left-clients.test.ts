/** Clients that leave before they have their answer: a provider bills them all the same. */

import { chatAnswer, chatEvents, sse } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, type Reply, stall } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
/** 40 bytes, which are 10 tokens. */
const messages = [{ role: "user", content: "x".repeat(40) }];
const body = { model: Stage.MODEL, messages };

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
});
afterEach(() => stage.stop());

/** Sends a call, and hangs up when the upstream has it; the result makes the upstream answer. */
async function leave(asked: object, reply: Reply): Promise<() => Promise<void>> {
  const leaving = new AbortController();
  let answer = async () => {};
  const arrived = new Promise<void>((resolve) => {
    stage.upstream.replyWith((request, response) => {
      answer = async () => void (await reply(request, response));
      resolve();
    });
  });
  const call = stage.ask(CHAT, asked, { signal: leaving.signal });
  const failed = expect(call).rejects.toThrow("aborted");
  await arrived;
  leaving.abort();
  await failed;
  return answer;
}

const readOn = (outcome: string) =>
  new RegExp(`^zae_limiter_gateway_read_on_total\\{.*"${outcome}".*\\} (\\d+)$`, "m");

test("a plain call whose client leaves is read on, and consumes what its answer says", async () => {
  const answer = await leave(body, json(chatAnswer));
  await expect.poll(() => stage.metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(2);
  await answer();
  await expect.poll(() => stage.metric(readOn("complete"))).toBe(1);
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 21 });
  expect(stage.upstream.hungUp).toBe(0);
});

test("beyond the bound a plain call is charged its max_tokens, and its upstream is hung up", async () => {
  await stage.restart({ readOnMax: 0 });
  await leave({ ...body, max_tokens: 700 }, json(chatAnswer));
  await stage.upstream.untilHungUp(1);
  await expect.poll(() => stage.consumed()).toEqual({ rpd: 1, tpd: 710 });
  expect(await stage.metric(readOn("no place"))).toBe(1);
});

test("without max_tokens it is charged 16,384, or what the upstreams file says", async () => {
  await stage.restart({ readOnMax: 0 });
  await leave(body, json(chatAnswer));
  await expect.poll(() => stage.consumed()).toEqual({ rpd: 1, tpd: 10 + 16_384 });
});

test("a gateway that stops charges the calls that it reads on", async () => {
  await leave({ ...body, max_tokens: 700 }, json(chatAnswer));
  await expect.poll(() => stage.metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(2);
  await stage.gateway.stop(Promise.resolve());
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 710 });
  await stage.restart({});
});

test("a stream whose client leaves ends at once, and consumes what was streamed", async () => {
  stage.upstream.replyWith(stall(chatEvents(["12345678"], "none").slice(0, 2)));
  const leaving = new AbortController();
  const answer = await stage.ask(CHAT, { ...body, stream: true }, { signal: leaving.signal });
  const reader = answer.body?.getReader();
  await reader?.read();
  leaving.abort();
  await stage.upstream.untilHungUp(1);
  await expect.poll(() => stage.consumed()).toEqual({ rpd: 1, tpd: 12 });
});

test("a stream whose client leaves before it has shown anything consumes its estimate", async () => {
  await leave({ ...body, stream: true, max_tokens: 100 }, json(chatAnswer));
  await stage.upstream.untilHungUp(1);
  await expect.poll(() => stage.consumed()).toEqual({ rpd: 1, tpd: 110 });
});

describe("a stream with hidden reasoning whose client leaves after the text", () => {
  const asked = { ...body, stream: true, max_tokens: 100, reasoning_effort: "high" };
  const events = chatEvents(["12345678"]);
  let finish: () => void;

  async function leaveAfterText(): Promise<void> {
    stage.upstream.replyWith(async (request, response) => {
      await stall(events.slice(0, 2))(request, response);
      finish = () => response.end(sse(events.slice(2), { done: true }));
    });
    const leaving = new AbortController();
    const answer = await stage.ask(CHAT, asked, { signal: leaving.signal });
    await answer.body?.getReader().read();
    leaving.abort();
  }

  test("a stream with hidden reasoning is read on, and consumes what its usage says", async () => {
    await leaveAfterText();
    await expect.poll(() => stage.metric(/^zae_limiter_gateway_open_requests (\d+)$/m)).toBe(2);
    finish();
    await expect.poll(() => stage.metric(readOn("complete"))).toBe(1);
    expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 21 });
  });

  test("a stream with hidden reasoning is charged its max_tokens beyond the bound", async () => {
    await stage.restart({ readOnMax: 0 });
    await leaveAfterText();
    await stage.upstream.untilHungUp(1);
    await expect.poll(() => stage.consumed()).toEqual({ rpd: 1, tpd: 110 });
  });
});

test("a stream of lines that end with CR alone is read", async () => {
  const events = sse(chatEvents(["12345678"]), { done: true }).replaceAll("\n", "\r");
  stage.upstream.replyWith((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events);
  });
  await (await stage.ask(CHAT, { ...body, stream: true })).text();
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 21 });
});

test("an answer that is compressed without being asked for is charged as beyond the bound", async () => {
  const headers = { "content-encoding": "x-unknown" };
  stage.upstream.replyWith(json(chatAnswer, 200, headers));
  await (await stage.ask(CHAT, { ...body, max_tokens: 50 })).arrayBuffer();
  expect(await stage.consumed()).toEqual({ rpd: 1, tpd: 60 });
});
