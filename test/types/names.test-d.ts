import {
  type AcquireRequest,
  type Amounts,
  type Decision,
  type Lease,
  RateLimiter as Limiter,
  type RateLimiter,
  type Repository,
} from "@zae-limiter/limiter/index.ts";
import { describe, expectTypeOf, test } from "vitest";

type Names = "rpm" | "tpm";
const KEY = { entityId: "key-1", resource: "gpt-4" };

describe("names of limits that are given", () => {
  test("names of limits that are given are checked wherever a caller writes them", () => {
    const use = async (limiter: RateLimiter<Names>) => {
      await limiter.acquire({ ...KEY, consume: { rpm: 1 } });
      // @ts-expect-error A typo is an error before anything runs.
      await limiter.acquire({ ...KEY, consume: { rmp: 1 } });
      // @ts-expect-error The same without an error on refusal.
      await limiter.tryAcquire({ ...KEY, consume: { rpm: 1, tmp: 500 } });
      await limiter.run({ ...KEY, consume: { rpm: 1, tpm: 500 } }, async (lease) => {
        lease.settle({ tpm: 730 });
        lease.settle({ tpm: undefined });
        await lease.consume({ tpm: 1 });
        // @ts-expect-error The lease knows the names too.
        lease.adjust({ tmp: 1 });
        // @ts-expect-error And for every operation.
        lease.settle({ total: 730 });
        expectTypeOf(lease.consumed.tpm).toEqualTypeOf<number | undefined>();
      });
      // @ts-expect-error A question names limits as well.
      await limiter.timeUntilAvailable({ ...KEY, needed: { rmp: 1 } });
      const available = await limiter.available(KEY);
      expectTypeOf(available).toEqualTypeOf<Partial<Record<Names, number>>>();
    };
    expectTypeOf(use).toBeFunction();
  });

  test("names of limits that are given are chosen when the limiter is opened or made", () => {
    const make = async (repository: Repository) => {
      expectTypeOf(new Limiter<Names>(repository)).toEqualTypeOf<RateLimiter<Names>>();
      expectTypeOf(await Limiter.open<Names>("memory:")).toEqualTypeOf<RateLimiter<Names>>();
    };
    expectTypeOf(make).toBeFunction();
  });

  test("names of limits that are given do not keep a limiter from code that takes any", () => {
    expectTypeOf<RateLimiter<Names>>().toExtend<RateLimiter>();
    expectTypeOf<Lease<Names>>().toExtend<{ settle(amounts: { rpm: number }): void }>();
  });
});

describe("names of limits that are not given", () => {
  test("names of limits that are not given may be any text", () => {
    const use = async (limiter: RateLimiter, name: string) => {
      const request: AcquireRequest = { ...KEY, consume: { [name]: 1, anything: 2 } };
      const decision: Decision = await limiter.tryAcquire(request);
      if (!decision.granted) return decision.retryAfterHeader;
      decision.lease.adjust({ [name]: -1 });
      return decision.lease.consumed;
    };
    expectTypeOf(use).returns.toEqualTypeOf<Promise<string | Readonly<Record<string, number>>>>();
    expectTypeOf<Amounts>().toEqualTypeOf<Readonly<Record<string, number>>>();
    expectTypeOf<Awaited<ReturnType<RateLimiter["available"]>>>().toEqualTypeOf<
      Record<string, number>
    >();
    expectTypeOf(new Limiter({} as Repository)).toEqualTypeOf<RateLimiter>();
  });
});
