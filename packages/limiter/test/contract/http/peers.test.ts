/**
 * Tests of behaviour that users of express-rate-limit, hono-rate-limiter and @fastify/rate-limit
 * rely on.
 */

import { describe, expect, test } from "vitest";
import { ADAPTERS, type TestOptions } from "./served.ts";
import { byKey, SLOW, Stage, statusOf } from "./suite.ts";

describe.each(ADAPTERS)("habits of peers with rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);

  test("a refused client is served again after Retry-After, every time", async () => {
    let now = 1_800_000_000_000;
    const limiter = await stage.limiter({ clock: () => now });
    const { url } = await stage.serve({ limiter, limits: ["rpm:2"] });
    expect([await statusOf(url), await statusOf(url)]).toEqual([200, 200]);
    for (let round = 0; round < 3; round += 1) {
      const refused = await fetch(url);
      await refused.arrayBuffer();
      const waitSeconds = Number(refused.headers.get("retry-after"));
      expect(refused.status).toBe(429);
      now += 25_000;
      expect(await statusOf(url)).toBe(429);
      now += waitSeconds * 1000 - 25_000;
      expect(await statusOf(url)).toBe(200);
    }
  });

  test("a granted answer carries no Retry-After, and keeps the handler's body", async () => {
    const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`] }, () => ({ body: "hello" }));
    const response = await fetch(url);
    expect([response.headers.get("retry-after"), await response.text()]).toEqual([null, "hello"]);
  });

  test("requests that come at once are granted up to the limit and no further", async () => {
    const { url } = await stage.serve({ limits: [`rpm:5${SLOW}`] });
    const statuses = await Promise.all(Array.from({ length: 12 }, () => statusOf(url)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(7);
  });

  test("the options stay as they were given", async () => {
    const options: TestOptions = Object.freeze({
      limits: Object.freeze([`rpm:1${SLOW}`]) as string[],
      headers: Object.freeze(["draft", "legacy"] as const),
    });
    const { url } = await stage.serve(options);
    expect(await statusOf(url)).toBe(200);
    expect(options).toEqual({ limits: [`rpm:1${SLOW}`], headers: ["draft", "legacy"] });
  });

  test("two middlewares on two keys count independently", async () => {
    const { url } = await stage.serve([
      { limits: [`rpm:2${SLOW}`], entityId: byKey, refused: () => ({ status: 420 }) },
      { limits: [`rpm:3${SLOW}`], entityId: () => "global" },
    ]);
    const statuses = [];
    for (const key of ["a", "a", "a", "b", "b"]) {
      statuses.push(await statusOf(url, { "x-key": key }));
    }
    expect(statuses).toEqual([200, 200, 420, 200, 429]);
  });

  test("refundWhen counts only failed requests, as skipSuccessfulRequests does", async () => {
    const limiter = await stage.limiter();
    const limits = [`rpm:2${SLOW}`];
    const refundWhen: TestOptions["refundWhen"] = ({ status }) => status < 400;
    const { url } = await stage.serve({ limiter, limits, refundWhen }, ({ path }) => ({
      status: Number(path.slice(1)),
    }));
    const target = { entityId: "127.0.0.1", resource: "http", limits };
    for (const [status, left] of [
      [200, 2],
      [400, 1],
      [200, 1],
      [500, 0],
    ] as const) {
      expect(await statusOf(`${url}/${status}`)).toBe(status);
      await expect.poll(() => limiter.available(target)).toEqual({ rpm: left });
    }
    expect(await statusOf(`${url}/200`)).toBe(429);
  });

  test("a refused request does not reach the handler", async () => {
    let handled = 0;
    const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`] }, () => {
      handled += 1;
      return { body: "ok" };
    });
    expect([await statusOf(url), await statusOf(url), await statusOf(url)]).toEqual([
      200, 429, 429,
    ]);
    expect(handled).toBe(1);
  });

  test("skip and refused may be asynchronous", async () => {
    const { url } = await stage.serve({
      limits: [`rpm:1${SLOW}`],
      skip: async (request) => request.path === "/health",
      refused: async (_refusal, request) => ({ body: `wait, ${request.path}` }),
    });
    const statuses = [];
    for (const path of ["/health", "/a", "/health"]) statuses.push(await statusOf(url + path));
    expect(statuses).toEqual([200, 200, 200]);
    const refused = await fetch(`${url}/a`);
    expect([refused.status, await refused.text()]).toEqual([429, "wait, /a"]);
  });

  test("a key with stored limits of its own has those, and the others the common ones", async () => {
    const limiter = await stage.limiter();
    await limiter.repository.limits.setSystem([`rpm:1${SLOW}`]);
    await limiter.repository.limits.setEntity("pro", [`rpm:3${SLOW}`]);
    const { url } = await stage.serve({ limiter, entityId: byKey });
    const statuses = [];
    for (const key of ["pro", "pro", "pro", "pro", "free", "free"]) {
      statuses.push(await statusOf(url, { "x-key": key }));
    }
    expect(statuses).toEqual([200, 200, 200, 429, 200, 429]);
  });
});
