/** Options of the HTTP adapters know the request of their framework, and contexts their lease. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { rateLimit as onExpress } from "@zae-limiter/limiter/http/express.ts";
import onFastify from "@zae-limiter/limiter/http/fastify.ts";
import { type LeaseVariables, rateLimit as onHono } from "@zae-limiter/limiter/http/hono.ts";
import express from "express";
import Fastify, { type FastifyRequest } from "fastify";
import { Hono } from "hono";
import { expectTypeOf, test } from "vitest";

const limits = ["rpm:60"];

test("Express: options see the request of Express, and handlers its lease", () => {
  const app = express();
  app.use(onExpress({ limits, entityId: (request) => request.query["key"] as string }));
  app.get("/", (request) => expectTypeOf(request.lease).toEqualTypeOf<Lease | undefined>());
});

test("Fastify: options see the request of Fastify, over HTTP/1.1 and HTTP/2", () => {
  const options = { limits, entityId: (request: FastifyRequest) => request.id };
  void Fastify().register(onFastify, options);
  void Fastify().register(onFastify, {
    limits,
    entityId: (request) => request.hostname,
    refundWhen: ({ status }) => status >= 500,
  });
  void Fastify({ http2: true }).register(onFastify, { limits, skip: (r) => r.method === "HEAD" });
  Fastify().get("/", (request) => expectTypeOf(request.lease).toEqualTypeOf<Lease | undefined>());
});

test("Hono: options see its context, and handlers the lease as a variable", () => {
  const app = new Hono<{ Variables: LeaseVariables }>();
  app.use(onHono({ limits, entityId: (c) => c.req.header("x-key") }));
  app.get("/", (c) => {
    expectTypeOf(c.var.lease).toEqualTypeOf<Lease | undefined>();
    expectTypeOf(c.get("lease")).toEqualTypeOf<Lease | undefined>();
    return c.text("ok");
  });
});
