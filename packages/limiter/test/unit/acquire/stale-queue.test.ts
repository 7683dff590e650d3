/**
 * The cached state of a queue gets old: refunds, new limits, other clients. No call waits for
 * tokens that are there already, and none is refused by a stale state.
 */

import { RateLimiter, Repository, ResourceDisabled } from "@zae-limiter/limiter/index.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test, vi } from "vitest";

const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const PATIENT = { ...BUCKET, maxWaitSeconds: 90_000 };

/** A bucket of 10 a day, all of which one lease holds, and a call that waits for 5. */
async function held() {
  const time = new VirtualTime(1_800_000_000_000);
  const repo = await Repository.open("memory:", { clock: time.clock, timer: time.timer });
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpd:10/day"]);
  const lease = await limiter.acquire({ ...BUCKET, consume: { rpd: 10 } });
  const waiting = limiter.tryAcquire({ ...PATIENT, consume: { rpd: 5 } });
  await time.settle();
  const asked = vi.spyOn(repo[INTERNALS].buckets, "consume");
  const ask = async (rpd: number) =>
    (await limiter.tryAcquire({ ...BUCKET, consume: { rpd } })).granted;
  return { time, repo, limiter, lease, waiting, asked, ask };
}

describe("what is given back", () => {
  test("a refund goes to the first in the queue at once, and then to others", async () => {
    const { time, limiter, lease, waiting, ask } = await held();
    const startMs = time.nowMs;
    expect(await ask(1)).toBe(false);
    await lease.rollback();
    expect((await waiting).granted).toBe(true);
    expect(time.nowMs).toBe(startMs);
    expect(await ask(5)).toBe(true);
    expect(await ask(1)).toBe(false);
    await limiter.close();
  });

  test("a refund counts bit by bit, and asks for nothing before it is enough", async () => {
    const { time, limiter, lease, waiting, asked } = await held();
    for (let bit = 0; bit < 4; bit += 1) {
      lease.release({ rpd: 1 });
      await lease.flush();
      await time.settle();
    }
    expect(asked).not.toHaveBeenCalled();
    lease.release({ rpd: 1 });
    await lease.commit();
    expect((await waiting).granted).toBe(true);
    expect(asked).toHaveBeenCalledTimes(1);
    await limiter.close();
  });

  test("a refund is not missed while the first one asks", async () => {
    const { time, repo, limiter, lease, waiting } = await held();
    const { buckets } = repo[INTERNALS];
    const consume = buckets.consume.bind(buckets);
    // Tokens come back when the store has refused, and the refusal is still on its way.
    vi.spyOn(buckets, "consume").mockImplementationOnce(async (...call) => {
      const refused = await consume(...call);
      await lease.rollback();
      return refused;
    });
    await time.pass(60_000);
    expect((await waiting).granted).toBe(true);
    await limiter.close();
  });

  test("a refund makes no call ask all the time where it is never enough", async () => {
    const { time, repo, limiter, lease, waiting, asked: before } = await held();
    before.mockRestore();
    const { buckets } = repo[INTERNALS];
    const consume = buckets.consume.bind(buckets);
    const asked = vi.spyOn(buckets, "consume").mockImplementation(async (...call) => {
      const refused = await consume(...call);
      // One client refunds a little and another consumes it while each answer is under way.
      lease.release({ rpd: 1 });
      await lease.flush();
      lease.adjust({ rpd: 1 });
      await lease.flush();
      return refused;
    });
    await time.pass(180_000);
    expect(asked).toHaveBeenCalledTimes(3);
    await limiter.close();
    await expect(waiting).rejects.toThrow("closed");
  });

  /** A bucket that gains a token every six seconds, all of which one lease holds. */
  async function slow() {
    const { time, repo, limiter, lease, waiting, asked } = await held();
    asked.mockRestore();
    await lease.rollback();
    await waiting;
    await repo.limits.setSystem(["rpd:10/min"]);
    const bucket = { entityId: "key-2", resource: "gpt-4" };
    const all = await limiter.acquire({ ...bucket, consume: { rpd: 10 } });
    const wait = () => limiter.tryAcquire({ ...bucket, maxWaitSeconds: 100, consume: { rpd: 5 } });
    const release = async (rpd: number) => {
      all.release({ rpd });
      await all.flush();
    };
    return { time, repo, limiter, wait, release };
  }

  test("a refund that is nearly enough lets the first one wait for the rest only", async () => {
    const { time, limiter, wait, release } = await slow();
    const waiting = wait();
    await time.settle();
    const startMs = time.nowMs;
    await release(4);
    await time.until(waiting);
    expect((await waiting).granted).toBe(true);
    expect(time.nowMs - startMs).toBe(6001);
    await limiter.close();
  });

  test("a refund that is nearly enough is not missed while the first one asks", async () => {
    const { time, repo, limiter, wait, release } = await slow();
    const { buckets } = repo[INTERNALS];
    const consume = buckets.consume.bind(buckets);
    const asked = vi.spyOn(buckets, "consume").mockImplementationOnce(async (...call) => {
      const refused = await consume(...call);
      await release(4);
      return refused;
    });
    const startMs = time.nowMs;
    const waiting = wait();
    await time.until(waiting);
    expect((await waiting).granted).toBe(true);
    expect(time.nowMs - startMs).toBe(6001);
    expect(asked).toHaveBeenCalledTimes(2);
    await limiter.close();
  });

  test("a refund to a parent goes to the first in the queue too", async () => {
    const { time, repo, limiter, lease, waiting } = await held();
    await lease.rollback();
    await waiting;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "child", parentId: "team", cascade: true });
    const team = { entityId: "team", resource: "gpt-4" };
    const child = await limiter.acquire({ ...team, entityId: "child", consume: { rpd: 8 } });
    const parent = limiter.tryAcquire({ ...team, maxWaitSeconds: 90_000, consume: { rpd: 9 } });
    await time.settle();
    await child.rollback();
    expect((await parent).granted).toBe(true);
    await limiter.close();
  });
});

