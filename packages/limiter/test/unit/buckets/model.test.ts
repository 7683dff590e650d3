/**
 * The stores against an ideal bucket: never a milli-token above it, and, where all clocks agree,
 * not the least part of one below it.
 *
 * What is proven. Clocks that differ by d let a bucket hold what accrues in d on top of its
 * capacity, once. A change of the period rounds off less than one part of a milli-token in the new
 * period. Everything else is exact.
 */

import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { describe, test } from "vitest";
import { type Command, type Limits, ModelRun, type Scenario } from "./model-run.ts";
import { distributedSubject, embeddedSubject, type SubjectOptions } from "./subject.ts";

const SEED = Number(process.env.FC_SEED ?? 20_251_115);
/** Enough for a moment; a search for something rare takes more: `FC_RUNS=5000`. */
const RUNS = casesOf(400);

const NAMES = ["a", "b", "c"] as const;

type Numbers = Limits[string];

/** Capacity and refill in tokens, period in seconds: ordinary and slow. */
const ordinary = fc.oneof(
  fc.tuple(
    fc.integer({ min: 1, max: 20 }),
    fc.integer({ min: 1, max: 20 }),
    fc.constantFrom(1, 7, 60),
  ),
  fc.constantFrom<Numbers>([5, 5, 86_400], [100, 7, 3600], [3, 1, 1_000_000]),
);
/** Products pass 2^53 within milliseconds or minutes. */
const huge = fc.constantFrom<Numbers>([1e12, 1e12, 1], [1e12, 999_999_999_999, 60]);

function limitsOf(numbers: fc.Arbitrary<Numbers>): fc.Arbitrary<Limits> {
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), numbers), {
      minLength: 1,
      maxLength: 3,
      selector: ([name]) => name,
    })
    .map((entries) => Object.fromEntries(entries));
}

const limits = limitsOf(
  fc.oneof({ weight: 2, arbitrary: ordinary }, { weight: 1, arbitrary: huge }),
);

const amount = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 20 }).map((tokens) => tokens * 1000) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 25_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 1e12, 1e15) },
);
const amounts = fc.dictionary(fc.constantFrom(...NAMES), amount, { maxKeys: 3 });
const deltas = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.oneof(
    fc.integer({ min: -15_000, max: 15_000 }),
    fc.integer({ min: 0, max: 300 }).map((tokens) => tokens * 1000),
  ),
  { maxKeys: 3 },
);
const wait = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.integer({ min: 0, max: 3000 }),
  fc.integer({ min: 0, max: 100_000 }),
  fc.integer({ min: 3_500_000, max: 8_000_000 }),
  fc.integer({ min: 86_000_000, max: 200_000_000 }),
);
const client = fc.nat({ max: 3 });

function commandsOf(change: fc.Arbitrary<Limits>, setBacks: boolean): fc.Arbitrary<Command[]> {
  const step = <T extends object>(kind: Command["do"], fields: fc.Arbitrary<T>) =>
    fields.map((values) => ({ do: kind, ...values }) as unknown as Command);
  const take = fc.record({
    client,
    amounts,
    behind: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { arbitrary: fc.nat(2), weight: 1 }),
    override: fc.option(change, { nil: undefined, freq: 6 }),
    speculative: fc.boolean(),
  });
  return fc.array(
    fc.oneof(
      { weight: 12, arbitrary: step("take", take) },
      { weight: 7, arbitrary: step("wait", fc.record({ ms: wait })) },
      { weight: 3, arbitrary: step("adjust", fc.record({ client, deltas })) },
      { weight: 3, arbitrary: step("refund", fc.record({ client, which: fc.nat(20) })) },
      { weight: 1, arbitrary: step("configure", fc.record({ limits: change, own: fc.boolean() })) },
      { weight: 1, arbitrary: step("reconfigure", fc.record({ client })) },
      { weight: 1, arbitrary: step("delete", fc.record({ client })) },
      { weight: 1, arbitrary: step("sweep", fc.constant({})) },
      ...(setBacks
        ? [{ weight: 1, arbitrary: step("setBack", fc.record({ ms: fc.nat(6000) })) }]
        : []),
    ),
    { minLength: 5, maxLength: 50 },
  );
}

const ttlMultiplier = fc.constantFrom(7, 1, 0);

/** All clocks agree, and anything may change. */
const agreeing: fc.Arbitrary<Scenario> = fc.record({
  limits,
  offsetsMs: fc.constant([0, 0, 0, 0]),
  ttlMultiplier,
  commands: commandsOf(limits, false),
});

/** Clocks differ and are set back. Rates stay: a change of rate has no time that all agree on. */
const differing: fc.Arbitrary<Scenario> = limitsOf(ordinary).chain((first) =>
  fc.record({
    limits: fc.constant(first),
    offsetsMs: fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 4, maxLength: 4 }),
    ttlMultiplier,
    commands: commandsOf(
      fc
        .dictionary(fc.constantFrom(...Object.keys(first)), fc.integer({ min: 1, max: 40 }), {
          minKeys: 1,
        })
        .map((capacities) =>
          Object.fromEntries(
            Object.entries(capacities).map(([name, capacity]) => {
              const [, refill, period] = first[name] as Limits[string];
              return [name, [capacity, refill, period] as const];
            }),
          ),
        ),
      true,
    ),
  }),
);

function model(
  name: string,
  scenario: fc.Arbitrary<Scenario>,
  open: (options: SubjectOptions) => ReturnType<typeof distributedSubject>,
): void {
  test(`${name} (${RUNS} runs, FC_SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (values) => {
        const run = new ModelRun(values, open);
        await run.run(values.commands);
        await run.settle();
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });
}

describe("shared buckets", () => {
  model(
    "four clients with stale views and one time follow the ideal bucket",
    agreeing,
    distributedSubject,
  );
  model(
    "four clients whose clocks differ or are set back follow the ideal bucket",
    differing,
    distributedSubject,
  );
});

describe("embedded buckets", () => {
  model("embedded buckets follow the ideal bucket", agreeing, embeddedSubject);
});
