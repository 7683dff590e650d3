/**
 * Sharded buckets against ideal ones: tokens are conserved to the least part of a milli-token, `tc`
 * is exact, never more than one unsplit bucket would give, and refused only what does not fit.
 */

import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { test } from "vitest";
import { type ShardCommand, ShardsRun } from "./shards-run.ts";

const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const RUNS = casesOf(400);

const limit = fc
  .record({
    capacity: fc.integer({ min: 1, max: 30 }),
    refill: fc.integer({ min: 1, max: 30 }),
    period: fc.constantFrom("sec", "min", "day"),
  })
  .map(({ capacity, refill, period }) => `${refill}/${period}:${capacity}`);
const limits = fc.tuple(limit, limit).map(([a, b]) => [`a:${a}`, `b:${b}`] as [string, string]);
const amount = fc.oneof(
  fc.integer({ min: 0, max: 12 }).map((tokens) => tokens * 1000),
  fc.integer({ min: 0, max: 9000 }),
);
const command: fc.Arbitrary<ShardCommand> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      client: fc.nat(2),
      amounts: fc.tuple(
        amount.map((milli) => Math.max(1, milli)),
        amount,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(fc.nat(3), fc.nat(3000), fc.nat(90_000), fc.nat(100_000_000)),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("refund" as const), which: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("adjust" as const),
      which: fc.nat(9),
      delta: fc.integer({ min: 1, max: 20_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("split" as const),
      factor: fc.constantFrom(2, 2, 4, 8, 16),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "merge" as const }) },
);

test(`three clients with stale views follow the ideal bucket, split and merged at any time (${RUNS} runs, FC_SEED=${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(
      limits,
      fc.array(command, { minLength: 5, maxLength: 40 }),
      async (texts, commands) => new ShardsRun(texts).run(commands),
    ),
    { seed: SEED, numRuns: RUNS },
  );
});
