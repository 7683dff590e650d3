/**
 * Tests of features that only Express, Connect and node:http have: routers, proxies, error
 * handlers.
 */

import { createServer, request as nodeRequest } from "node:http";
import { connect as netConnect } from "node:net";
import * as onExpress from "@zae-limiter/limiter/http/express.ts";
import connect from "connect";
import express, { type Request as ExpressRequest, type NextFunction, type Response } from "express";
import { describe, expect, test } from "vitest";
import { closeAfterEach, listen, listening, memoryLimiter } from "./listening.ts";
import { gate, hangUp, SLOW, statusOf, turns } from "./suite.ts";

closeAfterEach();
const ONE = { limits: [`rpm:1${SLOW}`] };

describe("Express", () => {
  test("limits per route count apart, and routes without one are not limited", async () => {
    const app = express();
    const hello = (_: ExpressRequest, response: Response) => void response.send("hello");
    app.get("/a", onExpress.rateLimit(ONE), hello);
    app.get("/b", onExpress.rateLimit(ONE), hello);
    app.get("/free", hello);
    const url = await listen(app);
    const paths = ["/a", "/a", "/b", "/b", "/free", "/free"];
    const statuses = [];
    for (const path of paths) statuses.push(await statusOf(url + path));
    expect(statuses).toEqual([200, 429, 200, 429, 200, 200]);
  });

  test("a sub-router limits in addition to the application, and refunds it when it refuses", async () => {
    const limiter = await memoryLimiter();
    const [outer, inner] = [[`rpm:5${SLOW}`], [`rpm:1${SLOW}`]];
    const app = express();
    const router = express.Router();
    app.use(onExpress.rateLimit({ limiter, limits: outer, resource: "app" }));
    router.use(onExpress.rateLimit({ limiter, limits: inner, resource: "api" }));
    router.get("/x", (request, response) => void response.json(request.lease?.consumed));
    app.use("/api", router);
    app.get("/y", (request, response) => void response.json(request.lease?.consumed));
    const url = await listen(app);
    expect(await (await fetch(`${url}/api/x`)).json()).toEqual({ rpm: 1 });
    expect(await statusOf(`${url}/api/x`)).toBe(429);
    expect(await statusOf(`${url}/y`)).toBe(200);
    const target = { entityId: "127.0.0.1", resource: "app", limits: outer };
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 3 });
  });

  test("a mounted application finds the lease of its parent", async () => {
    const [app, inner] = [express(), express()];
    inner.get("/", (request, response) => {
      response.json(request.lease === onExpress.leaseOf(request) && request.lease !== undefined);
    });
    app.use(onExpress.rateLimit(ONE));
    app.use("/inner", inner);
    expect(await (await fetch(`${await listen(app)}/inner`)).json()).toBe(true);
  });

  test("the options of a route see its parameters and its body", async () => {
    const app = express();
    app.use(express.json());
    app.post(
      "/models/:model",
      onExpress.rateLimit<ExpressRequest>({
        limits: [`tpm:10${SLOW}`],
        resource: (request) => String(request.params.model),
        consume: (request) => ({ tpm: (request.body as { cost: number }).cost }),
      }),
      (_, response) => void response.send("ok"),
    );
    const url = await listen(app);
    const post = async (model: string, cost: number) => {
      const init = { method: "POST", headers: { "content-type": "application/json" } };
      const body = JSON.stringify({ cost });
      return (await fetch(`${url}/models/${model}`, { ...init, body })).status;
    };
    expect([await post("a", 7), await post("a", 7), await post("b", 7)]).toEqual([200, 429, 200]);
  });

  test("an OPTIONS request is limited unless skip leaves it alone", async () => {
    const app = express();
    app.use(onExpress.rateLimit({ ...ONE, skip: (request) => request.url === "/free" }));
    app.get(["/", "/free"], (_, response) => void response.send("ok"));
    const url = await listen(app);
    const options = async (path: string) => (await fetch(url + path, { method: "OPTIONS" })).status;
    expect([await options("/free"), await options("/"), await options("/")]).toEqual([
      200, 200, 429,
    ]);
  });

  test("X-Forwarded-For counts only where trust proxy says so", async () => {
    const url = async (trust: boolean) => {
      const app = express();
      app.set("trust proxy", trust);
      app.use(onExpress.rateLimit(ONE), (_, response) => void response.send("ok"));
      return listen(app);
    };
    const [trusting, wary] = [await url(true), await url(false)];
    const from = (address: string) => ({ "x-forwarded-for": address });
    expect(await statusOf(trusting, from("2001:db8::1"))).toBe(200);
    expect(await statusOf(trusting, from("2001:db8::ffff"))).toBe(429);
    expect(await statusOf(trusting, from("2001:db8:0:100::1"))).toBe(200);
    expect(await statusOf(wary, from("1.1.1.1"))).toBe(200);
    expect(await statusOf(wary, from("2.2.2.2"))).toBe(429);
  });

  test("a client that is gone before its turn is no error, and consumes nothing", async () => {
    const [arrived, leave, left] = [gate(), gate(), gate()];
    const events: string[] = [];
    const app = express();
    app.use(async (_request, _response, next) => {
      arrived.open();
      await leave.opened;
      next();
      left.open();
    });
    app.use(onExpress.rateLimit({ ...ONE, events: ({ type }) => events.push(type) }));
    app.use((error: Error, _: ExpressRequest, _response: Response, _next: NextFunction) => {
      events.push(error.message);
    });
    const { port } = new URL(await listen(app));
    const socket = netConnect(Number(port), "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await arrived.opened;
    await hangUp(socket);
    leave.open();
    await left.opened;
    await turns();
    expect(events).toEqual([]);
  });

  test("errors reach the error handler of the application", async () => {
    const app = express();
    app.use(onExpress.rateLimit({ ...ONE, entityId: () => Promise.reject(new Error("no key")) }));
    app.use((error: Error, _: ExpressRequest, response: Response, _next: NextFunction) => {
      response.status(418).send(error.message);
    });
    const response = await fetch(await listen(app));
    expect([response.status, await response.text()]).toEqual([418, "no key"]);
  });

  test("a body that the client only offers is not asked for when the request is refused", async () => {
    const app = express();
    app.use(onExpress.rateLimit(ONE));
    app.post("/", (request, response) => {
      response.writeContinue();
      request.resume().on("end", () => response.send("read"));
    });
    const server = createServer(app).on("checkContinue", app);
    const { port } = new URL(await listening(server));
    const offered = () =>
      new Promise<[number | undefined, boolean]>((resolve, reject) => {
        let asked = false;
        const headers = { Expect: "100-continue" };
        const sent = nodeRequest({ port, method: "POST", headers, agent: false });
        sent.on("continue", () => {
          asked = true;
          sent.end("body");
        });
        sent.on("response", (response) => {
          response.resume();
          sent.destroy();
          resolve([response.statusCode, asked]);
        });
        sent.on("error", reject);
        sent.flushHeaders();
      });
    expect(await offered()).toEqual([200, true]);
    expect(await offered()).toEqual([429, false]);
  });
});

