/**
 * The fast path decides as the slow path does. Two limiters run the same story, and one of them
 * always takes the slow path.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkLimits } from "@zae-limiter/limiter/domain/limit.ts";
import {
  type Decision,
  type Lease,
  type LimiterEvent,
  type LimitInput,
  RateLimiter,
  ValidationError,
} from "@zae-limiter/limiter/index.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

type Step =
  | { readonly do: "take"; readonly entity: number; readonly consume: Record<string, number> }
  | {
      readonly do: "override";
      readonly entity: number;
      readonly rpm: number;
      readonly checked: boolean;
      readonly consume: Record<string, number>;
    }
  | { readonly do: "settle"; readonly how: "commit" | "rollback"; readonly delta: number }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "limit"; readonly rpm: number; readonly tpm: number | undefined }
  | { readonly do: "limitEntity"; readonly entity: number; readonly rpm: number };

const entity = fc.nat(2);
const amount = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 4 }), weight: 20 },
  { arbitrary: fc.constantFrom(-1, 0.5, 1000, Number.NaN), weight: 1 },
);
const consume = fc.oneof(
  { arbitrary: fc.record({ rpm: amount }), weight: 5 },
  { arbitrary: fc.record({ rpm: amount, tpm: amount }), weight: 10 },
  { arbitrary: fc.constantFrom({}, { other: 1 }, { rpm: 1, other: 1 }), weight: 1 },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant("take" as const), entity, consume }), weight: 30 },
  {
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      how: fc.constantFrom("commit" as const, "rollback" as const),
      delta: fc.integer({ min: -2, max: 9 }),
    }),
    weight: 12,
  },
  {
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(
        { arbitrary: fc.nat(900), weight: 20 },
        {
          arbitrary: fc.constantFrom(-700, -9000, 59_000, 61_000, 1_900_000, 9_999_999),
          weight: 1,
        },
      ),
    }),
    weight: 12,
  },
  {
    arbitrary: fc.record({
      do: fc.constant("limit" as const),
      rpm: fc.integer({ min: 2, max: 9 }),
      tpm: fc.option(fc.integer({ min: 2, max: 9 }), { nil: undefined }),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      do: fc.constant("limitEntity" as const),
      entity,
      rpm: fc.integer({ min: 2, max: 9 }),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      do: fc.constant("override" as const),
      entity,
      rpm: fc.integer({ min: 2, max: 3 }),
      checked: fc.boolean(),
      consume,
    }),
    weight: 12,
  },
);

/** Lists that were checked once and are passed with many calls, as a middleware does. */
const CHECKED = new Map<number, readonly LimitInput[]>();

function listOf({ rpm, checked }: { rpm: number; checked: boolean }): readonly LimitInput[] {
  const limits = [`rpm:${rpm}/sec`, "tpm:7/sec:20"];
  if (!checked) return limits;
  const known = CHECKED.get(rpm) ?? checkLimits(limits);
  CHECKED.set(rpm, known);
  return known;
}

const START_MS = 1_900_000_000_000;

/** Without what no two runs have in common. */
function timeless(event: LimiterEvent): object {
  const {
    acquireId: _id,
    durationMs: _took,
    ...rest
  } = event as unknown as Record<string, unknown>;
  return rest;
}

/** One of the two that live through the story. */
class Hero {
  readonly events: LimiterEvent[] = [];
  readonly #leases: Lease[] = [];
  /** How often it was not the long way, for one entity and for a chain of them. */
  onTheSpot = 0;
  chainsOnTheSpot = 0;
  #nowMs = START_MS;
  #limiter: RateLimiter | undefined;

