/**
 * Interleavings. Every call to the store waits for its turn before it is done and again before its
 * answer comes, and a scheduler picks the next actor. After each race: nothing was admitted beyond
 * the ideal bucket, nothing was lost, `tc` is what was granted and kept, no ghosts, and every actor
 * has got an answer.
 */

import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { describe, test } from "vitest";
import { type Actor, ENTITIES, type Ending } from "./race/actors.ts";
import { type Race, RaceRun } from "./race/race-run.ts";
import { followSharers } from "./race/sharers.ts";
import type { Fault } from "./race/world.ts";

followSharers();

const SEED = Number(process.env.FC_SEED ?? 20_251_115);
/** Enough for a moment; a search for something rare takes more: `FC_RUNS=5000`. */
const RUNS = casesOf(150);

const client = fc.nat(2);
/** Mostly one that charges itself or one parent, so that many meet in one bucket. */
const entity = fc.constantFrom(...ENTITIES, "solo" as const, "child" as const);
const tokens = fc.record({ a: fc.integer({ min: 1, max: 3 }), b: fc.nat(2) });
/** `a` always, so that every call names a limit that all entities have. */
const limits = fc
  .record({
    a: fc.integer({ min: 1, max: 6 }),
    b: fc.integer({ min: 1, max: 6 }),
    period: fc.constantFrom("sec", "min", "day"),
  })
  .map(({ a, b, period }) => [`a:${a}/${period}`, `b:${b}/${period}`]);
const deltas = fc.record({
  a: fc.integer({ min: -2, max: 3 }),
  b: fc.integer({ min: -2, max: 3 }),
});

const ending: fc.Arbitrary<Ending> = fc.oneof(
  fc.constantFrom<Ending>({ do: "commit" }, { do: "rollback" }, { do: "throw" }, { do: "abort" }),
  fc.record({ do: fc.constantFrom("adjust" as const, "flush" as const), deltas }),
  fc.record({ do: fc.constant("more" as const), consume: tokens, commit: fc.boolean() }),
);

const acquires = fc.record({
  do: fc.constant("acquire" as const),
  client,
  entity,
  consume: tokens,
  ending,
});
/** With limits of its own, and sometimes one that the bucket does not have yet. */
const overrides = fc.record({
  do: fc.constant("acquire" as const),
  client,
  entity,
  consume: fc.oneof(tokens, fc.constant({ a: 1, b: 1, c: 1 })),
  limits: limits.map((all) => [...all, "c:2/day"]),
  ending,
});
const configures = fc.record({
  do: fc.constant("configure" as const),
  client,
  entity: fc.option(fc.constantFrom("solo", "child", "parent"), { nil: undefined }),
  limits: fc.oneof(
    limits,
    limits.map(([first]) => [first as string]),
  ),
});
const deletes = fc.record({
  do: fc.constant("delete" as const),
  client,
  entity: fc.constantFrom("solo", "child"),
});
const adopts = fc.record({ do: fc.constant("adopt" as const), client });
/** Shard 0 leads, so it splits most often; others only follow it. */
const splits = fc.record({
  do: fc.constant("split" as const),
  entity: fc.constantFrom("solo", "child", "parent"),
  shard: fc.constant(0),
  factor: fc.constantFrom(2, 2, 4),
});
const merges = fc.record({
  do: fc.constant("merge" as const),
  entity: fc.constantFrom("solo", "child", "parent"),
});
const ticks = fc.record({
  do: fc.constant("tick" as const),
  ms: fc.integer({ min: 1, max: 1500 }),
});

const fault = fc.tuple(
  fc.integer({ min: 1, max: 60 }),
  fc.constantFrom<Fault>("throttled", "conflict", "lost"),
);

const seldomLater = (actor: fc.Arbitrary<Actor>): fc.Arbitrary<readonly Actor[]> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(actor, { minLength: 1, maxLength: 4 }) },
  );

