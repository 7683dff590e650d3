import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import {
  anthropicMiddleware,
  limitFetch,
  rateLimitMiddleware,
} from "@zae-limiter/limiter/llm/index.ts";
import { expect, test } from "vitest";

/** Passes a value as a caller without types may. */
const wrongly = (value: unknown) => value as RateLimiter;

test.each([
  ["limitFetch", limitFetch],
  ["anthropicMiddleware", anthropicMiddleware],
  ["rateLimitMiddleware", rateLimitMiddleware],
])("%s refuses what is no limiter, and knows a forgotten await", async (_, limited) => {
  const opening = RateLimiter.open("memory:");
  const of = (limiter: unknown) => () => limited(wrongly(limiter), { entityId: "a" });
  expect(of(opening)).toThrow(
    "Invalid limiter: expected a RateLimiter, got a promise; await RateLimiter.open(…)",
  );
  expect(of("memory:")).toThrow('Invalid limiter: expected a RateLimiter, got "memory:"');
  expect(of(undefined)).toThrow("Invalid limiter: expected a RateLimiter, got undefined");
  const limiter = await opening;
  expect(of(limiter)).not.toThrow();
  await limiter.close();
});
