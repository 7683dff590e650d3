/** Tests of features that only Fastify has: encapsulated registrations, hooks, HTTP/2. */

import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import rateLimitFastify, * as onFastify from "@zae-limiter/limiter/http/fastify.ts";
import type { Outcome } from "@zae-limiter/limiter/http/options.ts";
import Fastify from "fastify";
import { describe, expect, test } from "vitest";
import { closeAfterEach, closeLater, memoryLimiter } from "./listening.ts";
import { gate, SLOW, statusOf } from "./suite.ts";

closeAfterEach();
const ONE = { limits: [`rpm:1${SLOW}`] };

describe("Fastify", () => {
  const listenFastify = async (app: ReturnType<typeof Fastify>) => {
    closeLater(() => app.close());
    return app.listen({ host: "127.0.0.1", port: 0 });
  };

  test("a registration in a scope limits the routes of that scope only", async () => {
    const app = Fastify({ forceCloseConnections: true });
    for (const name of ["a", "b"]) {
      await app.register(async (scope) => {
        await scope.register(rateLimitFastify, ONE);
        scope.get(`/${name}`, async (request) => request.lease?.consumed);
      });
    }
    app.get("/free", async () => "ok");
    const url = await listenFastify(app);
    expect(await (await fetch(`${url}/a`)).json()).toEqual({ rpm: 1 });
    const statuses = [];
    for (const path of ["/a", "/b", "/b", "/free", "/free"]) {
      statuses.push(await statusOf(url + path));
    }
    expect(statuses).toEqual([429, 200, 429, 200, 200]);
  });

  test("hooks of a route run after a grant, and not after a refusal", async () => {
    const app = Fastify({ forceCloseConnections: true });
    await app.register(rateLimitFastify, ONE);
    const called: string[] = [];
    app.get(
      "/",
      {
        onRequest: (_request, _reply, done) => {
          called.push("onRequest");
          done();
        },
        preHandler: [async () => void called.push("preHandler")],
      },
      async () => "ok",
    );
    const url = await listenFastify(app);
    expect([await statusOf(url), await statusOf(url)]).toEqual([200, 429]);
    expect(called).toEqual(["onRequest", "preHandler"]);
  });

  test("a scope limits in addition to the instance, and the lease is that of the scope", async () => {
    const app = Fastify({ forceCloseConnections: true });
    await app.register(rateLimitFastify, { limits: [`rpm:9${SLOW}`] });
    await app.register(async (scope) => {
      await scope.register(rateLimitFastify, { limits: [`tpm:7${SLOW}`] });
      scope.get("/inner", async (request) => request.lease?.consumed);
    });
    app.get("/outer", async (request) => onFastify.leaseOf(request)?.consumed);
    const url = await listenFastify(app);
    expect(await (await fetch(`${url}/inner`)).json()).toEqual({ tpm: 1 });
    expect(await (await fetch(`${url}/outer`)).json()).toEqual({ rpm: 1 });
  });

  test("X-Forwarded-For counts only where trustProxy says so", async () => {
    const serve = async (trustProxy: boolean) => {
      const app = Fastify({ forceCloseConnections: true, trustProxy });
      await app.register(rateLimitFastify, ONE);
      app.get("/", async () => "ok");
      return listenFastify(app);
    };
    const [trusting, wary] = [await serve(true), await serve(false)];
    const from = (address: string) => ({ "x-forwarded-for": address });
    expect(await statusOf(trusting, from("1.1.1.1"))).toBe(200);
    expect(await statusOf(trusting, from("2.2.2.2"))).toBe(200);
    expect(await statusOf(wary, from("1.1.1.1"))).toBe(200);
    expect(await statusOf(wary, from("2.2.2.2"))).toBe(429);
  });

  test("the handler for unknown paths is limited too", async () => {
    const app = Fastify({ forceCloseConnections: true });
    await app.register(rateLimitFastify, ONE);
    const url = await listenFastify(app);
    expect([await statusOf(`${url}/x`), await statusOf(`${url}/y`)]).toEqual([404, 429]);
  });

  test("the hook preHandler sees the body", async () => {
    const app = Fastify({ forceCloseConnections: true });
    await app.register(rateLimitFastify, {
      ...ONE,
      hook: "preHandler",
      entityId: (request) => (request.body as { key: string }).key,
    });
    app.post("/", async () => "ok");
    const url = await listenFastify(app);
    const post = async (key: string) => {
      const headers = { "content-type": "application/json" };
      return (await fetch(url, { method: "POST", headers, body: JSON.stringify({ key }) })).status;
    };
    expect([await post("a"), await post("a"), await post("b")]).toEqual([200, 429, 200]);
  });

  test("headers that the application sets stay, and errors keep those of the limiter", async () => {
    const app = Fastify({ forceCloseConnections: true });
    app.addHook("onRequest", async (_, reply) => {
      reply.header("x-own", "1");
    });
    await app.register(rateLimitFastify, { limits: [`rpm:2${SLOW}`] });
    app.get("/", async () => Promise.reject(new Error("broken")));
    const url = await listenFastify(app);
    for (const status of [500, 500, 429]) {
      const response = await fetch(url);
      await response.arrayBuffer();
      expect(response.status).toBe(status);
      expect(response.headers.get("x-own")).toBe("1");
      expect(response.headers.get("ratelimit")).not.toBeNull();
    }
  });

  describe("over HTTP/2", () => {
    const LIMITS = [`rpm:3${SLOW}`, `tpm:1000${SLOW}`];
    const TARGET = { entityId: "127.0.0.1", resource: "http", limits: LIMITS };

    /** A client of one connection; each request is a stream of its own. */
    async function client(url: string) {
      const session = connectHttp2(url);
      await once(session, "connect");
      closeLater(async () => session.destroy());
      return (path: string) => session.request({ ":path": path });
    }

    test("streams of one connection are limited one by one, and settle", async () => {
      const limiter = await memoryLimiter();
      const app = Fastify({ http2: true });
      const aborted: boolean[] = [];
      const refundWhen = (outcome: Outcome) => {
        aborted.push(outcome.aborted);
        return false;
      };
      await app.register(rateLimitFastify, { limiter, limits: LIMITS, refundWhen });
      app.get("/", async (request) => {
        request.lease?.settle({ tpm: 100 });
        return "ok";
      });
      const open = await client(await listenFastify(app as never));
      const statuses = [];
      for (let call = 0; call < 4; call += 1) {
        const stream = open("/");
        const [headers] = (await once(stream, "response")) as [Record<string, string>];
        statuses.push(headers[":status"]);
        if (call === 3) expect(headers["retry-after"]).toMatch(/^\d+$/);
        else expect(headers.ratelimit).toContain('"rpm"');
        stream.resume();
        await once(stream, "close");
      }
      expect(statuses).toEqual([200, 200, 200, 429]);
      await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 0, tpm: 700 });
      expect(aborted).toEqual([false, false, false]);
    });

    test("a stream that the client resets pays what was settled, or as refundWhen says", async () => {
      const limiter = await memoryLimiter();
      const app = Fastify({ http2: true });
      const outcomes: unknown[] = [];
      await app.register(rateLimitFastify, {
        limiter,
        limits: LIMITS,
        refundWhen: (outcome) => {
          outcomes.push(outcome);
          return false;
        },
      });
      const [settled, leave] = [gate(), gate()];
      app.get("/", async (request) => {
        request.lease?.settle({ tpm: 42 });
        settled.open();
        await leave.opened;
        request.lease?.settle({ tpm: 50 });
        return "late";
      });
      const open = await client(await listenFastify(app as never));
      const stream = open("/");
      stream.on("error", () => undefined);
      await settled.opened;
      stream.close(8);
      await once(stream, "close");
      await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 2, tpm: 958 });
      leave.open();
      await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 2, tpm: 950 });
      await expect.poll(() => outcomes).toEqual([{ status: 200, aborted: true }]);
    });
  });
});
