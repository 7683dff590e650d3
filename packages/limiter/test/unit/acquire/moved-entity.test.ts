/** A move is noticed by processes that only refuse, within the second that a refusal may be old. */

import { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const call = { entityId: "child", resource: "api", consume: { rpd: 1 } };
const parentsCall = { ...call, entityId: "parent" };

/** Two processes; both have consumed for a child, which cascades to its parent. */
async function opened() {
  const time = new VirtualTime();
  const table = new SimulatedTable({ time, seed: 1 });
  const open = () => table.process().open({ configCacheTtlSeconds: 2 });
  const [mover, caller] = [await time.until(open()), await time.until(open())];
  const { entities, limits } = mover.repository;
  await time.until(limits.setResource("api", ["rpd:10/day"]));
  await time.until(entities.create({ id: "parent" }));
  await time.until(entities.create({ id: "child", parentId: "parent", cascade: true }));
  await time.until(caller.acquire(call));
  return { time, mover, caller };
}

test("a child that has left its exhausted parent is refused by it for a second at most", async () => {
  const { time, mover, caller } = await opened();
  await time.until(caller.acquire({ ...parentsCall, consume: { rpd: 9 } }));
  expect((await time.until(caller.tryAcquire(call))).granted).toBe(false);
  await time.until(mover.repository.entities.setParent("child", null));
  // The parent goes on refusing its own calls, so its state is known all the time.
  for (let tries = 0; tries < 3; tries += 1) {
    await time.pass(500);
    await time.until(caller.tryAcquire(parentsCall));
  }
  expect((await time.until(caller.tryAcquire(call))).granted).toBe(true);
});

test("a child that has left a parent that is switched off is granted at once", async () => {
  const { time, mover, caller } = await opened();
  const { entities, limits } = mover.repository;
  await time.until(limits.disable({ entityId: "parent" }));
  await time.pass(3000);
  await expect(time.until(caller.acquire(call))).rejects.toThrow(ResourceDisabled);
  await time.until(entities.setParent("child", null));
  await time.pass(1100);
  expect((await time.until(caller.tryAcquire(call))).granted).toBe(true);
});

test("a child without a bucket is refused by the parent it has left for a second at most", async () => {
  const { time, mover, caller } = await opened();
  const { entities } = mover.repository;
  const late = { ...call, entityId: "late" };
  await time.until(entities.create({ id: "late", parentId: "parent", cascade: true }));
  await time.until(caller.acquire({ ...parentsCall, consume: { rpd: 9 } }));
  expect((await time.until(caller.tryAcquire(late))).granted).toBe(false);
  await time.until(entities.setParent("late", null));
  for (let tries = 0; tries < 3; tries += 1) {
    await time.pass(500);
    await time.until(caller.tryAcquire(parentsCall));
  }
  expect((await time.until(caller.tryAcquire(late))).granted).toBe(true);
});

test("a queue that goes by cached states refuses for a second at most, not for two", async () => {
  const { time, mover, caller } = await opened();
  await time.until(caller.acquire({ ...parentsCall, consume: { rpd: 9 } }));
  expect((await time.until(caller.tryAcquire(call))).granted).toBe(false);
  await time.until(mover.repository.entities.setParent("child", null));
  await time.pass(800);
  // The answer to this waiter goes by states that were shown before the move.
  const waiting = caller.tryAcquire({ ...call, maxWaitSeconds: 86_400 });
  await time.pass(800);
  expect((await time.until(caller.tryAcquire(call))).granted).toBe(true);
  expect((await time.until(waiting)).granted).toBe(true);
});
