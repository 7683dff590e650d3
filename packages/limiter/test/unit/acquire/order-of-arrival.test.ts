/** A call keeps the place that it came at, also when it asks the store before it waits. */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const WAITING = { entityId: "key-1", resource: "gpt-4", maxWaitSeconds: 1000 };

/** A store whose reads take ten milliseconds from the end of the set-up on. */
function distant(items: ItemStore, time: VirtualTime, setUp: { isOver: boolean }): ItemStore {
  const get: ItemStore["get"] = async (...call) => {
    if (setUp.isOver) await time.timer.sleep(10);
    return items.get(...call);
  };
  return new Proxy(items, {
    get(target, name) {
      const value = name === "get" ? get : Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a call that seemed to fit and was refused goes before those that came while it asked", async () => {
  const time = new VirtualTime(1_800_000_000_000);
  const setUp = { isOver: false };
  const store = distant(new MemoryItemStore(), time, setUp);
  const options = { clock: time.clock, timer: time.timer, configCacheTtlSeconds: 3600 };
  const limiter = new RateLimiter(await overTable(store, options));
  await limiter.repository.limits.setSystem(["b:2/200sec", "c:1/200sec"]);
  const startMs = time.nowMs;
  await limiter.acquire({ ...WAITING, consume: { b: 2, c: 1 } });
  setUp.isOver = true;
  await time.pass(50_000);
  // The queue of this call knows that there is less than one token of b: half of one.
  const ofC = limiter.tryAcquire({ ...WAITING, consume: { c: 1 } });
  await time.pass(2000);
  const first = limiter.tryAcquire({ ...WAITING, consume: { b: 1 } });
  await time.pass(1);
  const second = limiter.tryAcquire({ ...WAITING, consume: { b: 1, c: 1 } });
  const decision = await time.until(first);
  expect(decision.granted).toBe(true);
  // At 100 seconds there is a token of b. The second one waits for c, with a claim to the next b.
  expect((time.nowMs - startMs) / 1000).toBeCloseTo(100, 0);
  await time.until(Promise.all([ofC, second]));
  await limiter.close();
});
