/**
 * Tests of features that only Hono and web-standard handlers have: contexts, fixed headers,
 * runtimes.
 */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import * as onFetch from "@zae-limiter/limiter/http/fetch.ts";
import * as onHono from "@zae-limiter/limiter/http/hono.ts";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { describe, expect, test } from "vitest";
import { closeAfterEach, listen, listenWeb, memoryLimiter } from "./listening.ts";
import { SLOW, statusOf } from "./suite.ts";

closeAfterEach();
const ONE = { limits: [`rpm:1${SLOW}`] };

describe("Hono", () => {
  test("a limit on a path limits that path only, also of a mounted application", async () => {
    const [app, inner] = [new Hono(), new Hono<{ Variables: onHono.LeaseVariables }>()];
    inner.use(onHono.rateLimit(ONE));
    inner.get("/x", (c) => c.json(c.var.lease?.consumed));
    app.use("/a/*", onHono.rateLimit(ONE));
    app.get("/a/x", (c) => c.text("ok"));
    app.get("/b", onHono.rateLimit(ONE), (c) => c.text("ok"));
    app.get("/free", (c) => c.text("ok"));
    app.route("/inner", inner);
    const url = await listenWeb(app);
    expect(await (await fetch(`${url}/inner/x`)).json()).toEqual({ rpm: 1 });
    const statuses = [];
    for (const path of ["/inner/x", "/a/x", "/a/x", "/b", "/b", "/free", "/free"]) {
      statuses.push(await statusOf(url + path));
    }
    expect(statuses).toEqual([429, 200, 429, 200, 429, 200, 200]);
  });

  test("the lease is found after a middleware has replaced the raw request", async () => {
    const app = new Hono<{ Variables: onHono.LeaseVariables }>();
    app.use(onHono.rateLimit(ONE), bodyLimit({ maxSize: 1000 }));
    app.post("/", (c) => c.json([onHono.leaseOf(c)?.consumed, c.get("lease")?.consumed]));
    const url = await listenWeb(app);
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("body"));
        controller.close();
      },
    });
    const response = await fetch(url, { method: "POST", body, duplex: "half" } as RequestInit);
    expect(await response.json()).toEqual([{ rpm: 1 }, { rpm: 1 }]);
  });

  test.each(["outer", "inner"])(
    "a response of fetch, whose headers are fixed, gets headers (%s)",
    async (place) => {
      const upstream = await listen((_, response) => response.end("upstream"));
      const app = new Hono();
      app.use(onHono.rateLimit(ONE));
      if (place === "inner") app.use(onHono.rateLimit({ limits: [`tpm:2${SLOW}`] }));
      app.get("/", () => fetch(upstream));
      const response = await fetch(await listenWeb(app));
      expect(await response.text()).toBe("upstream");
      expect(response.headers.get("ratelimit")).toContain('"rpm";r=0');
    },
  );

  test("getConnInfo returns the address on another runtime", async () => {
    const app = new Hono();
    const getConnInfo = (c: onHono.HonoContext) => ({
      remote: { address: c.req.raw.headers.get("x-address") ?? "" },
    });
    app.use(onHono.rateLimit({ ...ONE, getConnInfo }));
    app.get("/", (c) => c.text("ok"));
    const call = async (address: string) =>
      (await app.request("/", { headers: { "x-address": address } })).status;
    expect([await call("::1"), await call("::2"), await call("1.1.1.1")]).toEqual([200, 429, 200]);
  });

  test("a getConnInfo that is no function is refused", () => {
    expect(() => onHono.rateLimit({ ...ONE, getConnInfo: 5 as never })).toThrow(
      /^Invalid getConnInfo: expected a function/,
    );
  });

  test("a response that was read is an error, and its lease ends", async () => {
    const app = new Hono();
    let lease: Lease | undefined;
    app.use(onHono.rateLimit({ ...ONE, entityId: () => "key-1" }));
    app.get("/", (c) => {
      lease = onHono.leaseOf(c);
      return readResponse();
    });
    app.onError((_, c) => c.text("failed", 500));
    expect((await app.fetch(new Request("http://localhost/"))).status).toBe(500);
    expect(() => lease?.adjust({ rpm: 1 })).toThrow(LeaseExpiredError);
  });

  test("a response that cannot be copied, such as an upgrade, is returned unchanged", async () => {
    const app = new Hono();
    app.use(onHono.rateLimit({ ...ONE, entityId: () => "key-1" }));
    const upgrade = Response.error();
    app.get("/", () => upgrade);
    expect((await app.fetch(new Request("http://localhost/"))).type).toBe("error");
  });

  test("X-Forwarded-For is not read", async () => {
    const app = new Hono();
    app.use(onHono.rateLimit(ONE));
    app.get("/", (c) => c.text("ok"));
    const url = await listenWeb(app);
    expect(await statusOf(url, { "x-forwarded-for": "1.1.1.1" })).toBe(200);
    expect(await statusOf(url, { "x-forwarded-for": "2.2.2.2" })).toBe(429);
  });

  test("a request without a connection is an error that says what to pass", async () => {
    const app = new Hono();
    app.use(onHono.rateLimit(ONE));
    app.onError((error, c) => c.text(error.message, 500));
    const response = await app.request("/");
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining("pass `entityId`"),
    ]);
  });
});

