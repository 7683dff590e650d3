/** What only Hono and web-standard handlers have: contexts, fixed headers, runtimes. */

import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { describe, expect, test } from "vitest";
import * as onFetch from "../../../src/http/fetch.ts";
import * as onHono from "../../../src/http/hono.ts";
import { closeAfterEach, listen, listenWeb } from "./listening.ts";
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

  test("getConnInfo tells the address on another runtime", async () => {
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

  test("Bun's server tells the address of a request", async () => {
    const handler = onFetch.rateLimit(
      (_request: Request, _server: unknown) => new Response("ok"),
      ONE,
    );
    const server = (address: string) => ({ requestIP: () => ({ address }) });
    const statuses = [];
    for (const address of ["::1", "::2", "9.9.9.9"]) {
      statuses.push((await handler(call(), server(address))).status);
    }
    expect(statuses).toEqual([200, 429, 200]);
  });

  test("a request without an address is an error that says what to pass", async () => {
    const handler = onFetch.rateLimit(() => new Response("ok"), ONE);
    await expect(handler(call())).rejects.toThrow(/pass `entityId`/);
  });
});