describe("Connect", () => {
  test("requests are limited, and errors reach its error handling", async () => {
    const app = connect();
    app.use("/broken", onExpress.rateLimit({ ...ONE, resource: () => "#" }));
    app.use(onExpress.rateLimit(ONE));
    app.use((request, response) => response.end(String(onExpress.leaseOf(request) !== undefined)));
    app.use(((_error: Error, _: unknown, response: Response, _next: unknown) => {
      response.statusCode = 418;
      response.end();
    }) as never);
    const url = await listen(app);
    expect(await (await fetch(url)).text()).toBe("true");
    expect([await statusOf(url), await statusOf(`${url}/broken`)]).toEqual([429, 418]);
  });
});

describe("node:http", () => {
  test("a continuation that takes no error is not called after one", async () => {
    const limit = onExpress.rateLimit({ ...ONE, entityId: () => Promise.reject(new Error("x")) });
    let called = 0;
    const url = await listen((request, response) => {
      limit(request, response, () => {
        called += 1;
        response.end();
      });
    });
    const response = await fetch(url);
    expect([response.status, called]).toEqual([500, 0]);
    expect(await response.json()).toMatchObject({ status: 500, type: "about:blank" });
  });

  test("a handler that throws is answered with 500 and called once", async () => {
    const limiter = await memoryLimiter();
    const limits = [`rpm:5${SLOW}`];
    const limit = onExpress.rateLimit({ limiter, limits, onError: "rollback" });
    let called = 0;
    const url = await listen((request, response) => {
      limit(request, response, () => {
        called += 1;
        throw new Error("broken");
      });
    });
    expect([await statusOf(url), called]).toEqual([500, 1]);
    const target = { entityId: "127.0.0.1", resource: "http", limits };
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 5 });
  });
});
