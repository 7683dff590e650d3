/** Estimates that calls acquire before they are made. */

import { Limit } from "@zae-limiter/limiter/index.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import type { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

const RESOURCE = "gpt-4o";
const A = { entityId: "a", resource: RESOURCE };
const B = { entityId: "b", resource: RESOURCE };

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.limiter.close();
});

/** Makes calls that the provider states this output for. */
async function calls(metering: Metering, target: typeof A, count: number, output: number) {
  for (let made = 0; made < count; made += 1) {
    const call = await metering.begin(factsOf(), target);
    if (!(call instanceof MeteredCall)) throw new Error("The call was refused");
    call.seeUsage({ input: 10, cached: 0, output }, true);
    await call.complete();
  }
}

/** Returns the output that the next call reserves; `undefined` when it is refused. */
async function reserved(metering: Metering, target: typeof A): Promise<number | undefined> {
  const call = await metering.begin(factsOf(), target);
  if (!(call instanceof MeteredCall)) return undefined;
  await call.refund();
  return call.estimate.output;
}

describe("learned estimates", () => {
  test("one team's long answers do not refuse calls of another team", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:10000"]);
    const metering = world.metering();
    await calls(metering, A, 1, 50);
    await calls(metering, B, 30, 20_000);
    // What is left is all that the estimate of other teams can take.
    expect(await reserved(metering, A)).toBe(10_000 - 60 - 10);
    await calls(metering, A, 4, 50);
    await calls(metering, B, 30, 20_000);
    expect(await reserved(metering, A)).toBeLessThanOrEqual(60);
  });

  test("many answers with one token do not lower the estimate of another team", async () => {
    await world.limiter.repository.limits.setSystem(["tpm:100000"]);
    const metering = world.metering();
    await calls(metering, A, 5, 800);
    await calls(metering, B, 100, 1);
    expect(await reserved(metering, A)).toBeGreaterThanOrEqual(800);
    expect(await reserved(metering, B)).toBe(1);
  });

  test("absurd usage, text, cut streams and errors teach nothing", async () => {
    const metering = world.metering();
    for (let made = 0; made < 10; made += 1) {
      const absurd = await world.begin(factsOf(), metering);
      absurd.seeUsage({ isAbsurd: true }, true);
      await absurd.complete();
      const text = await world.begin(factsOf(), metering);
      text.seeText("Hi");
      await text.complete();
      const cut = await world.begin(factsOf(), metering);
      cut.seeUsage({ input: 10, cached: 0, output: 9000 }, true);
      await cut.breakOff();
      const failed = await world.begin(factsOf(), metering);
      await failed.fail({ status: 500, usage: { input: 10, cached: 0, output: 9000 } });
    }
    expect(await reserved(metering, A)).toBe(500);
  });

  test("usage that could not be written teaches nothing", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const metering = world.metering();
    const learned = vi.spyOn(metering, "learn");
    const call = await world.begin(factsOf(), metering);
    call.seeUsage({ input: 10, cached: 0, output: 9000 }, true);
    await world.limiter.close();
    await call.complete();
    expect(learned).not.toHaveBeenCalled();
  });
});