  async open(url: string, long: boolean): Promise<void> {
    this.#limiter = await RateLimiter.open(url, {
      clock: () => this.#nowMs,
      events: (event) => {
        if (event.type !== "call") this.events.push(event);
      },
    });
    const { entities, limits } = this.limiter.repository;
    await limits.setSystem(["rpm:5/sec", "tpm:7/sec:20"]);
    // One has no parent; another cascades to the third, and some of them lose limits later.
    await entities.create({ id: "e2" });
    await entities.create({ id: "e1", parentId: "e2", cascade: true });
    const { buckets } = this.limiter.repository[INTERNALS];
    const tryNow = buckets.tryNow.bind(buckets);
    buckets.tryNow = (...call) => {
      const outcome = long ? undefined : tryNow(...call);
      if (outcome !== undefined) this.onTheSpot += 1;
      if (outcome !== undefined && "legs" in outcome && outcome.legs.length > 1) {
        this.chainsOnTheSpot += 1;
      }
      return outcome;
    };
  }

  get limiter(): RateLimiter {
    if (this.#limiter === undefined) throw new Error("The story has not begun");
    return this.#limiter;
  }

  /** What can be seen of a step. */
  async live(what: Step): Promise<unknown> {
    const { limits } = this.limiter.repository;
    switch (what.do) {
      case "wait":
        this.#nowMs += what.ms;
        return undefined;
      case "limit": {
        const tpm = what.tpm === undefined ? [] : [`tpm:${what.tpm}/sec`];
        return void (await limits.setSystem([`rpm:${what.rpm}/sec`, ...tpm]));
      }
      case "limitEntity":
        return void (await limits.setEntity(`e${what.entity}`, [`rpm:${what.rpm}/sec`]));
      case "settle":
        return this.#settle(what.how, what.delta);
      case "override":
        return this.#take(`e${what.entity}`, what.consume, listOf(what));
      case "take":
        return this.#take(`e${what.entity}`, what.consume);
    }
  }

  async #take(entityId: string, amounts: Record<string, number>, limits?: readonly LimitInput[]) {
    const request = { entityId, resource: "api", consume: amounts, ...(limits && { limits }) };
    let decision: Decision;
    try {
      decision = await this.limiter.tryAcquire(request);
    } catch (error) {
      expect(error).toBeInstanceOf(ValidationError);
      return (error as Error).message;
    }
    // A bucket whose time is over may still be there, or not.
    if (!decision.granted) return decision.toJSON();
    const stored = await this.limiter.repository.buckets.list(entityId);
    const { lease } = decision;
    this.#leases.push(lease);
    return { consumed: lease.consumed, statuses: lease.statuses, stored };
  }

  async #settle(how: "commit" | "rollback", delta: number): Promise<unknown> {
    const lease = this.#leases.shift();
    if (lease === undefined) return undefined;
    const held = lease.consumed.rpm ?? 0;
    if (held + delta > 0 && delta !== 0 && held > 0) lease.adjust({ rpm: delta });
    await lease[how]();
    return lease.consumed;
  }
}

/** Returns the one that took the quick way where it could. */
async function compare(story: readonly Step[], url: () => string): Promise<Hero> {
  const [quick, long] = [new Hero(), new Hero()];
  await quick.open(url(), false);
  await long.open(url(), true);
  for (const [at, what] of story.entries()) {
    expect(await quick.live(what), `step ${at}`).toStrictEqual(await long.live(what));
  }
  for (const id of ["e0", "e1", "e2"]) {
    const usage = ({ limiter }: Hero) => limiter.repository.usage.snapshots({ entityId: id });
    expect(await usage(quick)).toStrictEqual(await usage(long));
  }
  expect(quick.events.map(timeless)).toStrictEqual(long.events.map(timeless));
  expect(long.onTheSpot).toBe(0);
  await Promise.all([quick.limiter.close(), long.limiter.close()]);
  return quick;
}

describe("a charge on the spot", () => {
  it("the fast path does the same as the slow path in memory", async () => {
    const story = fc.array(step, { minLength: 30, maxLength: 60 });
    let [onTheSpot, chainsOnTheSpot] = [0, 0];
    const told = fc.asyncProperty(story, async (steps) => {
      const quick = await compare(steps, () => "memory:");
      onTheSpot += quick.onTheSpot;
      chainsOnTheSpot += quick.chainsOnTheSpot;
    });
    await fc.assert(told, { numRuns: 80, seed: 8 });
    expect(onTheSpot).toBeGreaterThan(200);
    expect(chainsOnTheSpot).toBeGreaterThan(40);
  });

  it("the fast path does the same as the slow path in a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    let files = 0;
    const url = () => {
      files += 1;
      return `sqlite:${join(folder, `${files}.db`)}`;
    };
    const story = fc.array(step, { minLength: 40, maxLength: 60 });
    try {
      let onTheSpot = 0;
      const told = fc.asyncProperty(story, async (steps) => {
        onTheSpot += (await compare(steps, url)).onTheSpot;
      });
      await fc.assert(told, { numRuns: 12, seed: 8 });
      expect(onTheSpot).toBeGreaterThan(20);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("the fast path notices what another process has done to the file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    const url = `sqlite:${join(folder, "shared.db")}`;
    const clock = () => START_MS;
    const one = await RateLimiter.open(url, { clock });
    const other = await RateLimiter.open(url, { clock });
    await one.repository.limits.setSystem(["rpm:100/day"]);
    const request = { entityId: "user", resource: "api", consume: { rpm: 1 } };
    let granted = 0;
    for (let at = 0; at < 60; at += 1) {
      for (const limiter of [one, other, other]) {
        if ((await limiter.tryAcquire(request)).granted) granted += 1;
      }
    }
    expect(granted).toBe(100);
    const [state] = await one.repository.buckets.list("user");
    expect(state?.totalConsumed).toBe(100);
    // What was given back elsewhere is there to take.
    const lease = await other.acquire({ ...request, consume: { rpm: 0 } });
    lease.adjust({ rpm: 1 });
    await lease.commit();
    await Promise.all([one.close(), other.close()]);
    rmSync(folder, { recursive: true });
  });
});
