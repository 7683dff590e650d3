/** Taking tokens: what fits, what does not, and what either leaves behind. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { milliOf } from "./balances.ts";
import { fail, failureOf, lines, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const RESOURCE = "openai/gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };

export function acquireContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("an acquire consumes one token and says so (A050)", async () => {
    const { limiter } = await store.open();
    const lease = await limiter.acquire({ ...USER, limits: ["rpm:100"], consume: { rpm: 1 } });
    expect(lease.consumed).toEqual({ rpm: 1 });
    expect(lease.degraded).toBe(false);
    expect(lines(lease.statuses)).toEqual(["user-1/openai/gpt-4 rpm 1/99"]);
  });

  test("an acquire consumes from two limits at once (A051)", async () => {
    const { limiter } = await store.open();
    const limits = [Limit.perMinute("rpm", 100), Limit.perMinute("tpm", 10_000)];
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 1, tpm: 500 } });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 500 });
  });

  test("an acquire of more than there is is refused, without a time if it never fits (A052)", async () => {
    const { limiter } = await store.open();
    const request = { ...USER, limits: ["rpm:10"] };
    const never = await refusalOf(limiter.acquire({ ...request, consume: { rpm: 20 } }));
    expect(never.violations).toHaveLength(1);
    expect(never.violations[0]).toMatchObject({ requested: 20, available: 10, deficit: 10 });
    expect(never.retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
    await limiter.acquire({ ...request, consume: { rpm: 10 } });
    const later = await refusalOf(limiter.acquire({ ...request, consume: { rpm: 10 } }));
    expect(later.retryAfterSeconds).toBe(60.001);
  });

  test("a refusal lists all limits, and writes nothing (A053)", async () => {
    const { limiter, repo } = await store.open();
    const request = { ...USER, limits: ["rpm:100", "tpm:100"], consume: { rpm: 1, tpm: 200 } };
    const refusal = await refusalOf(limiter.acquire(request));
    expect(refusal.statuses).toHaveLength(2);
    expect(refusal.violations.map(({ limitName }) => limitName)).toEqual(["tpm"]);
    expect(refusal.passed.map(({ limitName }) => limitName)).toEqual(["rpm"]);
    expect(await repo.buckets.list("user-1")).toEqual([]);
  });

  test("an acquire is written before the work starts (A055)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const request = { ...USER, limits: ["rpm:100"], consume: { rpm: 10 } };
    const during = await limiter.run(request, () => milliOf(subject, "user-1", RESOURCE, "rpm"));
    expect(during).toEqual({ balance: 90_000, consumed: 10_000 });
  });

  test("a bucket refills with time, whether it is read first or not (A056)", async () => {
    const limits = [Limit.perSecond("rps", 100)];
    for (const speculativeWrites of [true, false]) {
      const { limiter, time } = await store.open({ speculativeWrites });
      const take = (rps: number) => limiter.acquire({ ...USER, limits, consume: { rps } });
      await take(100);
      const refusal = await refusalOf(take(100));
      expect(refusal.retryAfterSeconds).toBe(1.001);
      time.advance(1100);
      const lease = await take(50);
      expect(lines(lease.statuses)).toEqual(["user-1/openai/gpt-4 rps 50/50"]);
    }
  });

  test("the third acquire of two is refused by name (A057)", async () => {
    const { limiter } = await store.open();
    const request = { ...USER, limits: ["rpm:2"], consume: { rpm: 1 } };
    await limiter.acquire(request);
    await limiter.acquire(request);
    const refusal = await refusalOf(limiter.acquire(request));
    expect(refusal.message).toContain("rpm");
    expect(refusal.primaryViolation.limitName).toBe("rpm");
    expect(refusal.retryAfterSeconds).toBe(30.001);
  });

  test("ten acquires at once are counted exactly (A058)", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const limits = [Limit.perHour("rph", 1000)];
    const request = { ...USER, limits, consume: { rph: 10 } };
    await Promise.all(Array.from({ length: 10 }, () => limiter.acquire(request)));
    const milli = await milliOf(subject, "user-1", RESOURCE, "rph");
    expect(milli).toEqual({ balance: 900_000, consumed: 100_000 });
  });

  test("an acquire works for an entity that was never created (A061)", async () => {
    const { limiter, repo } = await store.open();
    await limiter.acquire({ ...USER, limits: ["rpm:100"], consume: { rpm: 1 } });
    expect(await repo.entities.get("user-1")).toBeUndefined();
    expect(await repo.buckets.list("user-1")).toHaveLength(1);
  });

  test("an acquire takes any legal name of a limit, on every path (A065)", async () => {
    for (const speculativeWrites of [true, false]) {
      const subject = await store.open({ speculativeWrites });
      const { limiter, repo } = subject;
      const names = ["my-limit", "gpt-3.5", "constructor", "toString", "b_x_tk", "hasOwnProperty"];
      await repo.limits.setSystem(names.map((name) => `${name}:100`));
      const consume = Object.fromEntries(names.map((name) => [name, 10]));
      const milli = () =>
        Promise.all(names.map((name) => milliOf(subject, "user-1", RESOURCE, name)));
      const all = (balance: number) => names.map(() => ({ balance }));
      await limiter.acquire({ ...USER, consume });
      const lease = await limiter.acquire({ ...USER, consume });
      expect(await milli()).toMatchObject(all(80_000));
      lease.adjust(consume);
      expect(lease.consumed).toEqual(Object.fromEntries(names.map((name) => [name, 20])));
      await lease.commit();
      expect(await milli()).toMatchObject(all(70_000));
      const back = await limiter.acquire({ ...USER, consume });
      await back.rollback();
      expect(await milli()).toMatchObject(all(70_000));
      await repo.limits.setSystem(["my-limit:100"]);
      await limiter.acquire({ ...USER, consume: { "my-limit": 1 } });
      const left = await repo.buckets.list("user-1");
      expect(left.map(({ limitName, tokens }) => [limitName, tokens])).toEqual([["my-limit", 69]]);
    }
  });

  test("an acquire is not held up by debt of a limit that it does not ask for (A067)", async () => {
    for (const speculativeWrites of [true, false]) {
      const { limiter } = await store.open({ speculativeWrites });
      const request = { ...USER, limits: ["rpm:100", "tpm:1000"] };
      const lease = await limiter.acquire({ ...request, consume: { rpm: 1, tpm: 10 } });
      lease.adjust({ tpm: 5000 });
      await lease.commit();
      const next = await limiter.acquire({ ...request, consume: { rpm: 1 } });
      expect(lines(next.statuses)).toEqual([
        "user-1/openai/gpt-4 rpm 1/98",
        "user-1/openai/gpt-4 tpm 0/-4010",
      ]);
      const zero = await limiter.acquire({ ...request, consume: { rpm: 1, tpm: 0 } });
      expect(zero.consumed).toEqual({ rpm: 1 });
      const refusal = await refusalOf(limiter.acquire({ ...request, consume: { tpm: 1 } }));
      expect(refusal.retryAfterSeconds).toBe(240.661);
    }
  });

  extra("an acquire of nothing at all, or of zeros, is granted and consumes nothing", async () => {
    const subject = await store.open();
    const { limiter } = subject;
    const request = { ...USER, limits: ["rpm:2", "tpm:10"] };
    await limiter.acquire({ ...request, consume: { rpm: 2 } });
    for (const consume of [{}, { rpm: 0 }, { tpm: 0, rpm: -0 }]) {
      const lease = await limiter.acquire({ ...request, consume });
      expect(lease.consumed).toEqual({});
      expect(lines(lease.statuses)).toEqual([
        "user-1/openai/gpt-4 rpm 0/0",
        "user-1/openai/gpt-4 tpm 0/10",
      ]);
      await lease.rollback();
    }
    const milli = await milliOf(subject, "user-1", RESOURCE, "rpm");
    expect(milli).toEqual({ balance: 0, consumed: 2000 });
  });

  extra("a bucket grants exactly its capacity after idling, and no more", async () => {
    const { limiter, time } = await store.open();
    const request = { ...USER, limits: ["rpm:100"], consume: { rpm: 1 } };
    await limiter.acquire(request);
    time.advance(60_000);
    const count = store.remote ? 15 : 100;
    // On the engines in larger bites, because each bite is a request.
    const rpm = 100 / (store.remote ? 10 : 100);
    let granted = 0;
    for (let call = 0; call < count + 5; call += 1) {
      const decision = await limiter.tryAcquire({ ...request, consume: { rpm } });
      if (decision.granted) granted += rpm;
    }
    expect(granted).toBe(100);
  });

  extra("tryAcquire answers without an error", async () => {
    const { limiter } = await store.open();
    const request = { ...USER, limits: ["rpm:2"], consume: { rpm: 2 } };
    const first = await limiter.tryAcquire(request);
    if (!first.granted) fail("it fits");
    expect(first.lease.consumed).toEqual({ rpm: 2 });
    const second = await limiter.tryAcquire(request);
    if (second.granted) fail("it does not fit");
    expect(second instanceof Error).toBe(false);
    expect(second.retryAfterSeconds).toBe(60.001);
    const error = await refusalOf(limiter.acquire(request));
    expect(second.statuses).toEqual(error.statuses);
    expect(second.violations).toEqual(error.violations);
    expect(JSON.parse(JSON.stringify(second))).toEqual(JSON.parse(JSON.stringify(error)));
    const never = await limiter.tryAcquire({ ...request, consume: { rpm: 3 } });
    expect(never).toMatchObject({ granted: false, retryAfterSeconds: Number.POSITIVE_INFINITY });
  });
}

export function statusesContract(store: StoreUnderTest): void {
  const { expect, testEach } = store.cases;

  /** Returns all events and statuses of a run, in words that do not depend on the store. */
  async function story(speculativeWrites: boolean): Promise<string[][]> {
    const { limiter, repo, time } = await store.open({ speculativeWrites });
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await repo.limits.setSystem(["rpm:10", "tpm:100"]);
    await repo.limits.setEntity("team", ["rpd:50/day", "rpm:4"]);
    const told: string[][] = [];
    const step = async (consume: Record<string, number>) => {
      const decision = await limiter.tryAcquire({ ...USER, consume });
      const { statuses } = decision.granted ? decision.lease : decision;
      told.push([decision.granted ? "granted" : "refused", ...lines(statuses)]);
    };
    await step({ rpm: 1, tpm: 101 });
    await step({ rpm: 1, tpm: 50 });
    await step({ rpm: 1 });
    await step({ tpm: 51 });
    await step({ tpm: 51 });
    await step({ rpm: 3 });
    await step({});
    await step({ rpm: 2, tpm: 50 });
    await step({ rpm: 1 });
    time.advance(15_000);
    await step({ rpm: 1 });
    await step({ rpm: 1, tpm: 30 });
    time.advance(120_000);
    await step({ rpm: 5, tpm: 100 });
    await step({ rpm: 4, tpm: 100 });
    return told;
  }

  const PATHS: readonly [string, boolean][] = [
    ["looking at each bucket first (A064)", false],
    ["trusting what was seen last", true],
  ];
  testEach(PATHS)(
    "the statuses of an acquire are all limits of all entities, own first, on every path: %s",
    async (_, speculative) => {
      const own = (rpm: string, tpm: string) => [
        `user-1/openai/gpt-4 rpm ${rpm}`,
        `user-1/openai/gpt-4 tpm ${tpm}`,
      ];
      const team = (rpm: string) => ["team/openai/gpt-4 rpd 0/50", `team/openai/gpt-4 rpm ${rpm}`];
      expect(await story(speculative)).toEqual([
        ["refused", ...own("1/10", "101/100!"), ...team("1/4")],
        ["granted", ...own("1/9", "50/50"), ...team("1/3")],
        ["granted", ...own("1/8", "0/50"), ...team("1/2")],
        ["refused", ...own("0/8", "51/50!"), ...team("0/2")],
        ["refused", ...own("0/8", "51/50!"), ...team("0/2")],
        ["refused", ...own("3/8", "0/50"), ...team("3/2!")],
        ["granted", ...own("0/8", "0/50"), ...team("0/2")],
        ["granted", ...own("2/6", "50/0"), ...team("2/0")],
        ["refused", ...own("1/6", "0/0"), ...team("1/0!")],
        ["granted", ...own("1/7", "0/25"), ...team("1/0")],
        ["refused", ...own("1/7", "30/25!"), ...team("1/0!")],
        ["refused", ...own("5/10", "100/100"), ...team("5/4!")],
        ["granted", ...own("4/6", "100/0"), ...team("4/0")],
      ]);
    },
  );
}

