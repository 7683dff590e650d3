/** Every store gives the same answers. */

import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { test } from "vitest";
import { expectSameAnswers, Telling } from "./both-stores.ts";

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

class RateTelling extends Telling<Step> {
  override async begin(): Promise<void> {
    const { entities, limits: stored } = this.limiter.repository;
    await stored.setSystem(["rpm:5/min", "tpm:100/min"]);
    await entities.create({ id: "parent" });
    await entities.create({ id: "child", parentId: "parent", cascade: true });
  }

  protected async live(what: Step): Promise<unknown> {
    const { limits: stored, buckets } = this.limiter.repository;
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
        const statuses = await this.limiter.status({ entityId, resource: "api" });
        const states = await buckets.list(entityId);
        // A bucket of which nothing was taken is as good as none.
        const used = states.filter(({ totalConsumed }) => totalConsumed !== 0);
        const consumed = used.map((state) => [state.limitName, state.totalConsumed]);
        return [statuses, Object.fromEntries(consumed)];
      }
      case "take": {
        const { id: entityId, consume, limits } = what;
        return this.take({ entityId, resource: "api", consume, limits });
      }
      case "settle":
        return this.use(what.lease, (lease) => lease[what.how]());
      case "more":
        return this.use(what.lease, (lease) => lease.consume({ rpm: what.rpm }));
      default:
        return this.use(what.lease, (lease) => lease.adjust({ rpm: what.rpm, tpm: what.tpm }));
    }
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
    const told = fc.asyncProperty(story, (steps) => expectSameAnswers(RateTelling, steps));
    await fc.assert(told, { numRuns: RUNS, seed: SEED });
  },
);
