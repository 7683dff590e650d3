/** Quotas and sessions in front of a provider: what users read when they are used up. */

import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const ASKED = { model: Stage.MODEL, max_tokens: 5 };
const PATHS = [
  ["/v1/chat/completions", { ...ASKED, messages: "hi" }],
  ["/v1/messages", { ...ASKED, messages: [{ role: "user", content: "hi" }] }],
] as const;

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
});
afterEach(() => stage.stop());

async function refused(limit: string, path: string, body: object) {
  await stage.limiter.repository.limits.setSystem([limit]);
  stage.upstream.replyWith(json({ usage: { prompt_tokens: 1, completion_tokens: 1 } }));
  expect((await stage.ask(path, body)).status).toBe(200);
  const answer = await stage.ask(path, body);
  expect(answer.status).toBe(429);
  return { headers: answer.headers, body: (await answer.json()) as { error: { message: string } } };
}

test.each(PATHS)(
  "a quota that is used up says on %s when it resets, by the clock of its zone",
  async (path, body) => {
    const { headers, body: shown } = await refused("rpm:1/month Europe/Berlin", path, body);
    expect(shown.error.message).toContain("(resets 2023-12-01 00:00 Europe/Berlin)");
    expect(headers.get("x-should-retry")).toBe("false");
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(86_400);
  },
);

test.each(PATHS)("a session that is used up says on %s when it ends", async (path, body) => {
  const { headers, body: shown } = await refused("rpm:1/session:5hour", path, body);
  expect(shown.error.message).toMatch(/\(resets 2023-11-\d\d \d\d:\d\d(?::\d\d)? UTC\)/);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(17_990);
});
