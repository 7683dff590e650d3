/** The dashboard's handler in servers of others: Express, Fastify and Hono, over real sockets. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { getRequestListener, serve } from "@hono/node-server";
import { dashboard } from "@zae-limiter/dashboard/index.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const SECRET = "Bearer secret";
let limiter: RateLimiter;
let handler: (request: Request) => Promise<Response>;
let stop: () => Promise<unknown>;

beforeEach(async () => {
  limiter = await RateLimiter.open("memory:");
  const { repository } = limiter;
  const authorize = (request: Request) => request.headers.get("authorization") === SECRET && "ops";
  handler = dashboard(repository, { limiter, authorize });
});
afterEach(async () => {
  await stop();
  await limiter.close();
});

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stop = async () => {
    server.closeAllConnections();
    server.close();
  };
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const SERVERS: Readonly<Record<string, () => Promise<string>>> = {
  async Express() {
    const app = express();
    app.use("/limits", getRequestListener(handler));
    return listening(createServer(app));
  },
  async Fastify() {
    const app = fastify();
    // The handler reads bodies itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    app.all("/limits/*", async (request, reply) => {
      const { method, headers, body, url } = request;
      const given = {
        method,
        headers: headers as Record<string, string>,
        ...(body instanceof Readable ? { body: Readable.toWeb(body), duplex: "half" } : {}),
      };
      return reply.send(
        await handler(new Request(`http://${request.host}${url}`, given as RequestInit)),
      );
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    stop = () => app.close();
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  },
  async Hono() {
    const app = new Hono();
    app.all("/limits/*", (c) => handler(c.req.raw));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
    await once(server, "listening");
    stop = async () => {
      server.closeAllConnections();
      server.close();
    };
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
};

describe("the dashboard's handler", () => {
  test.each(Object.keys(SERVERS))(
    "the dashboard's handler serves the page, changes and live events in %s",
    async (name) => {
      const origin = (await SERVERS[name]?.()) as string;
      const at = (path: string) => `${origin}/limits/${path}`;
      const headers = { authorization: SECRET };
      expect((await fetch(at(""))).status).toBe(401);
      const page = await fetch(at(""), { headers });
      expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(await page.text()).toContain("<title>zae-limiter</title>");
      const saved = await fetch(at("api/limits"), {
        method: "POST",
        headers: {
          ...headers,
          origin,
          "content-type": "application/json",
          "x-zae-limiter-dashboard": "1",
        },
        body: JSON.stringify({ level: "system", limits: ["rpm:7"], expected: [] }),
      });
      expect({ status: saved.status, body: saved.ok ? "" : await saved.text() }).toEqual({
        status: 200,
        body: "",
      });
      const { limits } = await limiter.repository.limits.getSystem();
      expect(limits.map(String)).toEqual(["rpm:7/min"]);
      const leaving = new AbortController();
      const events = await fetch(at("api/events"), { headers, signal: leaving.signal });
      const reader = (events.body as ReadableStream<Uint8Array>).getReader();
      const first = Buffer.from((await reader.read()).value ?? []).toString();
      expect(first).toContain("event: ");
      leaving.abort();
    },
  );
});
