/** Processes that share slots, and one that is cut off for longer than its record lasts. */

import type { BucketWarning } from "@zae-limiter/limiter/buckets/bucket-warning.ts";
import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { NO_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type Leg, refundOf, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const LEG: Leg = {
  entityId: "e",
  resource: "r",
  config: configOf(["rpm:100", "parallel:2 concurrent"]),
  amountsMilli: [1000, 2000],
  link: UNLINKED,
  linkIsFresh: true,
};

/** A store in virtual time, for processes that each may lose their way to it. */
function opened() {
  const time = new VirtualTime(1_763_500_000_000);
  const items = new MemoryItemStore({ clock: time.clock });
  const open = () => {
    const state = { isDown: false, delayMs: 0 };
    const warnings: BucketWarning[] = [];
    const store = new Proxy(items, {
      get: (target, name: keyof MemoryItemStore) => {
        const value = target[name];
        if (typeof value !== "function") return value;
        return (...call: never[]) => {
          const act = () => (value as (...all: never[]) => unknown).apply(target, call);
          if (state.delayMs > 0) return time.timer.sleep(state.delayMs).then(act);
          if (!state.isDown) return act();
          return Promise.reject(new RateLimiterUnavailable("down", { nothingWritten: true }));
        };
      },
    });
    const context = { store, namespaceId: "ns", clock: time.clock, random: Math.random };
    const buckets = new DistributedBucketStore(context, {
      ...NO_TRAITS,
      ttlMultiplier: 7,
      timeoutMs: 2000,
      timer: time.timer,
      onWarning: (warning) => warnings.push(warning),
    });
    return { buckets, warnings, state };
  };
  const free = async () => {
    const states = await open().buckets.list("e");
    return states.find(({ limitName }) => limitName === "parallel");
  };
  return { time, open, free };
}

test("slots of a process that is cut off go to another one, and its releases change nothing", async () => {
  const { time, open, free } = opened();
  const [one, other] = [open(), open()];
  const held = await time.until(Promise.resolve(one.buckets.consume([LEG])));
  if (held.outcome !== "granted") throw new Error(held.outcome);
  const [part] = held.legs[0]?.parts ?? [];
  expect(part?.entry).toMatch(/^[A-Za-z0-9]+\.1$/);
  expect(Object.values((await free())?.holders ?? {})).toEqual([2]);

  // A process that lives keeps its slots, however long it needs them.
  await time.pass(600_000);
  expect((await other.buckets.consume([LEG])).outcome).toBe("refused");
  one.state.isDown = true;
  await time.pass(50_000);
  expect((await other.buckets.consume([LEG])).outcome).toBe("refused");
  await time.pass(20_000);
  const taken = await time.until(Promise.resolve(other.buckets.consume([LEG])));
  expect(taken.outcome).toBe("granted");

  one.state.isDown = false;
  await time.pass(30_000);
  expect(one.warnings).toMatchObject([{ kind: "slots_lost", slots: 2 }]);
  for (const refund of refundOf(LEG, held.legs[0]?.parts ?? [])) await one.buckets.refund(refund);
  expect(await free()).toMatchObject({ balanceMilli: 0 });
  expect(Object.values((await free())?.holders ?? {})).toEqual([2]);
  await Promise.all([one.buckets.close(), other.buckets.close()]);
});

test("a call that waited for its turn is refused by the time at which the store was asked", async () => {
  const { time, open } = opened();
  const config = configOf(["b:10/10sec", "parallel:9 concurrent"]);
  const leg = (b: number, slots: number): Leg => {
    return { ...LEG, config, amountsMilli: [b * 1000, slots * 1000] };
  };
  const [one, other] = [open(), open()];
  expect((await one.buckets.consume([leg(9, 1)])).outcome).toBe("granted");
  one.state.delayMs = 1500;
  const before = one.buckets.consume([leg(0, 1)]);
  await time.pass(10);
  const waiting = one.buckets.consume([leg(1, 1)]);
  expect((await other.buckets.consume([leg(1, 0)])).outcome).toBe("granted");
  one.state.delayMs = 0;
  await time.pass(1490);
  expect((await before).outcome).toBe("granted");
  // What was there when it was planned is gone, and as much has accrued since.
  expect((await waiting).outcome).toBe("granted");
  await time.pass(1);
  await Promise.all([one.buckets.close(), other.buckets.close()]);
});

test("a refusal for slots costs nothing for a second, and then a read of the holders", async () => {
  const { time, open } = opened();
  const [one, other] = [open(), open()];
  expect((await one.buckets.consume([LEG])).outcome).toBe("granted");
  const refused = [
    await other.buckets.consume([LEG]),
    await other.buckets.consume([LEG]),
    await other.buckets.consume([LEG]),
  ];
  expect(refused.map((result) => result.outcome === "refused" && result.local)).toEqual([
    false,
    true,
    true,
  ]);
  await time.pass(1);
  await Promise.all([one.buckets.close(), other.buckets.close()]);
});
