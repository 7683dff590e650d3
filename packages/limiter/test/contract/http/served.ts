/** One small application on every HTTP adapter, behind a real server. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { serve as serveFetch } from "@hono/node-server";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import * as onExpress from "@zae-limiter/limiter/http/express.ts";
import * as onFastify from "@zae-limiter/limiter/http/fastify.ts";
import * as onFetch from "@zae-limiter/limiter/http/fetch.ts";
import * as onHono from "@zae-limiter/limiter/http/hono.ts";
import type { HttpOptions } from "@zae-limiter/limiter/http/options.ts";
import express5 from "express";
import express4 from "express-4";
import Fastify from "fastify";
import { Hono } from "hono";

/** The argument of every handler of these tests, whatever the framework. */
interface Visit {
  readonly lease: Lease | undefined;
  readonly path: string;
}

/** The answer of a handler. A generator is a stream of chunks. */
interface Reply {
  readonly status?: number;
  readonly body?: string | AsyncIterable<string>;
}

export type Handler = (visit: Visit) => Reply | Promise<Reply>;

/** The parts of a request that the user's functions see, in the words of no framework. */
export interface Seen {
  header(name: string): string | undefined;
  readonly path: string;
}

/** Options whose functions take `Seen`; each adapter translates its own request. */
export type TestOptions = HttpOptions<Seen>;

export interface Served {
  readonly url: string;
  close(): Promise<void>;
}

export interface Adapter {
  readonly name: string;
  /** Several options are several middlewares, in that order. */
  serve(options: TestOptions | readonly TestOptions[], handler: Handler): Promise<Served>;
  /** Makes a middleware without a server. */
  make(options: unknown): unknown;
}

export const ADAPTERS: readonly Adapter[] = [
  {
    name: "Express 5",
    make: (options) => onExpress.rateLimit(options as never),
    serve: (options, handler) => serveExpress(express5, options, handler),
  },
  {
    name: "Express 4",
    make: (options) => onExpress.rateLimit(options as never),
    serve: (options, handler) => serveExpress(express4, options, handler),
  },
  {
    name: "node:http",
    make: (options) => onExpress.rateLimit(options as never),
    serve: serveNode,
  },
  {
    name: "Fastify",
    make: (options) => Fastify().register(onFastify.rateLimit, options as never),
    serve: serveFastify,
  },
  {
    name: "Hono",
    make: (options) => onHono.rateLimit(options as never),
    serve: serveHono,
  },
  {
    name: "fetch",
    make: (options) => onFetch.rateLimit(() => new Response(), options as never),
    serve: serveWeb,
  },
];

/** Options for a framework whose request `see` translates. */
function translated<R>(options: TestOptions, see: (request: R) => Seen): HttpOptions<R> {
  const { entityId, resource, consume, skip, refused, ...rest } = options;
  return {
    ...rest,
    ...(entityId && { entityId: (request: R) => entityId(see(request)) }),
    ...(resource !== undefined && {
      resource: typeof resource === "function" ? (r: R) => resource(see(r)) : resource,
    }),
    ...(consume !== undefined && {
      consume: typeof consume === "function" ? (r: R) => consume(see(r)) : consume,
    }),
    ...(skip && { skip: (request: R) => skip(see(request)) }),
    ...(refused && { refused: (refusal, request: R) => refused(refusal, see(request)) }),
  };
}

function listOf(options: TestOptions | readonly TestOptions[]): readonly TestOptions[] {
  return Array.isArray(options) ? (options as readonly TestOptions[]) : [options as TestOptions];
}

function seeNode(request: IncomingMessage): Seen {
  return {
    header: (name) => request.headers[name] as string | undefined,
    path: (request as { originalUrl?: string }).originalUrl ?? request.url ?? "/",
  };
}

function seeWeb(request: Request): Seen {
  return {
    header: (name) => request.headers.get(name) ?? undefined,
    path: new URL(request.url).pathname,
  };
}

async function writeNode(response: ServerResponse, reply: Reply): Promise<void> {
  response.statusCode = reply.status ?? 200;
  const { body = "ok" } = reply;
  if (typeof body === "string") {
    response.end(body);
    return;
  }
  response.setHeader("Content-Type", "text/event-stream");
  response.flushHeaders();
  for await (const chunk of body) {
    if (response.destroyed) break;
    response.write(chunk);
  }
  response.end();
}

