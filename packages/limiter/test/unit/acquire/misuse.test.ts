/** Wrong arguments are refused before anything happens, with what was expected and what came. */

import {
  type AcquireRequest,
  InfrastructureError,
  RateLimiter,
  Repository,
  ValidationError,
} from "@zae-limiter/limiter/index.ts";
import { describe, expect, test } from "vitest";

const request = { entityId: "key-1", resource: "gpt-4", limits: ["rpm:5"], consume: { rpm: 1 } };

/** Passes a value as a caller without types may do. */
const wrongly = <T>(value: unknown) => value as T;

describe("misuse", () => {
  test.each([
    ["a map, which would charge nothing", { ...request, consume: new Map([["rpm", 1000]]) }],
    ["a date", { ...request, consume: new Date(0) }],
    ["a typo in the request", { ...request, maxWait: 5 }],
    ["no request at all", null],
    ["a list", []],
  ])("the method acquire refuses %s", async (_, wrong) => {
    const limiter = await RateLimiter.open("memory:");
    await expect(limiter.acquire(wrongly<AcquireRequest>(wrong))).rejects.toThrow(ValidationError);
    expect(await limiter.repository.buckets.list("key-1")).toEqual([]);
    await limiter.close();
  });

  test("reads refuse what is no request", async () => {
    const limiter = await RateLimiter.open("memory:");
    for (const wrong of [null, undefined, 5, { ...request }]) {
      const given = wrongly<AcquireRequest>(wrong);
      await expect(limiter.status(given)).rejects.toThrow(ValidationError);
      await expect(limiter.available(given)).rejects.toThrow(ValidationError);
    }
    await limiter.close();
  });

  test("an option of open that is not known is refused with the options of limiter and store", async () => {
    const opened = RateLimiter.open("memory:", wrongly<object>({ missingLimit: "ignore" }));
    await expect(opened).rejects.toThrow(
      /"missingLimit" is not an option.*missingLimits.*timeoutMs/,
    );
  });

  test("run needs a function, and takes nothing without one", async () => {
    const limiter = await RateLimiter.open("memory:");
    const work = wrongly<() => void>(undefined);
    await expect(limiter.run(request, work)).rejects.toThrow(ValidationError);
    expect(await limiter.repository.buckets.list("key-1")).toEqual([]);
    await limiter.close();
  });

  test("a limiter needs a repository and an object of options", async () => {
    for (const wrong of [undefined, null, {}, 5, "memory:"]) {
      expect(() => new RateLimiter(wrongly<Repository>(wrong))).toThrow(ValidationError);
    }
    const repo = await Repository.open("memory:");
    for (const wrong of [null, 5, []]) {
      expect(() => new RateLimiter(repo, wrongly<object>(wrong))).toThrow(ValidationError);
      await expect(RateLimiter.open("memory:", wrongly<object>(wrong))).rejects.toThrow(
        ValidationError,
      );
    }
    await repo.close();
  });

  test("the check isAvailable refuses options that it does not know", async () => {
    const limiter = await RateLimiter.open("memory:");
    const asked = limiter.isAvailable(wrongly<object>({ timeout: 100 }));
    await expect(asked).rejects.toThrow(/"timeout"/);
    await limiter.close();
  });

  test("the check isAvailable never throws by its values", async () => {
    const limiter = await RateLimiter.open("memory:");
    expect(await limiter.isAvailable(wrongly<object>(null))).toBe(true);
    expect(await limiter.isAvailable({ timeoutMs: -1 })).toBe(false);
    expect(await limiter.isAvailable({ timeoutMs: Number.NaN })).toBe(false);
    await limiter.close();
    expect(await limiter.isAvailable()).toBe(false);
  });

  test("a closed memory store refuses everything, as the others do", async () => {
    const limiter = await RateLimiter.open("memory:");
    const repo = limiter.repository;
    await limiter.close();
    for (const use of [
      () => repo.entities.create({ id: "late" }),
      () => repo.limits.setSystem(["rpm:1"]),
      () => repo.buckets.list("key-1"),
      () => repo.namespace("default"),
      () => new RateLimiter(repo).tryAcquire(request),
    ]) {
      await expect(use()).rejects.toThrow(InfrastructureError);
    }
  });
});
