/** The examples and the recipes of the docs run as they are, on the sources. */

import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { initTRPC } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import express from "express";
import Koa from "koa";
import { describe, expect, test } from "vitest";
import { closeAfterEach, listen, memoryLimiter, urlOf } from "./listening.ts";
import { SLOW, statusOf } from "./suite.ts";

closeAfterEach();
const FOLDER = new URL("../../../../../examples/", import.meta.url);
const load = (path: string) => import(/* @vite-ignore */ new URL(path, FOLDER).href);

/** Calls an example until it refuses. */
async function useUp(post: (key: string | undefined) => Promise<Response>): Promise<void> {
  expect((await post(undefined)).status).toBe(401);
  for (let call = 0; call < 3; call += 1) {
    const response = await post("key-1");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ answer: "HELLO", tokens: 5 });
  }
  const refused = await post("key-1");
  expect(refused.status).toBe(429);
  // Three calls that settled 5 tokens each; a second or two of refill may have passed.
  const { limits } = (await refused.json()) as { limits: { available: number }[] };
  expect(limits[1]?.available).toBeGreaterThan(900);
  expect(JSON.stringify(limits)).not.toContain("key-1");
  expect(JSON.stringify([...refused.headers])).not.toContain("key-1");
  expect((await post("key-2")).status).toBe(200);
  // A key that was never handed out has no bucket.
  expect((await post("made-up")).status).toBe(401);
}

function calling(url: string): (key: string | undefined) => Promise<Response> {
  return (key) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return fetch(url, { method: "POST", headers, body: "hello" });
  };
}

describe("examples", () => {
  test.each(["express", "fastify", "hono"])("the example for %s runs", async (name) => {
    process.env.PORT = "0";
    const { server } = (await load(`${name}/server.js`)) as { server: Server };
    const url = (await urlOf(server)).replace("127.0.0.1", "localhost");
    await useUp(calling(`${url}/chat`));
  });

  test("the example for Next.js runs", async () => {
    const { POST } = (await load("next-route/app/api/chat/route.js")) as {
      POST: (request: Request, context: unknown) => Promise<Response>;
    };
    await useUp((key) => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const request = new Request("http://x/api/chat", { method: "POST", headers, body: "hello" });
      return POST(request, { params: Promise.resolve({}) });
    });
  });
});

describe("examples without a server", () => {
  test("the quick start grants three calls and refuses the others", async () => {
    const { outcomes } = (await load("quick-start/index.js")) as { outcomes: string[] };
    expect(outcomes.map((line) => /refused|50 tokens/.exec(line)?.[0])).toEqual([
      ...Array(3).fill("50 tokens"),
      ...Array(2).fill("refused"),
    ]);
  });

  test("the keys of the multi-tenant example share the limit of their project", async () => {
    const { results } = (await load("multi-tenant/index.js")) as { results: unknown[] };
    expect(results).toEqual([
      { entityId: "key-1", calls: 10, refusedBy: ["key-1"] },
      { entityId: "key-2", calls: 5, refusedBy: ["acme-search"] },
    ]);
  });

  test("the workers of the queue example do all jobs within the limit", async () => {
    const { done, seconds } = (await load("worker-queue/index.js")) as {
      done: unknown[];
      seconds: number;
    };
    expect(done).toHaveLength(20);
    expect(seconds).toBeGreaterThanOrEqual(0.7);
  });
});