function webReply({ status = 200, body = "ok" }: Reply): Response {
  if (typeof body === "string") return new Response(body, { status });
  const iterator = body[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return new Response(stream, { status, headers: { "Content-Type": "text/event-stream" } });
}

async function listening(server: Server): Promise<Served> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return served(server);
}

/** A server that listens, as tests use it. */
function served(server: Server): Served {
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function serveExpress(
  express: typeof express5,
  options: TestOptions | readonly TestOptions[],
  handler: Handler,
): Promise<Served> {
  const app = express();
  app.set("trust proxy", "loopback");
  // Express prints the errors of handlers, except in the environment `test`.
  app.set("env", "test");
  for (const each of listOf(options)) {
    app.use(onExpress.rateLimit(translated(each, seeNode)));
  }
  app.use((request, response, next) => {
    Promise.resolve(handler({ lease: onExpress.leaseOf(request), path: request.path })).then(
      (reply) => writeNode(response, reply),
      next,
    );
  });
  return listening(createServer(app));
}

function serveNode(
  options: TestOptions | readonly TestOptions[],
  handler: Handler,
): Promise<Served> {
  const limits = listOf(options).map((each) => onExpress.rateLimit(translated(each, seeNode)));
  const visit = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? "/";
    await writeNode(response, await handler({ lease: onExpress.leaseOf(request), path }));
  };
  return listening(
    createServer((request, response) => {
      const fail = () => {
        if (!response.headersSent) response.statusCode = 500;
        response.end();
      };
      const run = (at: number) => {
        const limit = limits[at];
        if (limit === undefined) visit(request, response).catch(fail);
        else limit(request, response, (error) => (error ? fail() : run(at + 1)));
      };
      run(0);
    }),
  );
}

async function serveFastify(
  options: TestOptions | readonly TestOptions[],
  handler: Handler,
): Promise<Served> {
  const app = Fastify({ trustProxy: "127.0.0.1", forceCloseConnections: true });
  for (const each of listOf(options)) {
    const see = (request: onFastify.FastifyRequestLike): Seen =>
      seeNode((request as unknown as { raw: IncomingMessage }).raw);
    await app.register(onFastify.rateLimit, translated(each, see));
  }
  app.all("/*", async (request, reply) => {
    const answer = await handler({ lease: onFastify.leaseOf(request), path: request.url });
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    await writeNode(reply.raw, answer);
  });
  return { url: await app.listen({ host: "127.0.0.1", port: 0 }), close: () => app.close() };
}

function serveHono(
  options: TestOptions | readonly TestOptions[],
  handler: Handler,
): Promise<Served> {
  const app = new Hono();
  for (const each of listOf(options)) {
    app.use(onHono.rateLimit(translated(each, (c: onHono.HonoContext) => seeWeb(c.req.raw))));
  }
  app.all("/*", async (c) =>
    webReply(await handler({ lease: onHono.leaseOf(c), path: c.req.path })),
  );
  app.onError(() => new Response("failed", { status: 500 }));
  return servedWeb(app.fetch as never);
}

function serveWeb(
  options: TestOptions | readonly TestOptions[],
  handler: Handler,
): Promise<Served> {
  const inner: onFetch.FetchHandler<[unknown]> = async (request) =>
    webReply(
      await handler({ lease: onFetch.leaseOf(request), path: new URL(request.url).pathname }),
    );
  const wrapped = listOf(options).reduceRight<onFetch.FetchHandler<[unknown]>>(
    (next, each) => onFetch.rateLimit(next, translated(each, seeWeb)),
    inner,
  );
  return servedWeb(async (request, env) => {
    const hostname = env.incoming.socket.remoteAddress;
    try {
      return await wrapped(request, { remoteAddr: { hostname } });
    } catch {
      return new Response("failed", { status: 500 });
    }
  });
}

async function servedWeb(
  fetch: (request: Request, env: { incoming: IncomingMessage }) => Response | Promise<Response>,
): Promise<Served> {
  const server = await new Promise<Server>((resolve) => {
    const started = serveFetch({ fetch: fetch as never, hostname: "127.0.0.1", port: 0 }, () =>
      resolve(started as Server),
    );
  });
  return served(server);
}