function racesOf(
  actor: fc.Arbitrary<Actor>,
  faults: number,
  laterActors = seldomLater(actor),
): fc.Arbitrary<Race> {
  return fc.record({
    clients: fc.integer({ min: 1, max: 3 }),
    limits,
    parentLimits: fc.oneof(limits, fc.constant([])),
    actors: fc.array(actor, { minLength: 2, maxLength: 8 }),
    laterActors,
    idleMs: fc.constantFrom(0, 700, 3_600_000, 40 * 86_400_000),
    faults: fc.uniqueArray(fault, { maxLength: faults, selector: ([call]) => call }),
  });
}

function races(name: string, race: fc.Arbitrary<Race>): void {
  test(`acquires race without a lost or an invented token ${name} (${RUNS} races, FC_SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(race, fc.scheduler(), (values, scheduler) =>
        new RaceRun(values, scheduler).run(),
      ),
      { seed: SEED, numRuns: RUNS },
    );
  });
}

describe("cascades that meet", () => {
  const cascade = fc.record({
    do: fc.constant("acquire" as const),
    client,
    entity: fc.constant("child" as const),
    consume: fc.constant({ a: 1 }),
    ending: fc.constant<Ending>({ do: "commit" }),
  });
  const capacity = fc.integer({ min: 1, max: 3 }).map((size) => [`a:${size}/day`]);
  test(`cascades that meet do not all refuse each other (${RUNS} races, FC_SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          clients: fc.constant(3),
          limits: capacity,
          parentLimits: capacity,
          actors: fc.array(cascade, { minLength: 2, maxLength: 5 }),
          laterActors: fc.constant([]),
          idleMs: fc.constant(0),
          faults: fc.constant([]),
        }),
        fc.scheduler(),
        async (race, scheduler) => {
          const run = new RaceRun(race, scheduler);
          await run.run();
          if (run.granted === 0) throw new Error("no actor was granted what all could have");
        },
      ),
      { seed: SEED, numRuns: RUNS },
    );
  });
});

describe("races on a shared store", () => {
  races("at one time, with adjustments and rollbacks", racesOf(acquires, 0));
  races("at one time, with faults", racesOf(acquires, 4));
  races(
    "while time passes",
    racesOf(fc.oneof({ weight: 4, arbitrary: acquires }, { weight: 1, arbitrary: ticks }), 2),
  );
  races(
    "while buckets split",
    racesOf(fc.oneof({ weight: 4, arbitrary: acquires }, { weight: 1, arbitrary: splits }), 2),
  );
  races(
    "while shards merge that an earlier race has split",
    fc.constantFrom("solo" as const, "parent" as const).chain((bucket) => {
      const entity = fc.constant(bucket === "solo" ? bucket : ("child" as const));
      const consuming = acquires.chain((actor) => entity.map((id) => ({ ...actor, entity: id })));
      const splitting = splits.map((actor) => ({ ...actor, entity: bucket }));
      const merging = fc.constant({ do: "merge" as const, entity: bucket });
      const later = fc.oneof(
        { weight: 3, arbitrary: consuming },
        { weight: 2, arbitrary: merging },
        { weight: 1, arbitrary: splitting },
      );
      return racesOf(
        fc.oneof({ weight: 1, arbitrary: consuming }, { weight: 1, arbitrary: splitting }),
        1,
        fc.array(later, { minLength: 3, maxLength: 7 }),
      ).map((race) => ({ ...race, idleMs: race.idleMs % 1000 }));
    }),
  );
  races(
    "while buckets split, limits change and entities go",
    racesOf(
      fc.oneof(
        { weight: 6, arbitrary: acquires },
        { weight: 2, arbitrary: splits },
        { weight: 1, arbitrary: merges },
        { weight: 1, arbitrary: configures },
        { weight: 1, arbitrary: deletes },
        { weight: 1, arbitrary: ticks },
      ),
      1,
    ),
  );
  races(
    "while limits change, entities go and parents appear",
    racesOf(
      fc.oneof(
        { weight: 6, arbitrary: acquires },
        { weight: 2, arbitrary: overrides },
        { weight: 1, arbitrary: configures },
        { weight: 1, arbitrary: deletes },
        { weight: 1, arbitrary: adopts },
      ),
      2,
    ),
  );
});
