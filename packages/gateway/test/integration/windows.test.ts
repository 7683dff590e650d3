/** Limits with other numbers at other hours, through a gateway. */

import { Limit } from "@zae-limiter/limiter/index.ts";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const body = { model: Stage.MODEL, messages: [{ role: "user", content: "hello" }] };
const TEN = Date.parse("2027-01-15T10:00Z");
/** Ten a minute, and two an hour from nine to ten. */
const RPM = Limit.parse("rpm:10/min").withSchedule([{ when: "9-10", limit: "rpm:2/hour" }]);

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  stage.upstream.replyWith(json(chatAnswer));
  stage.nowMs = TEN - 30_000;
  await stage.limiter.repository.limits.setSystem([RPM]);
});
afterEach(() => stage.stop());

test("a gateway refuses by the window that is open, says when, and passes after its end", async () => {
  for (const left of [1, 0]) {
    const passed = await stage.ask(CHAT, body);
    expect(passed.status).toBe(200);
    expect(passed.headers.get("ratelimit-policy")).toBe('"rpm";q=2;w=3600');
    expect(passed.headers.get("ratelimit")).toContain(`"rpm";r=${left};t=`);
    await passed.text();
  }
  const refused = await stage.ask(CHAT, body);
  expect(refused.status).toBe(429);
  // Until ten a sixtieth of a token comes back, and the rest in less than six seconds.
  expect(refused.headers.get("retry-after")).toBe("36");
  const { error } = (await refused.json()) as { error: { message: string } };
  expect(error.message).toContain("rpm");
  stage.nowMs = TEN;
  expect((await stage.ask(CHAT, body)).status).toBe(429);
  stage.nowMs = TEN + 6000;
  const later = await stage.ask(CHAT, body);
  expect(later.status).toBe(200);
  expect(later.headers.get("ratelimit-policy")).toBe('"rpm";q=10;w=60');
});