describe("an estimate that does not fit", () => {
  test("a learned estimate is cut to what is left, and refused only with nothing left", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:100"]);
    const metering = world.metering();
    const first = await world.begin(factsOf(), metering);
    expect(first.estimate).toEqual({ input: 10, cached: 0, output: 90 });
    expect(await world.tokens()).toBe(100);
    expect(await reserved(metering, A)).toBeUndefined();
    first.seeUsage({ input: 10, cached: 0, output: 50 }, true);
    await first.complete();
    expect(await reserved(metering, A)).toBe(30);
    await calls(metering, A, 1, 29);
    // One token is left: too few for the prompt and one token of output.
    expect(await world.tokens()).toBe(99);
    expect(await reserved(metering, A)).toBeUndefined();
  });

  test("a learned estimate is cut by the scarcest limit, of an ancestor too", async () => {
    const { entities, limits } = world.limiter.repository;
    await entities.create({ id: "company" });
    await entities.create({ id: "a", parentId: "company", cascade: true });
    await limits.setEntity("a", ["tpm:400", "otpm:300"]);
    await limits.setEntity("company", ["tpm:1000"]);
    expect(await reserved(world.metering(), A)).toBe(300);
    await limits.setEntity("company", ["tpm:200"]);
    expect(await reserved(world.metering(), A)).toBe(190);
  });

  test("a limit of requests refuses whatever the estimate is", async () => {
    await world.limiter.repository.limits.setEntity("a", ["rpm:1", "tpm:100"]);
    const metering = world.metering();
    await calls(metering, A, 1, 20);
    const refused = await metering.begin(factsOf(), A);
    expect(refused).toMatchObject({ granted: false });
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 30 });
  });

  test.each([[{ reserve: "max" as const }], [{ reserve: 90 }]])(
    "with %o the operator's estimate refuses",
    async (options) => {
      await world.limiter.repository.limits.setEntity("a", ["tpm:100"]);
      const metering = world.metering(options);
      const facts = factsOf({ max_tokens: 90 });
      const first = await world.begin(facts, metering);
      first.seeUsage({ input: 10, cached: 0, output: 1 }, true);
      await first.complete();
      expect(await metering.begin(facts, A)).toMatchObject({ granted: false });
    },
  );

  test("with reserve: 'max' an estimate that no bucket holds is cut to the capacity", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:100"]);
    const call = await world.begin(
      factsOf({ max_tokens: 4096 }),
      world.metering({ reserve: "max" }),
    );
    expect(call.estimate.output).toBe(90);
  });

  test("a prompt that no bucket holds is refused for good", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:8"]);
    for (const reserve of ["learned", "max"] as const) {
      const refused = await world.metering({ reserve }).begin(factsOf(), A);
      expect(refused).toMatchObject({ granted: false, neverFits: true });
    }
  });

  test("a learned estimate is never cut to nothing", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:100"]);
    const metering = world.metering();
    await calls(metering, A, 1, 80);
    expect(await world.limiter.available(A)).toEqual({ tpm: 10 });
    expect(await metering.begin(factsOf(), A)).toMatchObject({ granted: false });
  });

  test("a call that may wait does not wait for its learned estimate", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:1000"]);
    const metering = world.metering({ maxWaitSeconds: 60 });
    await calls(metering, A, 1, 690);
    const call = await world.begin(factsOf(), metering);
    expect(call.estimate.output).toBe(290);
  });

  test("a call that may wait waits once, for its prompt and one token of output", async () => {
    await world.limiter.repository.limits.setEntity("a", ["tpm:60"]);
    const metering = world.metering({ maxWaitSeconds: 30 });
    await calls(metering, A, 1, 50);
    const begun = metering.begin(factsOf(), A);
    const started = world.time.nowMs;
    const call = await world.time.until(begun);
    expect(call).toMatchObject({ estimate: { input: 10, output: 1 } });
    expect(world.time.nowMs - started).toBeLessThan(12_000);
  });

  test("a call that is refused after its wait does not wait again with a smaller estimate", async () => {
    const slow = { name: "rpm", capacity: 1, refillAmount: 1, refillPeriodSeconds: 20 };
    await world.limiter.repository.limits.setEntity("a", [Limit.custom(slow), "tpm:1000"]);
    const other = await world.limiter.acquire({ ...A, consume: { tpm: 1 } });
    const metering = world.metering({ maxWaitSeconds: 30 });
    await calls(metering, A, 1, 690);
    // Another call turns out to be larger: the next request is only there after 40 seconds.
    world.time.after(10_000, () => {
      other.adjust({ rpm: 1, tpm: 200 });
      void other.commit();
    });
    const started = world.time.nowMs;
    expect(await world.time.until(metering.begin(factsOf(), A))).toMatchObject({ granted: false });
    expect(world.time.nowMs - started).toBeLessThanOrEqual(30_000);
  });
});

test("entity and resource of the options are replaced by those that are given", async () => {
  const metering = world.metering({ resource: () => "other" });
  await metering.begin(factsOf());
  await metering.begin(factsOf(), { entityId: "b", resource: "mine" });
  expect(await world.tokens("other")).toBe(510);
  expect(await world.tokens("mine", "b")).toBe(510);
});

test("a call that was aborted before it began acquires nothing", async () => {
  const signal = AbortSignal.abort(new Error("gone"));
  await expect(world.metering().begin({ ...factsOf(), signal })).rejects.toThrow("gone");
  expect(await world.tokens()).toBe(0);
});
