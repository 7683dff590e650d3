/** The double that keeps a bill: what it bills is what providers bill. */

import {
  BillingUpstream,
  type CallPlan,
  promptOf,
} from "@zae-limiter/test-support/llm/billing-upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";

const PLAN = "plan-1";
const INPUT = 10;
const TEXT = 20;
const REASONING = 30;

let upstream: BillingUpstream;
beforeEach(async () => {
  upstream = await BillingUpstream.start();
});
afterEach(() => upstream.stop());

function plan(more: Partial<CallPlan> = {}): void {
  upstream.plan(PLAN, { text: TEXT, reasoning: REASONING, ...more });
}

function send(more: object = {}, signal?: AbortSignal): Promise<Response> {
  const messages = [{ role: "user", content: promptOf(PLAN, INPUT) }];
  const body = JSON.stringify({ model: "gpt-4o", messages, ...more });
  const options = signal === undefined ? {} : { signal };
  return fetch(`${upstream.url}/v1/chat/completions`, { method: "POST", body, ...options });
}

const billed = () => upstream.bill.map(({ input, output }) => [input, output]);

test("a whole answer costs its prompt, its text and its reasoning", async () => {
  plan();
  for (const stream of [false, true]) await (await send({ stream })).text();
  expect(billed()).toEqual([
    [INPUT, TEXT + REASONING],
    [INPUT, TEXT + REASONING],
  ]);
});

test("a stream that is hung up costs what was generated so far", async () => {
  plan({ reasoning: 0, fates: [{ kind: "hold", at: 0.5 }] });
  const abort = new AbortController();
  const sent = send({ stream: true }, abort.signal).then((answer) => answer.text());
  await upstream.reached(PLAN);
  abort.abort();
  await expect(sent).rejects.toThrow();
  const output = upstream.bill[0]?.output ?? 0;
  expect(output).toBeGreaterThan(5);
  expect(output).toBeLessThan(15);
});

test("a plain call that is hung up costs all of it", async () => {
  plan({ fates: [{ kind: "hold", at: 0 }] });
  const abort = new AbortController();
  const sent = send({}, abort.signal);
  await upstream.reached(PLAN);
  abort.abort();
  await expect(sent).rejects.toThrow();
  expect(billed()).toEqual([[INPUT, TEXT + REASONING]]);
});

test("an error before work costs nothing, and one with usage costs it", async () => {
  plan({ fates: [{ kind: "status", status: 503 }] });
  expect((await send()).status).toBe(503);
  expect(billed()).toEqual([]);
  plan({ fates: [{ kind: "status", status: 500, hasUsage: true }] });
  const { usage } = (await (await send()).json()) as { usage: { completion_tokens: number } };
  expect(billed()).toEqual([[INPUT, usage.completion_tokens]]);
});

test("a connection that dies costs what was worked for", async () => {
  plan({ fates: [{ kind: "reset", at: -1, hasWorked: false }] });
  await expect(send()).rejects.toThrow();
  expect(billed()).toEqual([]);
  plan({ fates: [{ kind: "reset", at: 0.5, hasWorked: true }] });
  await expect(send().then((answer) => answer.text())).rejects.toThrow();
  expect(billed()).toEqual([[INPUT, TEXT + REASONING]]);
});
