/**
 * A server for one contender: FRAMEWORK express or fastify, LIMITER ours, ours-2, theirs
 * or none. */

import { createServer } from "node:http";

const [framework, limiter] = process.argv.slice(2);

/** Never refuses: what is measured is the way of a request that is granted. */
const MANY = 1_000_000_000;

async function express() {
  const { default: makeApp } = await import("express");
  const app = makeApp();
  if (limiter === "theirs") {
    const { rateLimit } = await import("express-rate-limit");
    app.use(rateLimit({ windowMs: 60_000, limit: MANY, standardHeaders: "draft-8" }));
    app.get("/", (_, response) => response.send("ok"));
  } else if (limiter === "none") {
    app.get("/", (_, response) => response.send("ok"));
  } else {
    const { leaseOf, rateLimit } = await import("../dist/limiter/http/express.js");
    app.use(rateLimit(OURS[limiter]));
    app.get("/", (request, response) => {
      if (limiter === "ours-2") leaseOf(request).settle({ tpm: 2 });
      response.send("ok");
    });
  }
  const server = createServer(app);
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
}

async function fastify() {
  const { default: makeApp } = await import("fastify");
  const app = makeApp();
  if (limiter === "theirs") {
    const { default: rateLimit } = await import("@fastify/rate-limit");
    await app.register(rateLimit, { max: MANY, timeWindow: 60_000 });
    app.get("/", async () => "ok");
  } else if (limiter === "none") {
    app.get("/", async () => "ok");
  } else {
    const { default: rateLimit, leaseOf } = await import("../dist/limiter/http/fastify.js");
    await app.register(rateLimit, OURS[limiter]);
    app.get("/", async (request) => {
      if (limiter === "ours-2") leaseOf(request).settle({ tpm: 2 });
      return "ok";
    });
  }
  await app.listen({ host: "127.0.0.1", port: 0 });
  process.send(app.server.address().port);
}

const OURS = {
  ours: { limits: [`rpm:${MANY}`] },
  "ours-2": { limits: [`rpm:${MANY}`, `tpm:${MANY}`] },
};

/** Collects the whole heap, at a moment without a request and without a tick. */
process.on("message", () => {
  setImmediate(() => {
    globalThis.gc();
    process.send("collected");
  });
});

await { express, fastify }[framework]();