describe("recipes", () => {
  test("docs/guide/http-recipes.md shows them as they are", () => {
    const page = readFileSync(new URL("../docs/guide/http-recipes.md", FOLDER), "utf8");
    for (const name of ["recipes/koa", "recipes/nest", "recipes/trpc", "lambda/handler"]) {
      expect(page).toContain(readFileSync(new URL(`${name}.js`, FOLDER), "utf8"));
    }
  });

  test("Koa: requests are limited, the lease settles, errors reach the application", async () => {
    const { koaRateLimit } = (await load("recipes/koa.js")) as {
      koaRateLimit: (options: object) => Parameters<Koa["use"]>[0];
    };
    const limiter = await memoryLimiter();
    const limits = [`rpm:2${SLOW}`, `tpm:100${SLOW}`];
    const app = new Koa();
    app.silent = true;
    const skip = (request: { url: string }) => {
      if (request.url === "/broken") throw new Error("broken");
      return false;
    };
    app.use(koaRateLimit({ limiter, limits, skip }));
    app.use(async (ctx) => {
      (ctx.state.lease as Lease).settle({ tpm: 30 });
      ctx.body = "ok";
    });
    const url = await listen(app.callback());
    expect([await statusOf(url), await statusOf(url)]).toEqual([200, 200]);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get("content-type")]).toEqual([
      429,
      "application/problem+json",
    ]);
    expect(await statusOf(`${url}/broken`)).toBe(500);
    const target = { entityId: "127.0.0.1", resource: "http", limits };
    await expect.poll(() => limiter.available(target)).toEqual({ rpm: 0, tpm: 40 });
  });

  test("NestJS: a module applies the middleware to its routes", async () => {
    const { ChatModule } = (await load("recipes/nest.js")) as {
      ChatModule: new () => { configure(consumer: unknown): void };
    };
    // The part of Nest that a module sees: it mounts middlewares on Express.
    const app = express();
    const consumer = {
      apply: (...middlewares: express.RequestHandler[]) => ({
        forRoutes: (path: string) => app.use(`/${path}`, ...middlewares),
      }),
    };
    new ChatModule().configure(consumer);
    app.use((request, response) => void response.json(request.lease?.consumed ?? null));
    const url = await listen(app);
    const headers = { "x-api-key": "key-1" };
    expect(await (await fetch(`${url}/chat`, { headers })).json()).toEqual({ rpm: 1, tpm: 1 });
    expect(await (await fetch(`${url}/other`)).json()).toBeNull();
    expect(await statusOf(`${url}/chat`)).toBe(401);
    const madeUp = await fetch(`${url}/chat`, { headers: { "x-api-key": "made-up" } });
    expect(madeUp.status).toBe(401);
  });

  test("tRPC: a refused procedure is a 429 with Retry-After", async () => {
    const { limited } = (await load("recipes/trpc.js")) as {
      limited: (t: unknown, limiter: RateLimiter) => never;
    };
    const limiter = await RateLimiter.open("memory:");
    await limiter.repository.limits.setSystem([`rpm:1${SLOW}`]);
    type Context = { userId: string; resHeaders: Headers; lease?: Lease };
    const t = initTRPC.context<Context>().create();
    const router = t.router({
      hello: t.procedure
        .use(limited(t, limiter))
        .query(({ ctx }) => (ctx as Context).lease?.consumed),
    });
    const call = () =>
      fetchRequestHandler({
        endpoint: "/trpc",
        req: new Request("http://x/trpc/hello"),
        router,
        createContext: ({ resHeaders }) => ({ userId: "user-1", resHeaders }),
      });
    expect(await (await call()).json()).toEqual({ result: { data: { rpm: 1 } } });
    const refused = await call();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([
      429,
      expect.stringMatching(/^\d+$/),
    ]);
    await limiter.close();
  });

  test("Lambda: an event of API Gateway is limited, and its lease has ended", async () => {
    const { handler } = (await load("lambda/handler.js")) as {
      handler: (event: unknown) => Promise<{
        statusCode: number;
        headers: Record<string, string>;
        body: string;
      }>;
    };
    const event = (headers: object) => ({
      rawPath: "/chat",
      headers,
      requestContext: { domainName: "api.example.com", http: { method: "GET" } },
    });
    const first = await handler(event({ "x-api-key": "key-1" }));
    expect([first.statusCode, first.body]).toEqual([200, '{"path":"/chat"}']);
    expect(first.headers.ratelimit).toContain('"rpm";r=59');
    const second = await handler(event({ "x-api-key": "key-1" }));
    expect(second.headers.ratelimit).toMatch(/"tpm";r=9[23]\d\d/);
    expect((await handler(event({}))).statusCode).toBe(401);
  });
});
