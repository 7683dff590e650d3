/** A double of a provider: an HTTP server whose answers a test writes, over real sockets. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sse } from "./shapes.ts";

/** A request as the provider sees it. */
export interface Arrived {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

export type Reply = (request: Arrived, response: ServerResponse) => void | Promise<void>;

export class Upstream {
  readonly url: string;
  readonly arrived: Arrived[] = [];
  /** Responses whose client hung up before they were complete. */
  hungUp = 0;
  /** Listed by `GET /v1/models`, which then neither arrives nor takes a reply. */
  models: readonly string[] | undefined;
  readonly #server: Server;
  #replies: Reply[] = [];
  #waiting: (() => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<Upstream> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Upstream(server);
  }

  /** Sets the answers to the next requests; the last one stays. */
  replyWith(...replies: Reply[]): void {
    this.#replies = replies;
    this.arrived.length = 0;
    this.hungUp = 0;
  }

  /** Resolves when `count` clients have hung up. */
  async untilHungUp(count: number): Promise<void> {
    while (this.hungUp < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.models !== undefined && isListing(request)) {
      const data = this.models.map((id) => ({ id, object: "model", created: 0 }));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data, has_more: false }));
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
    const arrived = { path: request.url ?? "", headers: request.headers, body };
    this.arrived.push(arrived);
    response.once("close", () => {
      if (response.writableFinished) return;
      this.hungUp += 1;
      for (const wake of this.#waiting.splice(0)) wake();
    });
    const reply = this.#replies.length > 1 ? this.#replies.shift() : this.#replies[0];
    await reply?.(arrived, response);
  }
}

function isListing({ method, url = "" }: IncomingMessage): boolean {
  return method === "GET" && /\/models(?:\?|$)/.test(url);
}

/** Answers with JSON. */
export function json(body: object, status = 200, headers: Record<string, string> = {}): Reply {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

/** Streams events in pieces of a number of bytes, or in one piece per event. */
export function stream(
  events: readonly object[],
  options: { done?: boolean; named?: boolean; pieceBytes?: number } = {},
): Reply {
  return async (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    const bytes = Buffer.from(sse(events, options));
    const size = options.pieceBytes ?? 200;
    for (let at = 0; at < bytes.length; at += size) {
      if (!response.write(bytes.subarray(at, at + size))) await once(response, "drain");
    }
    response.end();
  };
}

/** Streams events and then stays silent, without an end. */
export function stall(events: readonly object[], options: { named?: boolean } = {}): Reply {
  return (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(sse(events, options));
  };
}

/** Streams events and then breaks the connection. */
export function breakOff(events: readonly object[], options: { named?: boolean } = {}): Reply {
  return (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(sse(events, options), () => response.destroy());
  };
}
