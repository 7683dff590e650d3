/**
 * The fast path decides as the slow path does. Two limiters run the same generated story, and one
 * of them always takes the slow path.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkLimits } from "@zae-limiter/limiter/domain/limit.ts";
import {
  type AcquireRequest,
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
  | {
      readonly do: "acquire";
      readonly entity: number;
      readonly consume: Record<string, number>;
      readonly ignores: boolean;
    }
  | {
      readonly do: "override";
      readonly entity: number;
      readonly rpm: number;
      readonly checked: boolean;
      readonly consume: Record<string, number>;
    }
  | {
      readonly do: "end";
      readonly how: "commit" | "rollback";
      readonly correct: "adjust" | "settle" | "consume";
      readonly delta: number;
    }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "limit"; readonly rpm: number; readonly tpm: number | undefined }
  | { readonly do: "limitEntity"; readonly entity: number; readonly rpm: number }
  | { readonly do: "soften"; readonly rpm: number }
  | { readonly do: "switch"; readonly entity: number; readonly to: "bypass" | "clear" }
  | { readonly do: "cascade"; readonly entity: number; readonly value: boolean | null }
  | { readonly do: "topUp"; readonly entity: number };

const entity = fc.nat(2);
const rpm = fc.integer({ min: 2, max: 9 });
const amount = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 4 }), weight: 20 },
  { arbitrary: fc.constantFrom(-1, 0.5, 1000, Number.NaN), weight: 1 },
);
const consume = fc.oneof(
  { arbitrary: fc.record({ rpm: amount }), weight: 5 },
  { arbitrary: fc.record({ rpm: amount, tpm: amount }), weight: 10 },
  { arbitrary: fc.constantFrom({}, { other: 1 }, { rpm: 1, other: 1 }), weight: 1 },
);
const ms = fc.oneof(
  { arbitrary: fc.nat(900), weight: 20 },
  { arbitrary: fc.constantFrom(-700, -9000, 59_000, 61_000, 1_900_000, 9_999_999), weight: 1 },
);

function kind<Kind extends Step["do"]>(name: Kind): fc.Arbitrary<Kind> {
  return fc.constant(name);
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      do: kind("acquire"),
      entity,
      consume,
      ignores: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
    }),
    weight: 60,
  },
  {
    arbitrary: fc.record({
      do: kind("end"),
      how: fc.constantFrom("commit" as const, "rollback" as const),
      correct: fc.constantFrom("adjust" as const, "settle" as const, "consume" as const),
      delta: fc.integer({ min: -2, max: 9 }),
    }),
    weight: 20,
  },
  {
    arbitrary: fc.record({
      do: kind("override"),
      entity,
      rpm: fc.integer({ min: 2, max: 3 }),
      checked: fc.boolean(),
      consume,
    }),
    weight: 12,
  },
  { arbitrary: fc.record({ do: kind("wait"), ms }), weight: 12 },
  {
    arbitrary: fc.record({ do: kind("limit"), rpm, tpm: fc.option(rpm, { nil: undefined }) }),
    weight: 1,
  },
  { arbitrary: fc.record({ do: kind("limitEntity"), entity, rpm }), weight: 1 },
  { arbitrary: fc.record({ do: kind("soften"), rpm }), weight: 1 },
  {
    arbitrary: fc.record({
      do: kind("switch"),
      entity,
      to: fc.constantFrom("bypass" as const, "clear" as const, "clear" as const),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      do: kind("cascade"),
      entity,
      value: fc.constantFrom(true, false, null, null),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ do: kind("topUp"), entity }), weight: 1 },
);

/** Lists that were checked once and are passed with many calls, as a middleware does. */
const CHECKED = new Map<number, readonly LimitInput[]>();

function listOf({ rpm: rate, checked }: { rpm: number; checked: boolean }): readonly LimitInput[] {
  const limits = [`rpm:${rate}/sec`, "tpm:7/sec:20"];
  if (!checked) return limits;
  const known = CHECKED.get(rate) ?? checkLimits(limits);
  CHECKED.set(rate, known);
  return known;
}

const START_MS = 1_900_000_000_000;

/** Removes the fields of an event that no two runs have in common. */
function timeless(event: LimiterEvent): object {
  const {
    acquireId: _id,
    durationMs: _took,
    ...rest
  } = event as unknown as Record<string, unknown>;
  return rest;
}

/** A limiter that runs the story. */
class Run {
  readonly events: LimiterEvent[] = [];
  readonly #leases: Lease[] = [];
  /** Calls that the fast path decided: all of them, and those of several legs. */
  fast = 0;
  fastChains = 0;
  #nowMs = START_MS;
  #limiter: RateLimiter | undefined;

