/** The wait queue: first come, first served, and no call waits without a chance. Virtual time. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import { milliOf } from "./balances.ts";
import { fail, failureOf, invalidityOf, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };
/** 10 a second, so that waits are short. */
const RPS = { ...USER, limits: ["rps:10/sec"] };
const DRAIN = { ...RPS, consume: { rps: 10 } };

export function waitingContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  /** Opens a limiter whose bucket is empty, with the times at which calls were served. */
  async function drained(): Promise<Subject & { served: string[]; ask: typeof ask }> {
    const subject = await store.open({ virtualTimer: true });
    const { limiter, time } = subject;
    await time.until(limiter.acquire(DRAIN));
    const startMs = time.nowMs;
    const served: string[] = [];
    const ask = async (name: string, rps: number, maxWaitSeconds = 10, more = {}) => {
      const request: AcquireRequest = { ...RPS, consume: { rps }, maxWaitSeconds, ...more };
      const decision = await limiter.tryAcquire(request);
      const verb = decision.granted ? "got" : "left";
      served.push(`${name} ${verb} ${rps} at ${time.nowMs - startMs}`);
      return decision;
    };
    return { ...subject, served, ask };
  }

  extra("waiting goes on as soon as there is enough", async () => {
    const { ask, served, time } = await drained();
    await time.until(ask("one", 3));
    expect(served).toEqual(["one got 3 at 301"]);
  });

  extra("a call does not wait where there is enough", async () => {
    const { limiter, time } = await store.open({ virtualTimer: true });
    const startMs = time.nowMs;
    const lease = await time.until(limiter.acquire({ ...DRAIN, maxWaitSeconds: 60 }));
    expect(lease.consumed).toEqual({ rps: 10 });
    expect(time.nowMs).toBe(startMs);
  });

  test("waiting is first come, first served", async () => {
    const { ask, served, time } = await drained();
    const all = ["a", "b", "c", "d"].map((name) => ask(name, 2));
    await time.until(Promise.all(all));
    expect(served.map((note) => note.slice(0, 5))).toEqual(["a got", "b got", "c got", "d got"]);
    const times = served.map((note) => Number(note.split(" ").at(-1)));
    times.forEach((atMs, place) => {
      expect(atMs).toBeGreaterThanOrEqual(200 * (place + 1));
      expect(atMs).toBeLessThanOrEqual(200 * (place + 1) + 5);
    });
  });

  extra("small requests do not starve a large one that waits", async () => {
    const { ask, served, time } = await drained();
    const large = ask("large", 10);
    // Three tokens are there by now, and they are the large one's.
    await time.pass(350);
    const small = Array.from({ length: 5 }, (_, at) => ask(`small-${at}`, 1));
    await time.until(Promise.all([large, ...small]));
    expect(served[0]).toBe("large got 10 at 1001");
    expect(served).toHaveLength(6);
    expect(served.every((note) => note.includes(" got "))).toBe(true);
  });

  extra("a call that cannot succeed in time is refused at once", async () => {
    const { limiter, ask, served, time } = await drained();
    await time.until(ask("alone", 5, 0.4));
    await time.until(ask("never", 11, 1_000_000));
    expect(served).toEqual(["alone left 5 at 0", "never left 11 at 0"]);
    // Behind others their share is counted.
    const first = ask("first", 5, 10);
    await time.settle();
    const second = await time.until(ask("second", 5, 0.9));
    expect(served.at(-1)).toBe("second left 5 at 0");
    if (second.granted) fail("it was refused");
    expect(Math.abs(second.retryAfterSeconds - 1)).toBeLessThan(0.005);
    expect(second.violations).toHaveLength(1);
    const third = ask("third", 5, 1.1);
    await time.until(Promise.all([first, third]));
    expect(served.slice(-2).map((note) => note.slice(0, 9))).toEqual(["first got", "third got"]);
    const refusal = limiter.acquire({ ...RPS, consume: { rps: 9 }, maxWaitSeconds: 0.5 });
    await refusalOf(time.until(refusal));
  });

  extra("waiters in the queue are refused as soon as that is known", async () => {
    const { ask, served, time } = await drained();
    // All at once, before the store has answered.
    const all = [ask("a", 5, 10), ask("b", 5, 1.2), ask("c", 5, 1.2), ask("d", 2, 1.3)];
    await time.settle();
    await time.until(Promise.all(all));
    const at = Object.fromEntries(
      served.map((note) => [note.split(" ").slice(0, 2).join(" "), Number(note.split(" ").at(-1))]),
    );
    expect(Object.keys(at).sort()).toEqual(["a got", "b got", "c left", "d got"]);
    expect(at["c left"]).toBeLessThan(100);
    expect(at["d got"]).toBeGreaterThanOrEqual(1200);
  });

  extra("waiting ends with its signal, and lets the next one go on", async () => {
    const { ask, served, time } = await drained();
    const abort = [new AbortController(), new AbortController()];
    const [first, second] = abort.map(({ signal }, place) => {
      const call = ask(`aborted-${place}`, 8, 10, { signal });
      return failureOf(call);
    });
    const third = ask("third", 2);
    await time.pass(100);
    abort[1]?.abort(new Error("second"));
    expect(await second).toMatchObject({ message: "second" });
    abort[0]?.abort(new Error("first"));
    expect(await first).toMatchObject({ message: "first" });
    await time.until(third);
    expect(served).toHaveLength(1);
    expect(Number(served[0]?.split(" ").at(-1))).toBeLessThan(210);
  });

  extra("a wait refunds what was granted when the signal aborted just then", async () => {
    const subject = await drained();
    const { limiter, time } = subject;
    const abort = new AbortController();
    const call = failureOf(
      limiter.acquire({ ...RPS, consume: { rps: 1 }, maxWaitSeconds: 5, signal: abort.signal }),
    );
    await time.pass(50);
    time.advance(51);
    abort.abort(new Error("just now"));
    expect(await time.until(call)).toMatchObject({ message: "just now" });
    expect(await milliOf(subject, "user-1", "gpt-4", "rps")).toMatchObject({ consumed: 10_000 });
  });

  extra("queues of other entities and resources are kept apart", async () => {
    const { limiter, ask, served, time } = await drained();
    const waiting = ask("waiting", 10);
    await time.settle();
    const startMs = time.nowMs;
    const request = { ...RPS, consume: { rps: 5 }, maxWaitSeconds: 10 };
    await limiter.acquire({ ...request, entityId: "user-2" });
    await limiter.acquire({ ...request, resource: "other" });
    expect(time.nowMs).toBe(startMs);
    await time.until(waiting);
    expect(served).toEqual(["waiting got 10 at 1001"]);
  });

  extra("a wait does not hold up a call for zero tokens, or for another limit", async () => {
    const { limiter, time } = await store.open({ virtualTimer: true });
    const both = { ...USER, limits: ["rps:10/sec", "tps:100/sec"] };
    await time.until(limiter.acquire({ ...both, consume: { rps: 10 } }));
    const waiting = limiter.acquire({ ...both, consume: { rps: 10, tps: 30 }, maxWaitSeconds: 9 });
    await time.settle();
    const startMs = time.nowMs;
    await limiter.acquire({ ...both, consume: {}, maxWaitSeconds: 1 });
    // Enough for the one ahead as well.
    await limiter.acquire({ ...both, consume: { tps: 70 }, maxWaitSeconds: 1 });
    expect(time.nowMs).toBe(startMs);
    const lease = await time.until(waiting);
    expect(lease.consumed).toEqual({ rps: 10, tps: 30 });
  });

  extra("a wait that is no time is refused", async () => {
    const { limiter } = await store.open();
    for (const maxWaitSeconds of [-1, Number.NaN, "5" as unknown as number, null]) {
      const request = { ...DRAIN, maxWaitSeconds: maxWaitSeconds as number };
      expect((await invalidityOf(limiter.acquire(request))).field).toBe("maxWaitSeconds");
    }
  });

  extra("a wait goes by its own limits when calls bring their own", async () => {
    const { limiter, time } = await store.open({ virtualTimer: true });
    const ask = (limits: string[], rps: number, signal?: AbortSignal) =>
      limiter.acquire({ ...USER, limits, consume: { rps }, maxWaitSeconds: 5, signal });
    const large = ["rps:20/sec"];
    const small = ["rps:10/sec"];
    await time.until(ask(large, 20));
    const abort = new AbortController();
    const first = failureOf(ask(small, 10, abort.signal));
    await time.settle();
    // More than the limits ahead of it allow, but not more than its own: no reason to refuse it.
    const second = ask(large, 15);
    await time.pass(100);
    abort.abort();
    await first;
    expect((await time.until(second)).consumed).toEqual({ rps: 15 });
  });
}

export function longWaitContract(store: StoreUnderTest): void {
  const { expect, testUnless } = store.cases;

  testUnless(store.remote ? "a remote store knows no virtual time" : undefined)(
    "a very long wait is waited for in pieces, and ends when it should",
    async () => {
      const { limiter, time } = await store.open({ virtualTimer: true });
      const request = { ...USER, limits: ["once:1/day"], consume: { once: 1 } };
      await limiter.acquire(request);
      const startMs = time.nowMs;
      const lease = await time.until(
        limiter.acquire({ ...request, maxWaitSeconds: Number.POSITIVE_INFINITY }),
      );
      expect(lease.consumed).toEqual({ once: 1 });
      expect(time.nowMs - startMs).toBe(86_400_000);
    },
  );
}
