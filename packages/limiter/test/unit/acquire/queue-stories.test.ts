/** Stories of a queue: no call overtakes, is late or hangs, and all is counted. */

import { type Decision, type Lease, RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const RUNS = casesOf(200);
const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const CAPACITY = 10;
/** Longer than any call of a story may have to wait for all others. */
const END_MS = 400_000;

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      amount: fc.integer({ min: 1, max: 12 }),
      maxWaitSeconds: fc.constantFrom(0.5, 1, 3, 10, 100, Number.POSITIVE_INFINITY),
      abortAfterMs: fc.option(fc.nat(5000), { freq: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      amount: fc.integer({ min: 0, max: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.oneof(fc.nat(300), fc.nat(5000)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("rollback" as const, "adjust" as const),
      lease: fc.nat(9),
      amount: fc.integer({ min: -4, max: 9 }),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Story {
  readonly #time: VirtualTime;
  readonly #limiter: RateLimiter;
  readonly #leases: Lease[] = [];
  /** The waiters in the order of arrival. */
  readonly #waiting = new Set<number>();
  readonly #ended: Promise<void>[] = [];
  #calls = 0;
  #consumed = 0;

  private constructor(time: VirtualTime, limiter: RateLimiter) {
    this.#time = time;
    this.#limiter = limiter;
  }

  static async begin(): Promise<Story> {
    const time = new VirtualTime(1_800_000_000_000);
    const repo = await Repository.open("memory:", { clock: time.clock, timer: time.timer });
    await repo.limits.setSystem([`rps:2/sec:${CAPACITY}`]);
    return new Story(time, new RateLimiter(repo));
  }

  async go(next: Step): Promise<void> {
    switch (next.kind) {
      case "pass":
        return this.#time.pass(next.ms);
      case "wait":
        this.#begin(this.#wait(next));
        return this.#time.settle();
      case "ask":
        return this.#ask(next.amount);
      default:
        await this.#settle(next);
        return this.#time.settle();
    }
  }

  /** Keeps a call whose outcome `end` checks. */
  #begin(call: Promise<void>): void {
    call.catch(() => undefined);
    this.#ended.push(call);
  }

  async end(): Promise<void> {
    await this.#time.pass(END_MS);
    expect([...this.#waiting]).toEqual([]);
    await Promise.all(this.#ended);
    const [state] = await this.#limiter.repository.buckets.list(BUCKET.entityId);
    expect(state?.totalConsumed ?? 0).toBe(this.#consumed);
    await this.#limiter.close();
  }

  async #wait({ amount, maxWaitSeconds, abortAfterMs }: Step & { kind: "wait" }): Promise<void> {
    const call = this.#calls;
    this.#calls += 1;
    this.#waiting.add(call);
    const untilMs = this.#time.nowMs + maxWaitSeconds * 1000;
    const stop = new AbortController();
    let stoppedMs = Number.POSITIVE_INFINITY;
    if (abortAfterMs !== null) {
      void this.#time.timer.sleep(abortAfterMs).then(() => {
        stoppedMs = this.#time.nowMs;
        stop.abort(new Error("enough"));
      });
    }
    const request = { ...BUCKET, consume: { rps: amount }, maxWaitSeconds, signal: stop.signal };
    const decision = await this.#limiter.tryAcquire(request).catch((error: unknown) => error);
    const first = [...this.#waiting][0];
    this.#waiting.delete(call);
    const { nowMs } = this.#time;
    if (decision instanceof Error) {
      expect(decision.message).toBe("enough");
      expect(nowMs - stoppedMs).toBeLessThanOrEqual(1);
      return;
    }
    const decided = decision as Decision;
    if (decided.granted) {
      expect(first, "no call overtakes").toBe(call);
      expect(nowMs).toBeLessThanOrEqual(untilMs + 1);
      this.#keep(decided.lease, amount);
      return;
    }
    const retryMs = decided.retryAfterSeconds * 1000;
    expect(Number.isFinite(retryMs)).toBe(amount <= CAPACITY);
    if (amount <= CAPACITY)
      expect(nowMs + retryMs, "a refusal means that waiting cannot help").toBeGreaterThan(
        untilMs - 1,
      );
  }

  async #ask(amount: number): Promise<void> {
    const decision = await this.#time.until(
      this.#limiter.tryAcquire({ ...BUCKET, consume: { rps: amount } }),
    );
    if (!decision.granted) return;
    if (amount > 0) expect([...this.#waiting], "no call is overtaken").toEqual([]);
    this.#keep(decision.lease, amount);
  }

  #keep(lease: Lease, amount: number): void {
    this.#leases.push(lease);
    this.#consumed += amount;
  }

  async #settle({
    kind,
    lease: at,
    amount,
  }: Step & { kind: "rollback" | "adjust" }): Promise<void> {
    const lease = this.#leases[at];
    if (lease === undefined) return;
    const held = lease.consumed.rps ?? 0;
    if (kind === "rollback") {
      this.#leases.splice(at, 1);
      this.#consumed -= held;
      await lease.rollback();
    } else {
      const change = Math.max(-held, amount);
      lease.adjust({ rps: change });
      this.#consumed += change;
      await lease.flush();
    }
  }
}

test(`a queue serves its waiters fairly (${RUNS} runs, FC_SEED=${SEED})`, {
  timeout: 60_000,
}, async () => {
  const stories = fc.array(step, { minLength: 5, maxLength: 40 });
  const property = fc.asyncProperty(stories, async (steps) => {
    const story = await Story.begin();
    for (const next of steps) await story.go(next);
    await story.end();
  });
  await fc.assert(property, { seed: SEED, numRuns: RUNS });
});
