/** How long slots are held: up to `maxHoldSeconds`, and learned however they come back. */

import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { failureOf, refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const R = "gpt-4";
const PLACE = { entityId: "key-1", resource: R };
const CALL = { ...PLACE, consume: { parallel: 1, rpm: 1 } };
const HOUR_MS = 3_600_000;
const SLOTLESS = "the store holds no slots";

export function slotsHeldContract(store: StoreUnderTest): void {
  const { expect, testUnless } = store.cases;
  const test = testUnless(store.slots ? undefined : SLOTLESS);

  async function opened(): Promise<Subject & { warnings: LimiterWarning[] }> {
    const warnings: LimiterWarning[] = [];
    const onWarning = (warning: LimiterWarning) => {
      warnings.push(warning);
    };
    const subject = await store.open({ virtualTimer: true, onWarning });
    await subject.repo.limits.setResource(R, ["parallel:1 concurrent", "rpm:1000"]);
    return { ...subject, warnings };
  }

  test("a slot that is held for longer than the call may hold it comes back", async () => {
    const { limiter, time, warnings } = await opened();
    // Less than a third of the expiry of a server: virtual time would not wait for its answer to a
    // renewal, and pass the expiry meanwhile.
    const lease = await limiter.acquire({ ...CALL, maxHoldSeconds: 15 });
    await time.pass(14_000);
    expect((await limiter.available(PLACE)).parallel).toBe(0);
    await time.pass(2000);
    await time.settle();
    expect((await limiter.available(PLACE)).parallel).toBe(1);
    expect(lease.consumed).toEqual({ rpm: 1 });
    expect(warnings).toEqual([{ kind: "slot_overdue", entityId: "key-1", resource: R, slots: 1 }]);
    const other = await limiter.acquire(CALL);
    // The lease is open, and gives back no slot of another call.
    lease.adjust({ rpm: 4 });
    await lease.commit();
    expect((await limiter.available(PLACE)).parallel).toBe(0);
    await other.commit();
    expect((await limiter.available(PLACE)).parallel).toBe(1);
  });

  test("a lease that ends in time is not overdue, nor is one that gave its slots back", async () => {
    const { limiter, time, warnings } = await opened();
    const ended = await limiter.acquire({ ...CALL, maxHoldSeconds: 10 });
    await ended.commit();
    const released = await limiter.acquire({ ...CALL, maxHoldSeconds: 10 });
    released.release({ parallel: 1 });
    await released.flush();
    await time.pass(20_000);
    expect(warnings).toEqual([]);
    await released.commit();
    const held = await limiter.acquire({ ...CALL, maxHoldSeconds: 1e6 });
    await held.commit();
  });

  test("slots that a lease takes later are overdue, too", async () => {
    const { limiter, time, warnings } = await opened();
    const first = { ...PLACE, consume: { rpm: 1 }, maxHoldSeconds: 10 };
    const lease = await limiter.acquire(first);
    await time.pass(20_000);
    await lease.consume({ parallel: 1 });
    expect((await limiter.available(PLACE)).parallel).toBe(0);
    await time.pass(11_000);
    await time.settle();
    expect((await limiter.available(PLACE)).parallel).toBe(1);
    expect(warnings).toHaveLength(1);
    await lease.commit();
  });

  test("a call holds its slots for more than no time", async () => {
    const { limiter } = await opened();
    for (const maxHoldSeconds of [0, -1, Number.NaN, "60" as unknown as number]) {
      const failure = await failureOf(limiter.acquire({ ...CALL, maxHoldSeconds }));
      expect(failure).toBeInstanceOf(ValidationError);
    }
  });

  const counted = store.aggregated ? "no aggregator runs here" : undefined;
  testUnless(store.slots ? counted : SLOTLESS)(
    "usage has the most slots that were held at once in a window",
    async () => {
      const { limiter, repo, time } = await opened();
      await repo.limits.setResource(R, ["parallel:9 concurrent", "rpm:1000"]);
      const take = (parallel: number) =>
        limiter.acquire({ ...PLACE, consume: { parallel, rpm: 1 } });
      const peaks = async (window: "hourly" | "daily") => {
        const { snapshots } = await repo.usage.snapshots({ ...PLACE, window });
        return snapshots.map((each) => [each.peaks?.["parallel"], each.counters] as const);
      };
      time.advance(HOUR_MS - (time.nowMs % HOUR_MS));
      const leases = [await take(3), await take(4)];
      await leases.pop()?.commit();
      expect(await peaks("hourly")).toEqual([[7, { rpm: 2 }]]);
      await (await take(2)).commit();
      expect(await peaks("hourly")).toEqual([[7, { rpm: 3 }]]);
      time.advance(HOUR_MS);
      // The next hour begins with three that are held still.
      await (await take(1)).commit();
      await leases.pop()?.commit();
      time.advance(HOUR_MS);
      await (await take(2)).commit();
      expect(await peaks("hourly")).toEqual([
        [2, { rpm: 1 }],
        [4, { rpm: 1 }],
        [7, { rpm: 3 }],
      ]);
      expect(Math.max(...(await peaks("daily")).map(([peak = 0]) => peak))).toBe(7);
      const buckets = await repo.buckets.list("key-1");
      const slots = buckets.find(({ limitName }) => limitName === "parallel");
      expect(slots?.totalConsumed).toBe(0);
    },
  );

  testUnless(store.slots ? counted : SLOTLESS)(
    "a bypassed call holds nothing, and is no part of the most slots that were held",
    async () => {
      const { limiter, repo } = await opened();
      await (await limiter.acquire(CALL)).commit();
      await repo.limits.bypass({ resource: R });
      for (let call = 0; call < 4; call += 1) {
        const lease = await limiter.acquire({ ...PLACE, consume: { parallel: 5, rpm: 1 } });
        await (call % 2 === 0 ? lease.commit() : lease.rollback());
      }
      const { snapshots } = await repo.usage.snapshots({ ...PLACE, window: "hourly" });
      expect(snapshots.map((each) => each.peaks?.["parallel"])).toEqual([1]);
      const buckets = await repo.buckets.list("key-1");
      const slots = buckets.find(({ limitName }) => limitName === "parallel");
      expect(slots).toMatchObject({ tokens: 1, totalConsumed: 0 });
    },
  );

  test("slots that are given back early are learned from, as others are", async () => {
    const { limiter, time } = await opened();
    for (let call = 0; call < 5; call += 1) {
      const lease = await limiter.acquire(CALL);
      await time.pass(8000);
      lease.release({ parallel: 1 });
      await lease.flush();
      await time.pass(60_000);
      await lease.commit();
    }
    const held = await limiter.acquire(CALL);
    const refusal = await refusalOf(limiter.acquire(CALL));
    expect(refusal.retryAfterSeconds).toBeGreaterThan(6);
    expect(refusal.retryAfterSeconds).toBeLessThan(10);
    await held.commit();
  });
}
