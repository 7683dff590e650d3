/** Servers of single tests, closed after each of them. */

import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { afterEach } from "vitest";

const opened: (() => Promise<unknown>)[] = [];

/** Each file calls it once: files of one worker share this module, but not its hooks. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });
}

/** Calls `close` after the test. */
export function closeLater(close: () => Promise<unknown>): void {
  opened.push(close);
}

export async function listen(listener: RequestListener): Promise<string> {
  return listening(createServer(listener));
}

/** Starts a server and returns its URL. */
export async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  return urlOf(server);
}

/** Serves a web-standard handler. */
export async function listenWeb(app: { fetch: unknown }): Promise<string> {
  return urlOf(serve({ fetch: app.fetch as never, hostname: "127.0.0.1", port: 0 }) as Server);
}

/** The URL of a server that is about to listen; it is closed after the test. */
export async function urlOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, "listening");
  closeLater(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function memoryLimiter(): Promise<RateLimiter> {
  const limiter = await RateLimiter.open("memory:");
  closeLater(() => limiter.close());
  return limiter;
}
