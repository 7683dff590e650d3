/** Every HTTP adapter does the same, on a real server with real clients. */

import { describe, expect, test } from "vitest";
import { ADAPTERS, type TestOptions } from "./served.ts";
import { byKey, SLOW, Stage, statusOf } from "./suite.ts";

describe.each(ADAPTERS)("rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);

  describe("entities", () => {
    test("entities by default the client's address is the entity", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({ limiter, limits: [`rpm:2${SLOW}`] });
      expect([await statusOf(url), await statusOf(url), await statusOf(url)]).toEqual([
        200, 200, 429,
      ]);
      const [bucket] = await limiter.repository.buckets.list("127.0.0.1");
      expect(bucket?.resource).toBe("http");
    });

    test("a memory limiter of its own is the default, one per middleware", async () => {
      const [one, other] = [
        await stage.serve({ limits: [`rpm:1${SLOW}`] }),
        await stage.serve({ limits: [`rpm:1${SLOW}`] }),
      ];
      expect(await statusOf(one.url)).toBe(200);
      expect(await statusOf(one.url)).toBe(429);
      expect(await statusOf(other.url)).toBe(200);
    });

    test("entityId names the entity, and may be asynchronous", async () => {
      const { url } = await stage.serve({
        limits: [`rpm:1${SLOW}`],
        entityId: async (request) => request.header("x-key"),
      });
      expect(await statusOf(url, { "x-key": "a" })).toBe(200);
      expect(await statusOf(url, { "x-key": "a" })).toBe(429);
      expect(await statusOf(url, { "x-key": "b" })).toBe(200);
    });

    test("a request without a key gets 401 and consumes nothing", async () => {
      const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`], entityId: byKey });
      const response = await fetch(url);
      expect(response.status).toBe(401);
      expect(response.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(await response.json()).toMatchObject({ status: 401, type: "about:blank" });
    });

    test("a request with an empty key is one without a key", async () => {
      const limits = [`rpm:1${SLOW}`];
      const { url } = await stage.serve({ limits, entityId: byKey });
      expect(await statusOf(url, { "x-key": "" })).toBe(401);
      const open = await stage.serve({ limits, entityId: byKey, anonymous: "visitors" });
      expect(await statusOf(open.url, { "x-key": "" })).toBe(200);
      expect(await statusOf(open.url)).toBe(429);
    });

    test("a key that is null, as Headers.get returns it, is no key", async () => {
      const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`], entityId: () => null });
      expect(await statusOf(url)).toBe(401);
    });

    test("anonymous names the entity of requests without a key", async () => {
      const { url } = await stage.serve({
        limits: [`rpm:1${SLOW}`],
        entityId: byKey,
        anonymous: "visitors",
      });
      expect(await statusOf(url)).toBe(200);
      expect(await statusOf(url)).toBe(429);
      expect(await statusOf(url, { "x-key": "a" })).toBe(200);
    });

    test("keys that are not legal ids become different entities", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({ limiter, limits: [`rpm:1${SLOW}`], entityId: byKey });
      for (const key of ["a b", "a@20b", "enc:a@20b", "%61", "#", "::1", "x".repeat(400)]) {
        expect([key, await statusOf(url, { "x-key": key })]).toEqual([key, 200]);
        expect([key, await statusOf(url, { "x-key": key })]).toEqual([key, 429]);
      }
    });
  });

  describe("amounts", () => {
    test("without consume, 1 of each of the limits is consumed", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({ limiter, limits: [`rpm:5${SLOW}`, `tpm:9${SLOW}`] });
      await statusOf(url);
      const limits = [`rpm:5${SLOW}`, `tpm:9${SLOW}`];
      const target = { entityId: "127.0.0.1", resource: "http", limits };
      expect(await limiter.available(target)).toEqual({ rpm: 4, tpm: 8 });
    });

    test("without limits, 1 of each stored limit that applies is consumed", async () => {
      const limiter = await stage.limiter();
      await limiter.repository.limits.setSystem([`rpm:1${SLOW}`]);
      const { url } = await stage.serve({ limiter });
      expect(await statusOf(url)).toBe(200);
      expect(await statusOf(url)).toBe(429);
    });

    test("a limit that the entity does not have is an error, or ignored", async () => {
      const limiter = await stage.limiter();
      await limiter.repository.limits.setSystem([`rpm:5${SLOW}`]);
      const consume = { rpm: 1, tpm: 100 };
      const strict = await stage.serve({ limiter, consume });
      expect(await statusOf(strict.url)).toBe(500);
      const consumed: unknown[] = [];
      const { url } = await stage.serve({ limiter, consume, missingLimits: "ignore" }, (visit) => {
        consumed.push(visit.lease?.consumed);
        return { body: "ok" };
      });
      expect(await statusOf(url)).toBe(200);
      expect(consumed).toEqual([{ rpm: 1 }]);
    });

    test("consume and resource may be functions, also asynchronous ones", async () => {
      const limiter = await stage.limiter();
      const limits = [`tpm:10${SLOW}`];
      const { url } = await stage.serve({
        limiter,
        limits,
        entityId: () => "key-1",
        resource: async (request) => request.path.slice(1),
        consume: async (request) => ({ tpm: Number(request.header("x-cost")) }),
      });
      expect(await statusOf(`${url}/gpt-4`, { "x-cost": "7" })).toBe(200);
      expect(await statusOf(`${url}/gpt-4`, { "x-cost": "4" })).toBe(429);
      expect(await statusOf(`${url}/other`, { "x-cost": "4" })).toBe(200);
    });

    test.each<[string, Partial<TestOptions>]>([
      ["consume throws", { consume: () => Promise.reject(new Error("broken")) }],
      ["consume returns nonsense", { consume: () => "x" as never }],
      ["consume returns a fraction", { consume: () => ({ rpm: 0.5 }) }],
      ["resource throws", { resource: () => Promise.reject(new Error("broken")) }],
      ["resource returns nonsense", { resource: () => "#" }],
      ["entityId throws", { entityId: () => Promise.reject(new Error("broken")) }],
      ["entityId returns no text", { entityId: () => 5 as never }],
      ["skip throws", { skip: () => Promise.reject(new Error("broken")) }],
    ])("when %s the framework answers 500 and nothing is consumed", async (_, broken) => {
      const limiter = await stage.limiter();
      const limits = [`rpm:5${SLOW}`];
      const { url } = await stage.serve({ limiter, limits, ...broken });
      expect(await statusOf(url)).toBe(500);
      expect(await limiter.repository.buckets.list("127.0.0.1")).toEqual([]);
    });
  });

  describe("leases", () => {
    const limits = [`rpm:10${SLOW}`, `tpm:1000${SLOW}`];
    const target = { entityId: "127.0.0.1", resource: "http", limits };

    test("a handler settles its lease, and it is written when the response has ended", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve(
        { limiter, limits, consume: { rpm: 1, tpm: 200 } },
        (visit) => {
          visit.lease?.settle({ tpm: 730 });
          return { body: "ok" };
        },
      );
      await statusOf(url);
      await expect.poll(() => limiter.available(target)).toEqual({ rpm: 9, tpm: 270 });
    });

    test("a handler may end its lease itself", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve(
        { limiter, limits, refundWhen: () => true },
        async ({ lease }) => {
          await lease?.commit();
          return { body: "ok" };
        },
      );
      expect(await statusOf(url)).toBe(200);
      expect(await limiter.available(target)).toEqual({ rpm: 9, tpm: 999 });
    });

    test("refundWhen refunds by status", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve(
        { limiter, limits, refundWhen: ({ status }) => status >= 400 },
        ({ path }) => ({ status: Number(path.slice(1)) }),
      );
      await statusOf(`${url}/404`);
      await statusOf(`${url}/200`);
      await expect.poll(() => limiter.available(target)).toEqual({ rpm: 9, tpm: 999 });
    });

    test("a handler that throws keeps its tokens consumed by default", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({ limiter, limits }, () =>
        Promise.reject(new Error("broken")),
      );
      expect(await statusOf(url)).toBe(500);
      await expect.poll(() => limiter.available(target)).toEqual({ rpm: 9, tpm: 999 });
    });

    test("onError rollback refunds a handler that throws, and no other", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({ limiter, limits, onError: "rollback" }, ({ path }) =>
        path === "/throw" ? Promise.reject(new Error("broken")) : { body: "ok" },
      );
      expect(await statusOf(`${url}/throw`)).toBe(500);
      await statusOf(`${url}/fine`);
      await expect.poll(() => limiter.available(target)).toEqual({ rpm: 9, tpm: 999 });
    });
  });
});
