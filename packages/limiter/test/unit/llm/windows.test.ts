/** Calls in code whose limits have other numbers at other hours. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import { expect, test } from "vitest";

const URL = "https://api.openai.com/v1/chat/completions";
const NINE = Date.parse("2027-01-15T09:00Z");
const usage = { prompt_tokens: 9, completion_tokens: 3 };

test("a call in code is refused by the window that is open, with the time until it passes", async () => {
  let now = NINE;
  const limiter = await RateLimiter.open("memory:", { clock: () => now });
  const rpm = Limit.parse("rpm:10/min").withSchedule([{ when: "9-10", limit: "rpm:1/hour" }]);
  await limiter.repository.limits.setSystem([rpm]);
  const upstream = async () => Response.json({ usage });
  const fetch = limitFetch(limiter, { entityId: "a", fetch: upstream });
  const body = JSON.stringify({ model: "gpt-4o", messages: [] });
  const call = () => fetch(URL, { method: "POST", body });
  expect((await call()).status).toBe(200);
  now = NINE + 3_600_000 - 30_000;
  const refused = await call();
  expect(refused.status).toBe(429);
  // The token of that hour is whole again when the window closes.
  const waitMs = Number(refused.headers.get("retry-after-ms"));
  expect(waitMs).toBeGreaterThanOrEqual(30_000);
  expect(waitMs).toBeLessThan(30_100);
  now += waitMs;
  expect((await call()).status).toBe(200);
  await limiter.close();
});
