/** Tests of failures around a request: keys, functions, resources and handlers. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { HttpEvent } from "@zae-limiter/limiter/http/events.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS, type TestOptions } from "./served.ts";
import { byKey, SLOW, Stage, statusOf } from "./suite.ts";

const LIMITS = [`rpm:5${SLOW}`];

/** A limiter with a resource "dis" that an operator has switched off. */
async function switchedOff(): Promise<RateLimiter> {
  const items = new MemoryItemStore();
  const repository = await Repository.over(items);
  await items.writeMany({
    puts: pythonItems("45-config-resource-disabled", repository.namespaceId),
  });
  return new RateLimiter(repository);
}

describe.each(ADAPTERS)("failures around rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);
  const target = { entityId: "tenant", resource: "http", limits: LIMITS };

  test.each<[string, Partial<TestOptions>]>([
    ["skip", { skip: () => Promise.reject(new Error("broken")) }],
    ["entityId", { entityId: () => Promise.reject(new Error("broken")) }],
    ["resource", { resource: () => Promise.reject(new Error("broken")) }],
    ["consume", { consume: () => Promise.reject(new Error("broken")) }],
  ])("an error in %s of the second middleware refunds the first", async (_, broken) => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve([
      { limiter, limits: LIMITS, entityId: () => "tenant" },
      { limiter, limits: LIMITS, ...broken },
    ]);
    expect(await statusOf(url)).toBe(500);
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 5 });
  });

  test("a store of the second middleware that cannot be reached refunds the first", async () => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve([
      { limiter, limits: LIMITS, entityId: () => "tenant" },
      {
        limiter: Promise.reject(new RateLimiterUnavailable("The table could not be reached")),
        limits: LIMITS,
        onUnavailable: "block",
      },
    ]);
    expect(await statusOf(url)).toBe(503);
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 5 });
  });

  test.each<[string, Partial<TestOptions>]>([
    ["throws", { refused: () => Promise.reject(new Error("broken")) }],
    ["returns a status that does not exist", { refused: () => ({ status: 42 }) }],
    ["returns a status that is no number", { refused: () => ({ status: "x" as never }) }],
    ["returns a text", { refused: () => "slow down" as never }],
    ["returns a body that JSON cannot hold", { refused: () => ({ body: { big: 1n } }) }],
    ["returns a body that is a function", { refused: () => ({ body: () => "x" }) }],
    ["frames the body", { refused: () => ({ headers: { "Content-Length": "1" }, body: "abc" }) }],
    ["returns a header that is none", { refused: () => ({ headers: { "x-a": "a\nb" } }) }],
  ])("when refused %s the framework answers 500", async (_, broken) => {
    const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`], ...broken });
    expect(await statusOf(url)).toBe(200);
    expect(await statusOf(url)).toBe(500);
    expect(await statusOf(url)).toBe(500);
  });

  test.each([204, 205, 304])("refused may answer %i, which has no body", async (status) => {
    const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`], refused: () => ({ status }) });
    await statusOf(url);
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([status, ""]);
  });

  test.each([undefined, null, "", 0, false, "route", "router"])(
    "a function that throws %j instead of an error is a 500 too",
    async (thrown) => {
      let handled = 0;
      // oxlint-disable-next-line prefer-promise-reject-errors -- users throw anything.
      const consume = () => Promise.reject(thrown);
      const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`], consume }, () => {
        handled += 1;
        return { body: "ok" };
      });
      expect([await statusOf(url), handled]).toEqual([500, 0]);
    },
  );

  test("a resource that is switched off is a 403 without Retry-After", async () => {
    const limiter = stage.keep(await switchedOff());
    const events: HttpEvent[] = [];
    const { url } = await stage.serve({
      limiter,
      resource: "dis",
      limits: LIMITS,
      events: (event) => events.push(event),
    });
    const response = await fetch(url);
    expect(response.status).toBe(403);
    expect(response.headers.get("retry-after")).toBeNull();
    expect(response.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(events).toMatchObject([{ type: "refused", status: 403, resource: "dis" }]);
  });

  test("stored limits of a resource that is switched off are a 403 too", async () => {
    const limiter = stage.keep(await switchedOff());
    const { url } = await stage.serve({ limiter, resource: "dis" });
    expect(await statusOf(url)).toBe(403);
  });

  test("a request without a key is reported", async () => {
    const events: HttpEvent[] = [];
    const { url } = await stage.serve({
      limits: LIMITS,
      entityId: byKey,
      events: (event) => events.push(event),
    });
    expect(await statusOf(url)).toBe(401);
    expect(events).toEqual([
      { type: "refused", entityId: undefined, resource: undefined, status: 401 },
    ]);
  });

  test("observe passes what would have been a 401 or a 403, and marks it", async () => {
    const limiter = stage.keep(await switchedOff());
    const events: HttpEvent[] = [];
    const { url } = await stage.serve({
      limiter,
      limits: LIMITS,
      resource: "dis",
      entityId: byKey,
      mode: "observe",
      events: (event) => events.push(event),
    });
    for (const headers of [{}, { "x-key": "a" }]) {
      const response = await fetch(url, { headers });
      expect(response.status).toBe(200);
      expect(response.headers.get("x-ratelimit-observed")).toBe("refused");
    }
    expect(events.map(({ type, status }) => [type, status])).toEqual([
      ["observed", 401],
      ["observed", 403],
    ]);
  });

  test("an events function that throws fails no request", async () => {
    const { url } = await stage.serve({
      limits: [`rpm:1${SLOW}`],
      events: () => {
        throw new Error("broken");
      },
    });
    expect([await statusOf(url), await statusOf(url)]).toEqual([200, 429]);
  });

  test("a refundWhen that throws keeps the tokens consumed, and is reported", async () => {
    const limiter = await stage.limiter();
    const events: HttpEvent[] = [];
    const { url } = await stage.serve({
      limiter,
      limits: LIMITS,
      entityId: () => "tenant",
      refundWhen: () => {
        throw new Error("broken");
      },
      events: (event) => events.push(event),
    });
    expect(await statusOf(url)).toBe(200);
    await expect.poll(() => events.map(({ type }) => type)).toEqual(["granted", "commit_failed"]);
    expect(await limiter.available(target)).toEqual({ rpm: 4 });
  });

  test("a handler that throws something else than an error ends its lease", async () => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve(
      { limiter, limits: LIMITS, entityId: () => "tenant", onError: "rollback" },
      () => Promise.reject({ message: "no instance of Error" } as Error),
    );
    expect(await statusOf(url)).toBe(500);
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 5 });
  });

  test("no stored limit that applies is an error that says so", async () => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve({ limiter });
    expect(await statusOf(url)).toBe(500);
  });
});
