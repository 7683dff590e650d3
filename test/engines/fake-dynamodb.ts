/** Servers on the loopback that behave as DynamoDB does on a bad day. */

import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** One request as the server saw it. */
export interface FakeRequest {
  /** The name of the operation, such as `UpdateItem`. */
  readonly operation: string;
  readonly body: FakeBody;
  readonly headers: IncomingHttpHeaders;
  /** The body as it came. */
  readonly text: string;
}

/** The fields of requests that tests check. */
interface FakeBody {
  readonly ClientRequestToken?: string;
  readonly ReturnConsumedCapacity?: string;
  readonly RequestItems?: { readonly t: { readonly length: number; readonly Keys: object[] } };
  readonly ExclusiveStartShardId?: string;
  readonly ShardId?: string;
  readonly ShardIteratorType?: string;
  readonly SequenceNumber?: string;
  readonly ShardIterator?: string;
}

/**
 * An answer: a body, an error by its name, something that depends on the request, or something
 * to do with the bare connection.
 */
export type FakeAnswer =
  | { readonly to: (request: FakeRequest) => FakeAnswer }
  | { readonly body: object }
  | { readonly error: string; readonly status?: number; readonly details?: object }
  | ((response: ServerResponse) => void);

export interface FakeDynamo extends AsyncDisposable {
  readonly endpoint: string;
  readonly requests: readonly FakeRequest[];
  /** How many connections were made, and how many are open. */
  readonly connections: number;
  readonly open: number;
}

/** Answers in the given order; the last answer is given to all that follow. */
export async function fakeDynamo(...answers: readonly FakeAnswer[]): Promise<FakeDynamo> {
  const requests: FakeRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    void readBody(request).then((text) => {
      const body = JSON.parse(text) as FakeBody;
      const seen = { operation: operationOf(request), body, headers: request.headers, text };
      requests.push(seen);
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      if (answer !== undefined) reply(seen, response, answer);
    });
  });
  let connections = 0;
  server.on("connection", (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get connections() {
      return connections;
    },
    get open() {
      return sockets.size;
    },
    [Symbol.asyncDispose]: () => stop(server, sockets),
  };
}

/** Takes the request and says nothing. */
export const hang: FakeAnswer = () => undefined;

/** Closes the connection instead of answering. */
export const reset: FakeAnswer = (response) => response.socket?.destroy();

/** Begins an answer that never ends. */
export const drip: FakeAnswer = (response) => {
  response.writeHead(200, { "content-type": "application/x-amz-json-1.0" });
  const timer = setInterval(() => response.write(" "), 10);
  response.on("close", () => clearInterval(timer));
};

/** An address without a server. */
export async function closedEndpoint(): Promise<string> {
  const server = await fakeDynamo();
  await server[Symbol.asyncDispose]();
  return server.endpoint;
}

function reply(request: FakeRequest, response: ServerResponse, answer: FakeAnswer): void {
  if (typeof answer === "function") {
    answer(response);
  } else if ("to" in answer) {
    reply(request, response, answer.to(request));
  } else if ("body" in answer) {
    send(response, 200, answer.body);
  } else {
    const { error, status = 400, details = {} } = answer;
    const __type = `com.amazonaws.dynamodb.v20120810#${error}`;
    send(response, status, { __type, message: `a test of ${error}`, ...details });
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/x-amz-json-1.0" });
  response.end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function operationOf(request: IncomingMessage): string {
  return String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
}

async function stop(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = once(server, "close");
  server.close();
  for (const socket of sockets) socket.destroy();
  await closed;
}