/** A response whose body cannot be read again. */
async function readResponse(how: "begun" | "done" = "done"): Promise<Response> {
  const response = new Response("ok");
  if (how === "begun") response.body?.getReader();
  else await response.text();
  return response;
}

describe("fetch", () => {
  const entityId = () => "key-1";
  const call = () => new Request("http://localhost/");

  test("responses whose headers are fixed are copied, and those that cannot be are returned", async () => {
    const limits = [`rpm:9${SLOW}`];
    const redirect = onFetch.rateLimit(() => Response.redirect("http://localhost/x", 302), {
      limits,
      entityId,
    });
    const redirected = await redirect(call());
    expect([redirected.status, redirected.headers.get("ratelimit")]).toEqual([
      302,
      expect.stringContaining("rpm"),
    ]);
    const failing = onFetch.rateLimit(() => Response.error(), { limits, entityId });
    expect((await failing(call())).type).toBe("error");
  });

  test.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["a text", () => "ok"],
    ["a response that was read", async () => readResponse()],
    ["a response that is being read", () => readResponse("begun")],
  ])("a handler that returns %s is an error, and its lease ends", async (_, handle) => {
    const limiter = await memoryLimiter();
    const limits = [`rpm:9${SLOW}`];
    let lease: Lease | undefined;
    const handler = onFetch.rateLimit(
      (request) => {
        lease = onFetch.leaseOf(request);
        return handle() as Response;
      },
      { limiter, limits, entityId, onError: "rollback" },
    );
    await expect(handler(call())).rejects.toMatchObject({
      code: "ZAEL_VALIDATION",
      message: expect.stringMatching(/expected the handler to return a Response/),
    });
    expect(() => lease?.adjust({ rpm: 1 })).toThrow(LeaseExpiredError);
    expect(await limiter.available({ entityId: "key-1", resource: "http", limits })).toEqual({
      rpm: 9,
    });
  });

  test("a request that a second middleware refuses has no lease any more", async () => {
    const limiter = await memoryLimiter();
    const options = { limiter, entityId };
    const inner = onFetch.rateLimit(() => new Response("ok"), {
      ...options,
      limits: [`tpm:1${SLOW}`],
      consume: { tpm: 1 },
    });
    const handler = onFetch.rateLimit(inner, { ...options, limits: [`rpm:9${SLOW}`] });
    expect((await handler(call())).status).toBe(200);
    const request = call();
    expect((await handler(request)).status).toBe(429);
    expect(onFetch.leaseOf(request)).toBeUndefined();
  });

  test("a refusal without a body is one of the platform's own responses", async () => {
    const handler = onFetch.rateLimit(() => new Response("ok"), {
      limits: [`rpm:1${SLOW}`],
      entityId,
      refused: () => ({ status: 204 }),
    });
    await handler(call());
    const { body, status } = await handler(call());
    expect([status, body]).toEqual([204, null]);
  });

  test.each([undefined, {}, "handler"])("a handler that is %j is refused", (handler) => {
    expect(() => onFetch.rateLimit(handler as never, { ...ONE, entityId })).toThrow(
      /^Invalid handler: expected a function/,
    );
  });

  test("Bun's server tells the address of a request", async () => {
    const handler = onFetch.rateLimit(
      (_request: Request, _server: unknown) => new Response("ok"),
      ONE,
    );
    const server = (address: string) => ({ requestIP: () => ({ address }) });
    const statuses = [];
    const [first, sameSubnet, other] = ["2001:db8:0:1::1", "2001:db8:0:ff::2", "2001:db8:0:100::1"];
    for (const address of [first, sameSubnet, other, "9.9.9.9"]) {
      statuses.push((await handler(call(), server(address as string))).status);
    }
    expect(statuses).toEqual([200, 429, 200, 200]);
  });

  test("a request without an address is an error that says what to pass", async () => {
    const handler = onFetch.rateLimit(() => new Response("ok"), ONE);
    await expect(handler(call())).rejects.toThrow(/pass `entityId`/);
  });
});
