/** Limits in money: what calls are estimated and settled at, and calls that have no price. */

import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { ModelNotPriced } from "@zae-limiter/limiter/index.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import type { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import type { LlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { refusalAnswer } from "@zae-limiter/limiter/llm/refusal-answer.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const TARGET = { entityId: "a", resource: "gpt-4o" };
/** Two dollars for a million tokens of input, ten for output. */
const PRICE = { input: "2", output: "10" } as const;

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
  await world.limiter.repository.limits.setSystem(["usd:$10/hour", "tpm:1000000"]);
});
afterEach(() => world.limiter.close());

const metering = (options: Partial<LlmOptions> = {}): Metering =>
  world.metering({ prices: [{ model: "gpt-4o", price: PRICE }], ...options });

async function spent(): Promise<number> {
  const { usd = 0 } = await world.limiter.available(TARGET);
  return 10_000_000 - usd;
}

async function granted(host: Metering, facts = factsOf()): Promise<MeteredCall> {
  const call = await host.begin(facts, TARGET);
  if (call instanceof MeteredCall) return call;
  throw new Error(`The call was not granted: ${call}`);
}

describe("the price of a call", () => {
  test("a call reserves its estimate in money, and settles what the provider states", async () => {
    const call = await granted(metering({ reserve: 100 }));
    // 10 tokens of input and 100 of output.
    expect(await spent()).toBe(20 + 1000);
    call.seeUsage({ input: 1000, cached: 500, output: 70 }, true);
    await call.complete();
    expect(await spent()).toBe(2000 + 1000 + 700);
  });

  test("money reserves the most output while tokens reserve what was learned", async () => {
    const host = metering({ reserveMoney: "max", reserve: 5 });
    const call = await granted(host, factsOf({ max_tokens: 400 }));
    expect(await spent()).toBe(20 + 4000);
    expect(await world.tokens()).toBe(15);
    await call.breakOff();
    expect(await spent()).toBe(20 + 4000);
    expect(await world.tokens()).toBe(15);
  });

  test("a stored price wins over one of the options, and both over the shipped one", async () => {
    const { prices } = world.limiter.repository;
    await prices.set("gpt-4o", { input: "4", output: "40" });
    const call = await granted(metering({ reserve: 100 }));
    expect(await spent()).toBe(40 + 4000);
    await call.refund();
    const shipped = world.metering({ reserve: 100 });
    await prices.delete("gpt-4o");
    const other = await granted(shipped);
    // $2.50 and $10.
    expect(await spent()).toBe(25 + 1000);
    await other.refund();
    expect(await spent()).toBe(0);
  });

  test("a call that waited while another one read the prices has the stored one", async () => {
    const { limits, prices } = world.limiter.repository;
    await limits.setEntity("a", ["usd:$10/hour", "rpm:1/30sec"]);
    await prices.set("gpt-4o", { input: "4", output: "40" });
    const host = world.metering({ reserve: 100, maxWaitSeconds: 40 });
    await world.limiter.acquire({ ...TARGET, consume: { rpm: 1 } });
    const waiting = granted(host);
    await host.begin(factsOf(), { ...TARGET, entityId: "b" });
    world.time.advance(30_001);
    await waiting;
    expect(await spent()).toBe(40 + 4000);
  });

  test("a call keeps the price that it was granted with", async () => {
    const host = metering({ reserve: 100 });
    const call = await granted(host);
    await world.limiter.repository.prices.set("gpt-4o", { input: "1000", output: "1000" });
    call.seeUsage({ input: 10, cached: 0, output: 10 }, true);
    await call.complete();
    expect(await spent()).toBe(20 + 100);
  });

  test("parts and the tier that the answer names are priced apart", async () => {
    const price = {
      input: "2",
      cachedInput: "0.5",
      cacheWrite: "3",
      output: "10",
      reasoning: "20",
      tiers: { flex: { input: "1", output: "5" } },
    };
    const host = metering({ prices: [{ model: "gpt-4o", price }] });
    const call = await granted(host);
    const inputParts = { input: 100, cachedInput: 1000, cacheWrite: 10, cacheWrite1h: 0 };
    const outputParts = { reasoning: 50 };
    call.seeUsage({ input: 110, cached: 1000, output: 80, inputParts, outputParts }, true);
    await call.complete();
    expect(await spent()).toBe(200 + 500 + 30 + 300 + 1000);
    const flex = await granted(host);
    flex.seeUsage({ input: 100, cached: 0, output: 10, tier: "flex" }, true);
    await flex.complete();
    expect(await spent()).toBe(2030 + 100 + 50);
  });
});