  async open(url: string, isSlow: boolean): Promise<void> {
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
      const outcome = isSlow ? undefined : tryNow(...call);
      if (outcome !== undefined) this.fast += 1;
      if (outcome !== undefined && "legs" in outcome && outcome.legs.length > 1) {
        this.fastChains += 1;
      }
      return outcome;
    };
  }

  get limiter(): RateLimiter {
    if (this.#limiter === undefined) throw new Error("The story has not begun");
    return this.#limiter;
  }

  /** Runs a step, and returns what a caller can see of it. */
  async take(what: Step): Promise<unknown> {
    switch (what.do) {
      case "wait":
        this.#nowMs += what.ms;
        return undefined;
      case "end":
        return this.#end(what);
      case "override":
        return this.#acquire(what.entity, what.consume, { limits: listOf(what) });
      case "acquire":
        return this.#acquire(
          what.entity,
          what.consume,
          what.ignores ? { missingLimits: "ignore" } : {},
        );
      default:
        return void (await this.#change(what));
    }
  }

  async #change(
    what: Exclude<Step, { readonly do: "wait" | "end" | "override" | "acquire" }>,
  ): Promise<void> {
    const { limits, buckets } = this.limiter.repository;
    const entityId = `e${"entity" in what ? what.entity : 0}`;
    if (what.do === "limit") {
      const tpm = what.tpm === undefined ? [] : [`tpm:${what.tpm}/sec`];
      await limits.setSystem([`rpm:${what.rpm}/sec`, ...tpm]);
    } else if (what.do === "soften") await limits.setSystem([`rpm:${what.rpm}/sec soft`]);
    else if (what.do === "limitEntity") await limits.setEntity(entityId, [`rpm:${what.rpm}/sec`]);
    else if (what.do === "switch") await limits[what.to]({ entityId, resource: "api" });
    else if (what.do === "cascade") {
      await limits.setCascade({ entityId, resource: "api" }, what.value);
    } else if ((await buckets.list(entityId)).length > 0) {
      const [{ limitName = "" } = {}] = await buckets.list(entityId);
      await buckets.topUp({ entityId, resource: "api", amounts: { [limitName]: 1 } });
    }
  }

  async #acquire(
    at: number,
    amounts: Record<string, number>,
    more: Pick<AcquireRequest, "limits" | "missingLimits">,
  ): Promise<unknown> {
    const entityId = `e${at}`;
    let decision: Decision;
    try {
      decision = await this.limiter.tryAcquire({
        entityId,
        resource: "api",
        consume: amounts,
        ...more,
      });
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

  async #end({ how, correct, delta }: Extract<Step, { readonly do: "end" }>): Promise<unknown> {
    const lease = this.#leases.shift();
    if (lease === undefined) return undefined;
    const held = lease.consumed.rpm ?? 0;
    if (held + delta > 0 && delta !== 0 && held > 0) {
      if (correct === "settle") lease.settle({ rpm: held + delta });
      else if (correct === "adjust" || delta < 0) lease.adjust({ rpm: delta });
      else await lease.consume({ rpm: delta }).catch((error: Error) => error.name);
    }
    await lease[how]();
    return lease.consumed;
  }
}

/** Returns the run that took the fast path where it could. */
async function compare(story: readonly Step[], url: () => string): Promise<Run> {
  const [fast, slow] = [new Run(), new Run()];
  await fast.open(url(), false);
  await slow.open(url(), true);
  for (const [at, what] of story.entries()) {
    expect(await fast.take(what), `step ${at}`).toStrictEqual(await slow.take(what));
  }
  for (const id of ["e0", "e1", "e2"]) {
    const usage = ({ limiter }: Run) => limiter.repository.usage.snapshots({ entityId: id });
    expect(await usage(fast)).toStrictEqual(await usage(slow));
  }
  expect(fast.events.map(timeless)).toStrictEqual(slow.events.map(timeless));
  expect(slow.fast).toBe(0);
  await Promise.all([fast.limiter.close(), slow.limiter.close()]);
  return fast;
}

describe("ordinary calls", () => {
  it("the fast path does the same as the slow path in memory", async () => {
    const story = fc.array(step, { minLength: 30, maxLength: 60 });
    let [fast, fastChains] = [0, 0];
    const told = fc.asyncProperty(story, async (steps) => {
      const run = await compare(steps, () => "memory:");
      fast += run.fast;
      fastChains += run.fastChains;
    });
    await fc.assert(told, { numRuns: 80, seed: 8 });
    expect(fast).toBeGreaterThan(200);
    expect(fastChains).toBeGreaterThan(40);
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
      let fast = 0;
      const told = fc.asyncProperty(story, async (steps) => {
        fast += (await compare(steps, url)).fast;
      });
      await fc.assert(told, { numRuns: 12, seed: 8 });
      expect(fast).toBeGreaterThan(20);
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
    // What was refunded elsewhere is there to consume.
    const lease = await other.acquire({ ...request, consume: { rpm: 0 } });
    lease.adjust({ rpm: 1 });
    await lease.commit();
    await Promise.all([one.close(), other.close()]);
    rmSync(folder, { recursive: true });
  });
});
