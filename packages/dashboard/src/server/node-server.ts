/** A fetch handler on Node's own HTTP server. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";

export type FetchHandler = (request: Request) => Promise<Response>;

export interface RunningServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on an address and returns its port. `handlerAt` is called after that. */
export async function listen(
  place: { host: string; port: number },
  handlerAt: (port: number) => FetchHandler,
): Promise<RunningServer> {
  let handler: FetchHandler | undefined;
  const server = createServer((incoming, outgoing) => {
    void answer(incoming, outgoing, handler).catch(() => outgoing.destroy());
  });
  server.listen(place.port, place.host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  handler = handlerAt(port);
  return {
    port,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handler: FetchHandler | undefined,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const request = requestOf(incoming, gone.signal);
  const response =
    handler === undefined || request === undefined
      ? new Response("Bad request", { status: 400 })
      : await handler(request);
  outgoing.writeHead(response.status, [...response.headers].flat());
  if (response.body === null || incoming.method === "HEAD") outgoing.end();
  else {
    // The page may be closed at any time; the stream then ends, and there is nothing else to do.
    await pipeline(Readable.fromWeb(response.body as ReadableStream), outgoing).catch(() => {});
  }
}

/** Returns the request; `undefined` when it is none that a browser sends to a server. */
function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = "GET", url = "/", headers } = incoming;
  const address = `http://${headers.host ?? ""}${url}`;
  if (!url.startsWith("/") || !URL.canParse(address)) return undefined;
  const given = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, each]),
  );
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(address, {
    method,
    headers: given,
    signal,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: "half" } : {}),
  } as RequestInit);
}
