/** A call of a model holds a slot until it has ended, however it ends. */

import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { type KeptLease, settleKept } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import { amountsOf } from "@zae-limiter/limiter/llm/amounts.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { NO_USAGE } from "@zae-limiter/limiter/llm/usage.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open(["rpm:100", "tpm:100000000", "parallel:1 concurrent"]);
});
afterEach(async () => {
  await world.limiter.close();
});

describe("a slot of a call", () => {
  test("a call holds its slot while it streams, and corrections leave it alone", async () => {
    const call = await world.begin(factsOf({ stream: true }), world.metering({ flushEvery: 1 }));
    for (let chunk = 0; chunk < 5; chunk += 1) call.seeText("x".repeat(4000));
    await world.time.settle();
    expect(await world.consumed()).toMatchObject({ parallel: 1 });
    await call.complete();
    expect(await world.consumed()).toMatchObject({ parallel: 0, rpm: 1 });
  });

  const ends: readonly [string, (call: MeteredCall) => Promise<unknown>][] = [
    ["is whole", (call) => call.complete()],
    ["breaks off", (call) => call.breakOff()],
    ["costs the most", (call) => call.chargeMost()],
    ["keeps its estimate", (call) => call.keepEstimate()],
    ["was never sent", (call) => call.refund()],
    ["fails", (call) => call.fail({ status: 500 })],
    ["is refused by the provider", (call) => call.fail({ status: 400 })],
    ["goes on in the background", (call) => call.hold()],
  ];
  test.each(ends)("a call that %s gives its slot back", async (_, end) => {
    const call = await world.begin();
    expect(await world.consumed()).toMatchObject({ parallel: 1 });
    await end(call);
    expect(await world.consumed()).toMatchObject({ parallel: 0 });
  });

  test("a response in the background is settled later, and its slot is back already", async () => {
    const call = await world.begin();
    const kept = await call.hold();
    const amounts = amountsOf(world.metering().options.count, NO_USAGE);
    await settleKept(world.limiter, kept as KeptLease, amounts);
    expect(await world.consumed()).toMatchObject({ parallel: 0, rpm: 1, tpm: 0 });
  });

  test("a call that finds no slot consumes nothing, and goes when the other one ends", async () => {
    const first = await world.begin();
    const before = await world.consumed();
    const refused = await world.metering().begin(factsOf());
    expect(refused).toBeInstanceOf(Refusal);
    expect(await world.consumed()).toEqual(before);
    const waiting = world.begin(factsOf(), world.metering({ maxWaitSeconds: 60 }));
    await world.time.settle();
    await first.complete();
    const second = await world.time.until(waiting);
    await second.complete();
    expect(await world.consumed()).toMatchObject({ parallel: 0, rpm: 2 });
  });

  test("a call takes a slot of an ancestor where the entity has no such limit", async () => {
    const { limits, entities } = world.limiter.repository;
    await limits.setSystem(["rpm:100"]);
    await entities.create({ id: "team" });
    await entities.create({ id: "a", parentId: "team", cascade: true });
    await limits.setEntity("team", ["parallel:1 concurrent"]);
    const call = await world.begin();
    expect(await world.metering().begin(factsOf())).toBeInstanceOf(Refusal);
    await call.complete();
    await (await world.begin()).complete();
  });

  test("a limit of another name holds slots where the options say so", async () => {
    await world.limiter.repository.limits.setSystem(["rpm:100", "streams:1 concurrent"]);
    const metering = world.metering({ count: { slots: "streams" } });
    const call = await world.begin(factsOf(), metering);
    expect(await metering.begin(factsOf())).toBeInstanceOf(Refusal);
    await call.complete();
    expect(await world.consumed()).toMatchObject({ streams: 0 });
  });

  test("slots that have the name of a rate are held, and not settled", async () => {
    await world.limiter.repository.limits.setSystem(["rpm:1 concurrent"], { replaceKind: true });
    const call = await world.begin();
    await call.complete();
    expect(await world.consumed()).toMatchObject({ rpm: 0 });
  });
});
