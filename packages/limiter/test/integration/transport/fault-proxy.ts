/** A network between a store and an engine on which, by lot, everything goes wrong that can. */

import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** Faults of a request. The engine sees the request only where that is said. */
export const FAULTS = [
  /** Passed on, and the answer back: nothing goes wrong. */
  "none",
  /** Cut off before the engine sees anything; after it has done its work. */
  "resetBefore",
  "resetAfter",
  /** Done; the answer ends in the middle, comes too slowly, or arrives damaged. */
  "halfAnswer",
  "slowAnswer",
  "damagedAnswer",
  /** Done; something else answers for it, or nothing. */
  "notJson",
  "emptyBody",
  "emptyObject",
  /** Not done: the server fails, or there is too much to do. */
  "serverError",
  "throttled",
] as const;
/** `deliveredTwice` is kept apart: DynamoDB never does that, only a proxy in between. */
export type Fault = (typeof FAULTS)[number] | "deliveredTwice";

export interface FaultProxy extends AsyncDisposable {
  readonly endpoint: string;
  /** How often each fault came. */
  readonly seen: ReadonlyMap<Fault, number>;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** `next` chooses for each request in turn. */
export async function faultProxy(target: string, next: () => Fault): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  const seen = new Map<Fault, number>();
  const server = createServer((request, response) => {
    const fault = next();
    seen.set(fault, (seen.get(fault) ?? 0) + 1);
    void handle(target, request, response, fault).catch(() => response.destroy());
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function handle(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault,
): Promise<void> {
  const body = await bytesOf(request);
  switch (fault) {
    case "resetBefore":
      response.socket?.resetAndDestroy();
      return;
    case "serverError":
      return fail(response, 500, "InternalServerError");
    case "throttled":
      return fail(response, 400, "ThrottlingException");
    case "deliveredTwice":
      await forward(target, request, body);
      return spoil(response, await forward(target, request, body), fault);
    default:
      return spoil(response, await forward(target, request, body), fault);
  }
}

function fail(response: ServerResponse, status: number, name: string): void {
  response.writeHead(status, { "content-type": "application/x-amz-json-1.0" });
  response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}` }));
}

/** Hands the answer back, or what is left of it. */
function spoil(response: ServerResponse, answer: Answer, fault: Fault): void {
  const { status, headers, body } = answer;
  const half = body.subarray(0, body.length >> 1);
  switch (fault) {
    case "resetAfter":
      response.socket?.resetAndDestroy();
      return;
    case "halfAnswer":
      response.writeHead(status, headers);
      response.write(half, () => response.socket?.destroy());
      return;
    case "slowAnswer": {
      response.writeHead(status, headers);
      response.write(half);
      // It would come in the end, long after anybody waits for it.
      const rest = setTimeout(() => response.end(body.subarray(half.length)), 60_000);
      response.on("close", () => clearTimeout(rest));
      return;
    }
    case "damagedAnswer":
      response.writeHead(status, headers);
      // Still JSON, of the same length, and wrong: only the checksum shows it.
      response.end(body.toString("latin1").replace(/[0-9]"/, '!"'), "latin1");
      return;
    case "notJson":
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<html><body>Please log in</body></html>");
      return;
    case "emptyBody":
      response.writeHead(200, { "content-type": "application/x-amz-json-1.0" });
      response.end();
      return;
    case "emptyObject":
      response.writeHead(200, { "content-type": "application/x-amz-json-1.0" });
      response.end("{}");
      return;
    default:
      response.writeHead(status, headers);
      response.end(body);
  }
}

async function forward(target: string, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const { hostname, port } = new URL(target);
  const { "content-length": _, ...headers } = request.headers;
  const upstream = httpRequest({ hostname, port, method: "POST", path: "/", headers });
  upstream.end(body);
  const [answer] = (await once(upstream, "response")) as [IncomingMessage];
  const { connection: _closing, ...kept } = answer.headers;
  return { status: answer.statusCode ?? 0, headers: kept, body: await bytesOf(answer) };
}

async function bytesOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
