/**
 * Limits with windows on shards that are split and merged at any time, by two clients whose clocks
 * differ: never more is granted than an ideal bucket has, which this test walks by the minute.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START_MS = Date.parse("2027-01-15T08:30Z");
const KEY = { entityId: "key", resource: "api" };
const SEED = Number(process.env.FC_SEED ?? 20_261_119);
const RUNS = casesOf(60);
const SPLITS_MAX = 3;
/** The milliseconds by which the clocks of the clients are ahead. */
const AHEAD_MS = [0, 700];
const LIMIT = Limit.parse("rpm:60/min:600").withSchedule([
  { when: "9-12", scale: 0.5 },
  { when: "12-14", scale: 3 },
  { when: "15-16", limit: "rpm:6/min:60" },
]);

/** Tokens a minute, and the most that the bucket holds, by the hour of the day. */
function numbersAt(ms: number): { readonly perMinute: number; readonly most: number } {
  const hour = Math.floor(ms / HOUR_MS) % 24;
  if (hour >= 9 && hour < 12) return { perMinute: 30, most: 300 };
  if (hour >= 12 && hour < 14) return { perMinute: 180, most: 1800 };
  if (hour === 15) return { perMinute: 6, most: 60 };
  return { perMinute: 60, most: 600 };
}

class IdealBucket {
  #tokens = numbersAt(START_MS).most;
  #atMs = START_MS;

  advance(nowMs: number): void {
    while (this.#atMs < nowMs) {
      const { perMinute, most } = numbersAt(this.#atMs);
      const untilMs = Math.min(nowMs, (Math.floor(this.#atMs / MINUTE_MS) + 1) * MINUTE_MS);
      const gained = (perMinute * (untilMs - this.#atMs)) / MINUTE_MS;
      this.#tokens = Math.min(this.#tokens + gained, most, numbersAt(untilMs).most);
      this.#atMs = untilMs;
    }
  }

  change(amount: number): void {
    this.#tokens += amount;
  }

  get tokens(): number {
    return this.#tokens;
  }
}

type Command =
  | { readonly do: "take"; readonly by: number; readonly amount: number; readonly waitMs: number }
  | { readonly do: "settle"; readonly more: number }
  | { readonly do: "split" | "merge" };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      by: fc.nat(1),
      amount: fc.integer({ min: 1, max: 300 }),
      waitMs: fc.oneof(fc.nat(5000), fc.nat(40 * MINUTE_MS), fc.nat(3 * HOUR_MS)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      // A debt of one shard does not refuse what another one has.
      more: fc.integer({ min: -300, max: 0 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("split" as const, "merge" as const) }),
  },
);

class Run {
  #nowMs = START_MS;
  #splits = 0;
  readonly #items = new MemoryItemStore({ clock: () => this.#nowMs });
  readonly #ideal = new IdealBucket();
  readonly #limiters: RateLimiter[] = [];
  #open: { readonly amount: number; settle(amount: number): Promise<void> } | undefined;

  async open(): Promise<void> {
    for (const aheadMs of AHEAD_MS) {
      const clock = () => this.#nowMs + aheadMs;
      this.#limiters.push(new RateLimiter(await overTable(this.#items, { clock })));
    }
    await this.#limiters[0]?.repository.limits.setResource("api", [LIMIT]);
  }

  async carryOut(each: Command): Promise<void> {
    if (each.do === "take") return this.#take(each.by, each.amount, each.waitMs);
    if (each.do === "settle") return this.#settle(each.more);
    const limiter = this.#limiters[0] as RateLimiter;
    const target = { namespaceId: limiter.repository.namespaceId, ...KEY };
    if (each.do === "merge") {
      if (await halveShards(this.#items, target, this.#nowMs)) this.#splits -= 1;
    } else if (this.#splits < SPLITS_MAX) {
      if (await splitShard(this.#items, target, 0, this.#nowMs)) this.#splits += 1;
    }
  }

  async #take(by: number, amount: number, waitMs: number): Promise<void> {
    this.#nowMs += waitMs;
    const limiter = this.#limiters[by] as RateLimiter;
    const decision = await limiter.tryAcquire({ ...KEY, consume: { rpm: amount } });
    if (!decision.granted) return;
    // A client whose clock is behind finds the bucket as the other one has left it.
    this.#ideal.advance(this.#nowMs + (AHEAD_MS[by] as number));
    this.#ideal.change(-amount);
    expect(this.#ideal.tokens).toBeGreaterThanOrEqual(-0.01);
    const { lease } = decision;
    this.#open = {
      amount,
      settle: async (used) => {
        lease.settle({ rpm: used });
        await lease.commit();
      },
    };
  }

  async #settle(more: number): Promise<void> {
    const { amount, settle } = this.#open ?? {};
    if (amount === undefined || settle === undefined) return;
    this.#open = undefined;
    const used = Math.max(0, amount + more);
    await settle(used);
    this.#ideal.change(amount - used);
  }

  async close(): Promise<void> {
    for (const limiter of this.#limiters) await limiter.close();
  }
}

test(`limits with windows grant no more than an ideal bucket has (${RUNS} runs, FC_SEED=${SEED})`, async () => {
  const commands = fc.array(command, { minLength: 10, maxLength: 60 });
  const property = fc.asyncProperty(commands, async (drawn) => {
    const run = new Run();
    await run.open();
    for (const each of drawn) await run.carryOut(each);
    await run.close();
  });
  await fc.assert(property, { seed: SEED, numRuns: RUNS, endOnFailure: true });
});

test("clients whose clocks are seconds apart grant no boundary twice", async () => {
  const nowMs = Date.parse("2027-01-15T08:59:58.500Z");
  const items = new MemoryItemStore({ clock: () => nowMs });
  const slow = Limit.parse("rpm:600/min").withSchedule([{ when: "9-10", scale: 0.01 }]);
  const limiters: RateLimiter[] = [];
  for (const aheadMs of [0, 3000]) {
    const repository = await overTable(items, { clock: () => nowMs + aheadMs });
    limiters.push(new RateLimiter(repository));
  }
  await limiters[0]?.repository.limits.setResource("api", [slow]);
  let granted = 0;
  for (let call = 0; call < 1400; call += 1) {
    const limiter = limiters[call % 2] as RateLimiter;
    const { granted: isGranted } = await limiter.tryAcquire({ ...KEY, consume: { rpm: 1 } });
    if (isGranted) granted += 1;
  }
  // The bucket was full, and no time has passed but what lies between the clocks.
  expect(granted).toBeLessThanOrEqual(600 + 30);
  for (const limiter of limiters) await limiter.close();
});