export function refusedRequestsContract(store: StoreUnderTest): void {
  const { expect, test, testEach } = store.cases;

  test("an acquire without limits at any level is refused before any write (A059)", async () => {
    const { limiter, repo } = await store.open();
    const error = await failureOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
    expect(error).toMatchObject({ name: "ValidationError", field: "limits" });
    expect(String(error)).toContain("user-1");
    expect(String(error)).toContain(RESOURCE);
    expect(await repo.buckets.list("user-1")).toEqual([]);
  });

  test("an acquire with a bad id or resource is refused before any write (A060)", async () => {
    const { limiter } = await store.open();
    const call = (entityId: string, resource: string) =>
      failureOf(limiter.acquire({ entityId, resource, limits: ["rpm:1"], consume: { rpm: 1 } }));
    const expectEmpty = async (failure: Promise<unknown>, expected: object) => {
      const error = await failure;
      expect(error).toMatchObject(expected);
      expect((error as { reason?: unknown }).reason as string).toContain("empty");
    };
    const entity = { name: "InvalidIdentifierError", field: "entity_id" };
    const resource = { name: "InvalidNameError", field: "resource" };
    expect(await call("user#123", "api")).toMatchObject(entity);
    await expectEmpty(call("", "api"), entity);
    expect(await call("user-123", "api#v2")).toMatchObject(resource);
    await expectEmpty(call("user-123", ""), resource);
    expect(await call("user-123", "_default_")).toMatchObject(resource);
  });

  const amounts: [string, unknown][] = [
    ["an unknown name", { tpm: 1 }],
    ["an unknown name besides a known one", { rpm: 1, tpm: 0 }],
    ["the reserved name", { wcu: 1 }],
    ["__proto__", JSON.parse('{"__proto__": 1}')],
    ["constructor", { constructor: 1 }],
    ["toString", { toString: 0 }],
    ["less than nothing", { rpm: -1 }],
    ["a fraction", { rpm: 0.5 }],
    ["not a number", { rpm: Number.NaN }],
    ["without end", { rpm: Number.POSITIVE_INFINITY }],
    ["text", { rpm: "1" }],
    ["null", { rpm: null }],
    ["more than any bucket may hold", { rpm: 1e12 + 1 }],
    ["a list", [1]],
    ["nothing at all", undefined],
  ];
  testEach(store.variants(amounts))(
    "a consume of %s is refused before any write (A066)",
    async (_, consume) => {
      const { limiter, repo } = await store.open();
      await repo.limits.setSystem(["rpm:100"]);
      const request = { ...USER, consume: consume as Record<string, number> };
      expect(await failureOf(limiter.acquire(request))).toMatchObject({
        code: "ZAEL_VALIDATION",
      });
      expect(await failureOf(limiter.tryAcquire(request))).toMatchObject({
        name: "ValidationError",
      });
      // The same once the bucket is there and known.
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      expect(await failureOf(limiter.acquire(request))).toMatchObject({
        name: "ValidationError",
      });
      expect((await repo.buckets.list("user-1")).map(({ tokens }) => tokens)).toEqual([99]);
    },
  );
}
