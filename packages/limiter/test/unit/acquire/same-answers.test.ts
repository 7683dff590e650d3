/**
 * Every store gives the same answers. Two limiters live through the same story, one with buckets in
 * this process, one with buckets that are items; what they say is compared step by step.
 */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const SEED = Number(process.env.FC_SEED ?? 20_251_116);
const RUNS = casesOf(80);

type Step =
  | { do: "take"; id: string; consume: Record<string, number>; limits: string[] | undefined }
  | { do: "settle"; how: "commit" | "rollback" | "flush"; lease: number }
  | { do: "adjust"; lease: number; rpm: number; tpm: number }
  | { do: "more"; lease: number; rpm: number }
  | { do: "wait"; ms: number }
  | { do: "system"; limits: string[] }
  | { do: "entity"; id: string; limits: string[] | undefined }
  | { do: "look"; id: string };

const lease = fc.nat(5);
const rpm = fc.constantFrom("rpm:5/min", "rpm:7/13sec", "rpm:3/min:9", "rpm:20/min", "rpm:2/hour");
const tpm = fc.constantFrom("tpm:100/min", "tpm:70/3sec", "tpm:1000/7min", "tpm:11/min:300");
const anyLimits = fc.oneof(
  fc.tuple(rpm, tpm),
  rpm.map((one) => [one]),
  tpm.map((one) => [one]),
);
const amounts = fc.oneof(
  fc.record({ rpm: fc.nat(4), tpm: fc.nat(120) }),
  fc.record({ rpm: fc.nat(6) }),
  fc.record({ tpm: fc.nat(300) }),
  fc.constant({}),
);

/**
 * How far a clock may be set, either way. An hour ahead a bucket's time would be over, and an
 * embedded store removes it at once.
 */
const steps = fc.oneof(
  fc.integer({ min: -1500, max: 1500 }),
  fc.integer({ min: -90_000, max: 90_000 }),
  fc.integer({ min: -7_200_000, max: 600_000 }),
);

/** Random steps with these entities, limits and changes of the clock. */
function stories(
  ids: readonly string[],
  limits: fc.Arbitrary<string[]> | undefined,
  clock: fc.Arbitrary<number> = fc.nat(100_000),
) {
  const id = fc.constantFrom(...ids);
  const none = fc.constant(undefined);
  const own = limits === undefined ? none : fc.option(limits, { nil: undefined, freq: 6 });
  const always: fc.Arbitrary<Step>[] = [
    ...Array.from({ length: 4 }, () =>
      fc.record({ do: fc.constant("take" as const), id, consume: amounts, limits: own }),
    ),
    fc.record({
      do: fc.constant("settle" as const),
      how: fc.constantFrom("commit", "rollback", "flush"),
      lease,
    }),
    fc.record({
      do: fc.constant("adjust" as const),
      lease,
      rpm: fc.integer({ min: -3, max: 5 }),
      tpm: fc.integer({ min: -90, max: 200 }),
    }),
    fc.record({ do: fc.constant("more" as const), lease, rpm: fc.nat(3) }),
    fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(fc.nat(50), fc.nat(3000), clock),
    }),
    fc.record({ do: fc.constant("look" as const), id }),
  ];
  const changes: fc.Arbitrary<Step>[] =
    limits === undefined
      ? []
      : [
          fc.record({ do: fc.constant("system" as const), limits }),
          fc.record({
            do: fc.constant("entity" as const),
            id,
            limits: fc.option(limits, { nil: undefined }),
          }),
        ];
  return fc.array(fc.oneof(...always, ...changes), { minLength: 10, maxLength: 40 });
}

/** One store, and what is said of it. */
class Telling {
  readonly #limiter: RateLimiter;
  readonly #leases: Lease[] = [];

  constructor(repository: Repository) {
    this.#limiter = new RateLimiter(repository);
  }

  async begin(): Promise<void> {
    const { entities, limits: stored } = this.#limiter.repository;
    await stored.setSystem(["rpm:5/min", "tpm:100/min"]);
    await entities.create({ id: "parent" });
    await entities.create({ id: "child", parentId: "parent", cascade: true });
  }

  async tell(what: Step): Promise<unknown> {
    try {
      return await this.#live(what);
    } catch (error) {
      const { name, message } = error as Error;
      return { name, message };
    }
  }

  end(): Promise<void> {
    return this.#limiter.close();
  }

  async #live(what: Step): Promise<unknown> {
    const { limits: stored, buckets } = this.#limiter.repository;
    switch (what.do) {
      case "wait":
        return undefined;
      case "system":
        return void (await stored.setSystem(what.limits));
      case "entity": {
        const entityId = what.id;
        if (what.limits === undefined) return stored.deleteEntity(entityId, { resource: "api" });
        return void (await stored.setEntity(entityId, what.limits, { resource: "api" }));
      }
      case "look": {
        const entityId = what.id;
        const statuses = await this.#limiter.status({ entityId, resource: "api" });
        const states = await buckets.list(entityId);
        // A bucket of which nothing was taken is as good as none.
        const used = states.filter(({ totalConsumed }) => totalConsumed !== 0);
        const consumed = used.map((state) => [state.limitName, state.totalConsumed]);
        return [statuses, Object.fromEntries(consumed)];
      }
      case "take":
        return this.#take(what);
      default:
        return this.#use(what);
    }
  }

  async #take({ id: entityId, consume, limits: own }: Extract<Step, { do: "take" }>) {
    const decision = await this.#limiter.tryAcquire({
      entityId,
      resource: "api",
      consume,
      limits: own,
    });
    if (!decision.granted) return decision.toJSON();
    this.#leases.push(decision.lease);
    return { consumed: decision.lease.consumed, statuses: decision.lease.statuses };
  }

  async #use(what: Extract<Step, { do: "settle" | "adjust" | "more" }>): Promise<unknown> {
    const held = this.#leases[what.lease % Math.max(1, this.#leases.length)];
    if (held === undefined) return undefined;
    if (what.do === "settle") await held[what.how]();
    else if (what.do === "more") await held.consume({ rpm: what.rpm });
    else held.adjust({ rpm: what.rpm, tpm: what.tpm });
    return held.consumed;
  }
}

// A call that is refused by one leg may bring new limits to another, or not: what is refused is not
// written. So limits change where there is one leg, and where there are several they do not.
test.each([
  ["limits that change", stories(["loner"], anyLimits)],
  ["ancestors", stories(["child", "parent", "loner"], undefined)],
  ["a clock that is set back and forth", stories(["child", "loner"], undefined, steps)],
])(
  `embedded and distributed buckets answer the same with %s (${RUNS} stories, FC_SEED=${SEED})`,
  async (_, story) => {
    const told = fc.asyncProperty(story, async (steps) => {
      const time = new VirtualTime(1_900_000_000_000);
      const { clock } = time;
      const embedded = new Telling(await Repository.open("memory:", { clock }));
      const items = new MemoryItemStore({ clock });
      const distributed = new Telling(await overTable(items, { clock }));
      await Promise.all([embedded.begin(), distributed.begin()]);
      for (const [at, what] of steps.entries()) {
        // For a second a refusal may be repeated from memory, without a read of the bucket.
        time.advance(what.do === "wait" ? what.ms : 1000);
        expect(await distributed.tell(what), `step ${at}`).toEqual(await embedded.tell(what));
      }
      await Promise.all([embedded.end(), distributed.end()]);
    });
    await fc.assert(told, { numRuns: RUNS, seed: SEED });
  },
);
