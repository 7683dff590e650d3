/** Every store gives the same answers for quotas and sessions. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { test } from "vitest";
import { expectSameAnswers, Telling } from "./both-stores.ts";

const SEED = Number(process.env.FC_SEED ?? 20_251_116);
const RUNS = casesOf(80);
const KEY = { entityId: "loner", resource: "api" };
const HOUR_MS = 3_600_000;

type Step =
  | { do: "take"; consume: Record<string, number> }
  | { do: "settle"; how: "commit" | "rollback" | "flush"; lease: number }
  | { do: "adjust"; lease: number; by: Record<string, number> }
  | { do: "wait"; ms: number }
  | { do: "limits"; limits: Limit[] }
  | { do: "topUp"; amounts: Record<string, number> }
  | { do: "reset" }
  | { do: "look" };

const quota = fc.constantFrom(
  Limit.parse("req:10/day UTC"),
  Limit.parse("req:15/day UTC"),
  Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 15 }),
  Limit.quota("req", 10, { every: "day", carry: "debt" }),
  Limit.quota("req", 7, { cron: "0 */5 * * *", carry: "both", carryMax: 20 }),
  Limit.parse("req:10/cron(30 1,2 * * 1-5) Europe/Berlin"),
  Limit.parse("req:9/week@sunday Asia/Kathmandu@06:00"),
);
const session = fc.constantFrom(
  "tok:8/session:5hour",
  "tok:12/session:5hour",
  "tok:8/session:90min",
);
// Windows are left out: how much of a refund a later boundary cuts depends on what was written.
const rate = fc.constantFrom("rpd:24/day", "rpd:24/day:30").map((text) => Limit.parse(text));
const limits = fc
  .tuple(quota, session, rate)
  .map(([one, two, three]) => [one, Limit.parse(two), three]);
const lease = fc.nat(5);
const signed = fc.integer({ min: -4, max: 6 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      consume: fc.oneof(
        fc.record({ req: fc.nat(6), tok: fc.nat(4), rpd: fc.nat(5) }),
        fc.record({ req: fc.nat(12) }),
        fc.record({ tok: fc.nat(9) }),
        fc.record({ rpd: fc.nat(13) }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      how: fc.constantFrom("commit", "rollback", "flush"),
      lease,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("adjust" as const),
      lease,
      by: fc.oneof(
        fc.record({ req: signed, tok: signed, rpd: signed }),
        fc.record({ req: signed }),
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(fc.nat(50), fc.nat(HOUR_MS), fc.nat(12 * HOUR_MS), fc.nat(90 * HOUR_MS)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("limits" as const), limits }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("topUp" as const),
      amounts: fc.oneof(
        fc.record({ req: fc.integer({ min: 1, max: 9 }) }),
        fc.record({ tok: fc.integer({ min: 1, max: 9 }) }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reset" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("look" as const) }) },
);

class QuotaTelling extends Telling<Step> {
  protected async live(what: Step): Promise<unknown> {
    const { limits: stored, buckets } = this.limiter.repository;
    switch (what.do) {
      case "wait":
        return undefined;
      case "limits":
        return void (await stored.setEntity(KEY.entityId, what.limits, { resource: KEY.resource }));
      case "topUp":
        return (await buckets.topUp({ ...KEY, amounts: what.amounts })).amounts;
      case "reset":
        return (await buckets.reset(KEY)).amounts;
      case "look":
        return this.limiter.status(KEY);
      case "take":
        return this.take({ ...KEY, consume: what.consume });
      case "settle":
        return this.use(what.lease, (lease) => lease[what.how]());
      default:
        return this.use(what.lease, (lease) => lease.adjust(what.by));
    }
  }
}

test(`embedded and distributed buckets answer the same for quotas and sessions (${RUNS} stories, FC_SEED=${SEED})`, async () => {
  const stories = fc.array(step, { minLength: 10, maxLength: 40 });
  const told = fc.asyncProperty(limits, stories, (first, steps) =>
    expectSameAnswers(QuotaTelling, [{ do: "limits", limits: first }, ...steps]),
  );
  await fc.assert(told, { numRuns: RUNS, seed: SEED });
});
