/** Costs of calls with slots: requests, and the units that DynamoDB would bill. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { describeDynamo } from "./limiter-stores.ts";

const CALL = { entityId: "key-1", resource: "openai/gpt-4" };
const TOKENS = { rpm: 1, tpm: 500 };
const ONE = { calls: 1, read: 0, write: 1 };
const NOTHING = { calls: 0, read: 0, write: 0 };

describeDynamo("the price of slots", (store) => {
  async function opened(slots: number) {
    const calls: StoreCall[] = [];
    const onCall = (call: StoreCall) => void calls.push(call);
    const subject = await store.open({ onCall, configCacheTtlSeconds: 1e9 });
    const limits = [`parallel:${slots} concurrent`, "rpm:1000", "tpm:100000"];
    await subject.repo.limits.setSystem(limits);
    const { limiter } = subject;
    const warm = await limiter.acquire({ ...CALL, consume: { parallel: 1, ...TOKENS } });
    await warm.commit();
    const priceOf = async (work: () => Promise<unknown>) => {
      calls.splice(0);
      await work();
      const sum = (units: (call: StoreCall) => number) =>
        calls.reduce((total, call) => total + units(call), 0);
      const read = sum(({ readUnits }) => readUnits);
      return { calls: calls.length, read, write: sum(({ writeUnits }) => writeUnits) };
    };
    return { ...subject, priceOf };
  }

  it("a warm call with a slot costs a unit, and one more to give it back with its tokens", async () => {
    const { limiter, priceOf } = await opened(5);
    for (const settled of [200, 500, 900]) {
      const consume = { parallel: 1, ...TOKENS };
      let lease: Awaited<ReturnType<typeof limiter.acquire>> | undefined;
      expect(
        await priceOf(async () => {
          lease = await limiter.acquire({ ...CALL, consume });
        }),
      ).toEqual(ONE);
      lease?.settle({ tpm: settled });
      expect(await priceOf(async () => lease?.commit())).toEqual(ONE);
    }
    expect((await limiter.available(CALL)).parallel).toBe(5);
  });

  it("a call without slots costs in such a bucket what it costs in any other", async () => {
    const { limiter, priceOf } = await opened(5);
    const request = { ...CALL, consume: TOKENS };
    let lease = await limiter.acquire(request);
    expect(
      await priceOf(async () => {
        lease = await limiter.acquire(request);
      }),
    ).toEqual(ONE);
    expect(await priceOf(() => lease.commit())).toEqual(NOTHING);
    lease = await limiter.acquire(request);
    lease.settle({ tpm: 900 });
    expect(await priceOf(() => lease.commit())).toEqual(ONE);
    lease = await limiter.acquire(request);
    lease.settle({ tpm: 200 });
    expect(await priceOf(() => lease.commit())).toEqual({ calls: 1, read: 0, write: 2 });
  });

  it("a refusal for a slot costs nothing while the last one is known", async () => {
    const { limiter, priceOf } = await opened(1);
    const request = { ...CALL, consume: { parallel: 1, ...TOKENS } };
    const held = await limiter.acquire(request);
    await refusalOf(limiter.acquire(request));
    expect(await priceOf(() => refusalOf(limiter.acquire(request)))).toEqual(NOTHING);
    await held.commit();
  });
});