describe("a call that cannot be paid", () => {
  test("the estimate in money refuses, and the answer names the budget", async () => {
    await world.limiter.repository.limits.setEntity("a", ["usd:$0.001/hour", "tpm:100000"]);
    const refusal = await metering({ reserve: 100 }).begin(factsOf(), TARGET);
    if (!(refusal instanceof Refusal)) throw new Error("The call was granted");
    const { status, headers, body } = refusalAnswer(refusal, "openai");
    expect(status).toBe(429);
    expect(headers["x-should-retry"]).toBe("false");
    expect(JSON.parse(body).error).toMatchObject({
      code: "budget_exceeded",
      message: "Budget usd of a does not pay for this call: $0.00102 needed, $0.001 of $0.001 left",
    });
    expect(await world.tokens()).toBe(0);
  });

  test("a model without a price is refused, with nothing consumed", async () => {
    const host = metering({ prices: [] });
    const facts = factsOf({ model: "model-of-mine" });
    const refused = await host.begin(facts, TARGET);
    expect(refused).toBeInstanceOf(ModelNotPriced);
    expect(await world.tokens()).toBe(0);
    const { status, body } = refusalAnswer(refused as ModelNotPriced, "openai");
    expect(status).toBe(400);
    expect(JSON.parse(body).error).toMatchObject({
      code: "model_not_priced",
      message: expect.stringContaining("zae-limiter prices set model-of-mine --input"),
    });
  });

  test("a model without a price passes where money is soft, unpriced is allowed, or no limit counts money", async () => {
    const facts = factsOf({ model: "model-of-mine" });
    await granted(metering({ unpriced: "allow", prices: [] }), facts);
    expect(await spent()).toBe(0);
    const { limits } = world.limiter.repository;
    await limits.setEntity("a", ["usd:$10/hour soft", "tpm:100000"]);
    await granted(metering({ prices: [] }), facts);
    await limits.setEntity("a", ["tpm:100000"]);
    await granted(metering({ prices: [] }), facts);
  });

  test("a free model goes on when the budget is spent", async () => {
    await world.limiter.repository.limits.setEntity("a", ["usd:$0.000001/hour", "tpm:100000"]);
    await world.limiter.repository.prices.set("gpt-4o", { free: true });
    const call = await granted(metering());
    call.seeUsage({ input: 1000, cached: 0, output: 1000 }, true);
    await call.complete();
  });
});

test.each([
  [{ count: { money: "tpm" } }, /names of money/],
  [{ prices: {} }, /list of \{ model, price \}/],
  [{ prices: [{ model: "a", price: { input: 1 } }] }, /dollars as text/],
  [{ unpriced: "free" }, /"refuse" or "allow"/],
  [{ reserveMoney: "all" }, /"learned", "max"/],
])("the options %j are refused with a sentence", (options, sentence) => {
  expect(() => world.metering(options as Partial<LlmOptions>)).toThrow(sentence);
});

describe("other currencies", () => {
  const EUROS = { input: "2", output: "10", currency: "eur" } as const;

  test("a price in euros counts for limits in euros, rounded as dollars are", async () => {
    await world.limiter.repository.limits.setSystem(["eur:€1/hour", "eur_team:€2/hour"]);
    await world.limiter.repository.prices.set("gpt-4o", EUROS);
    const call = await granted(metering({ reserve: 100, count: { money: ["eur", "eur_team"] } }));
    call.seeUsage({ input: 7, cached: 0, output: 3 }, true);
    await call.complete();
    const { eur, eur_team: team } = await world.limiter.available(TARGET);
    expect([eur, team]).toEqual([1_000_000 - 44, 2_000_000 - 44]);
  });

  test("a limit in euros refuses a model with a price in dollars, and the other way round", async () => {
    const { limits, prices } = world.limiter.repository;
    await limits.setEntity("a", ["eur:€1/hour"]);
    const refused = await metering().begin(factsOf(), TARGET);
    expect(refused).toBeInstanceOf(ModelNotPriced);
    expect((refused as ModelNotPriced).message).toContain(
      "gpt-4o has no price in eur, and a limit in money applies; set one: " +
        "zae-limiter prices set gpt-4o --input … --output … --currency eur",
    );
    expect(await world.limiter.available(TARGET)).toEqual({ eur: 1_000_000 });
    await prices.set("gpt-4o", EUROS);
    const host = metering();
    await (await granted(host)).refund();
    expect(await host.begin(factsOf(), { ...TARGET, entityId: "b" })).toBeInstanceOf(
      ModelNotPriced,
    );
  });

  test("a free model counts for limits of every currency", async () => {
    const { limits, prices } = world.limiter.repository;
    await limits.setEntity("a", ["eur:€1/hour", "usd:$1/hour"]);
    await prices.set("gpt-4o", { free: true });
    await (await granted(metering())).complete();
    expect(await world.limiter.available(TARGET)).toEqual({ eur: 1_000_000, usd: 1_000_000 });
  });
});