describe("limits that were raised", () => {
  test("limits that were raised are noticed by new calls, a second later at most", async () => {
    const { time, repo, limiter, waiting, asked, ask } = await held();
    await repo.limits.setSystem(["rpd:1000/sec"]);
    time.advance(999);
    expect(await ask(1)).toBe(false);
    expect(asked).not.toHaveBeenCalled();
    time.advance(1);
    // The bucket is as empty as it was, but it fills faster from now on.
    expect(await ask(1)).toBe(false);
    expect(asked).toHaveBeenCalledTimes(1);
    await time.pass(10);
    expect((await waiting).granted).toBe(true);
    expect(await ask(1)).toBe(true);
    await limiter.close();
  });

  test("limits that were raised are noticed by the first one, a minute later at most", async () => {
    const { time, repo, limiter, waiting } = await held();
    await repo.limits.setSystem(["rpd:1000/sec"]);
    await time.pass(60_010);
    expect((await waiting).granted).toBe(true);
    await limiter.close();
  });
});

test("a head that leaves without an answer lets no stale state refuse the call behind it", async () => {
  const { time, repo, limiter, waiting, ask } = await held();
  const second = limiter.tryAcquire({ ...PATIENT, consume: { rpd: 4 } });
  await time.settle();
  await repo.limits.disable({ resource: "gpt-4" });
  time.advance(1000);
  const answers = await Promise.allSettled([waiting, second, ask(1)]);
  const isDisabled = { status: "rejected", reason: expect.any(ResourceDisabled) };
  expect(answers).toEqual([isDisabled, isDisabled, isDisabled]);
  await limiter.close();
});

test("thousands that do not wait ask once a second, together", async () => {
  const { time, limiter, waiting, asked, ask } = await held();
  for (let second = 0; second < 5; second += 1) {
    time.advance(1000);
    const many = await Promise.all(Array.from({ length: 1000 }, () => ask(1)));
    expect(many).toEqual(many.map(() => false));
  }
  expect(asked).toHaveBeenCalledTimes(5);
  await limiter.close();
  await expect(waiting).rejects.toThrow("closed");
});

describe("what can never be", () => {
  test("a call that can never be granted is refused at once, however long it may wait", async () => {
    const { time, limiter, lease, waiting } = await held();
    const never = { ...BUCKET, maxWaitSeconds: Number.POSITIVE_INFINITY, consume: { rpd: 11 } };
    const behind = await time.until(limiter.tryAcquire(never));
    expect(behind).toMatchObject({ granted: false, retryAfterSeconds: Number.POSITIVE_INFINITY });
    await lease.rollback();
    await waiting;
    expect((await time.until(limiter.tryAcquire(never))).granted).toBe(false);
    await limiter.close();
  });

  test("a call that can never be granted is refused also when it joined the queue before", async () => {
    const { time, limiter, lease, waiting } = await held();
    await lease.rollback();
    await waiting;
    const startMs = time.nowMs;
    const asking = [9, 11].map((rpd) =>
      limiter.tryAcquire({ ...BUCKET, maxWaitSeconds: Number.POSITIVE_INFINITY, consume: { rpd } }),
    );
    expect((await (asking[1] as (typeof asking)[number])).granted).toBe(false);
    expect(time.nowMs).toBe(startMs);
    expect((await time.until(asking[0] as (typeof asking)[number])).granted).toBe(true);
    await limiter.close();
  });
});

test("a head that is refused for good does not refuse the waiter behind it", async () => {
  const { time, limiter, lease, waiting } = await held();
  lease.release({ rpd: 7 });
  await lease.commit();
  expect((await waiting).granted).toBe(true);
  const soon = { ...BUCKET, maxWaitSeconds: 1 };
  const [head, behind] = [3, 1].map((rpd) => limiter.tryAcquire({ ...soon, consume: { rpd } }));
  const answers = await time.until(Promise.all([head, behind]));
  expect(answers.map((answer) => answer?.granted)).toEqual([false, true]);
  await limiter.close();
});
