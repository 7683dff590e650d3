/** Refill over long times and in small pieces: exact, and nothing beyond full. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { milliOf } from "./balances.ts";
import { refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };

export function refillContract(store: StoreUnderTest): void {
  const { expect, extra, test, testUnless } = store.cases;

  // The arithmetic is the same there.
  testUnless(store.remote ? "8,640 writes take a remote store half a minute" : undefined)(
    "refill gives a slow limit next to a fast one exactly its tokens",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem([Limit.perSecond("rps", 1000), Limit.perDay("rpd", 5)]);
      const slow = () => milliOf(subject, "user-1", "gpt-4", "rpd");
      await limiter.acquire({ ...USER, consume: { rps: 1, rpd: 5 } });
      expect(await slow()).toEqual({ balance: 0, consumed: 5000 });
      const startMs = time.nowMs;
      let taken = 0;
      for (let call = 1; call <= 8640; call += 1) {
        time.advance(10_000);
        await limiter.acquire({ ...USER, consume: { rps: 1000 } });
        if (call % 1728 !== 0) continue;
        // A fifth of a day is one token, to the milli.
        expect(await slow()).toMatchObject({ balance: 1000 });
        await limiter.acquire({ ...USER, consume: { rpd: 1 } });
        taken += 1;
        await refusalOf(limiter.acquire({ ...USER, consume: { rpd: 1 } }));
      }
      expect(time.nowMs - startMs).toBe(86_400_000);
      expect(taken).toBe(5);
      expect(await slow()).toEqual({ balance: 0, consumed: 10_000 });
    },
  );

  extra("refill gives a slow limit its tokens in fewer, uneven steps", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    const request = { ...USER, limits: [Limit.perSecond("rps", 1000), Limit.perDay("rpd", 5)] };
    await limiter.acquire({ ...request, consume: { rps: 1, rpd: 5 } });
    for (const stepMs of [17_279_999, 1, 7, 993, 12_345_678, 4_933_322]) {
      time.advance(stepMs);
      await limiter.acquire({ ...request, consume: { rps: 1 } });
    }
    // 34,560,000 ms are two fifths of a day.
    expect(await milliOf(subject, "user-1", "gpt-4", "rpd")).toEqual({
      balance: 2000,
      consumed: 5000,
    });
  });

  test("refill admits exactly the capacity after idling, as fast as anybody can ask", async () => {
    const { limiter, time } = await store.open();
    const limits = ["rpm:100"];
    await limiter.acquire({ ...USER, limits, consume: { rpm: 100 } });
    time.advance(60_000);
    // Full again; and the same time once more, which is gone.
    time.advance(60_000);
    const rpm = store.remote ? 5 : 1;
    const asked = Array.from({ length: 200 / rpm }, () =>
      limiter.tryAcquire({ ...USER, limits, consume: { rpm } }),
    );
    const granted = (await Promise.all(asked)).filter((decision) => decision.granted).length;
    expect(granted * rpm).toBe(100);
  });

  extra("refill never admits more than capacity and refill, whatever the pieces", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    const limits = ["rpm:7"];
    let granted = 0;
    let elapsedMs = 0;
    for (let call = 0; call < (store.remote ? 40 : 400); call += 1) {
      const stepMs = (call * 7919) % 5003;
      time.advance(stepMs);
      elapsedMs += stepMs;
      const decision = await limiter.tryAcquire({ ...USER, limits, consume: { rpm: 1 } });
      if (decision.granted) granted += 1;
      expect(granted).toBeLessThanOrEqual(7 + (elapsedMs * 7) / 60_000);
    }
    // It was asked for more than it had all the time, so nothing was lost either.
    expect(granted).toBeGreaterThan(7 + (elapsedMs * 7) / 60_000 - 2);
    expect(await milliOf(subject, "user-1", "gpt-4", "rpm")).toMatchObject({
      consumed: granted * 1000,
    });
  });
}
