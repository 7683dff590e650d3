import { RateLimiter, ValidationError } from "@zae-limiter/limiter/index.ts";
import { expect, test } from "vitest";

const request = { entityId: "key-1", resource: "gpt-4", limits: ["rpm:100"], consume: { rpm: 1 } };

test("a clock with fractions of a millisecond is made whole", async () => {
  let now = 1_800_000_000_000.25;
  const limiter = await RateLimiter.open("memory:", { clock: () => now });
  await limiter.repository.limits.setSystem(["rpm:100"]);
  await limiter.acquire(request);
  now += 300.5;
  const [state] = await limiter.repository.buckets.list("key-1");
  expect(state?.tokens).toBe(99);
  expect(Number.isInteger(state?.lastRefillMs)).toBe(true);
  await limiter.close();
});

test("a clock that tells no time is refused, with nothing taken", async () => {
  let now = 1_800_000_000_000;
  const limiter = await RateLimiter.open("memory:", { clock: () => now });
  now = Number.NaN;
  await expect(limiter.acquire(request)).rejects.toThrow(ValidationError);
  now = 1_800_000_000_000;
  expect(await limiter.repository.buckets.list("key-1")).toEqual([]);
  await limiter.close();
});
