/** Connections to an upstream that are used again. */

import { once } from "node:events";
import { type Agent, type ClientRequest, createServer, request, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { agentFor, wasClosed } from "@zae-limiter/gateway/idle-connections.ts";
import { afterEach, beforeEach, expect, test } from "vitest";

let server: Server;
let agent: Agent;
/** The connections that the server has seen, in their order. */
let connections: Socket[];

beforeEach(async () => {
  connections = [];
  agent = agentFor("http:");
  server = createServer((_, response) => void response.end("ok"));
  server.on("connection", (socket: Socket) => void connections.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  agent.destroy();
  server.close();
});

function send(bodyBytes: number): ClientRequest {
  const { port } = server.address() as AddressInfo;
  const sent = request({ host: "127.0.0.1", port, agent, method: "POST" });
  sent.end(Buffer.alloc(bodyBytes));
  return sent;
}

/** Makes a request, and returns when its connection may be used again. */
async function ask(): Promise<ClientRequest> {
  const asked = send(0);
  const [answer] = await once(asked, "response");
  answer.resume();
  await once(asked, "close");
  return asked;
}

test("requests one after the other use one connection", async () => {
  const first = await ask();
  const second = await ask();
  expect([first.reusedSocket, second.reusedSocket]).toEqual([false, true]);
  expect(connections).toHaveLength(1);
});

test("requests at the same time use connections of their own, and later ones all of them", async () => {
  await Promise.all([ask(), ask(), ask()]);
  expect(connections).toHaveLength(3);
  await Promise.all([ask(), ask(), ask()]);
  expect(connections).toHaveLength(3);
});

test("an idle connection that the upstream resets is not used again, and ends no process", async () => {
  const { socket } = await ask();
  connections[0]?.resetAndDestroy();
  // `once` would listen for the error, and this test must not.
  await new Promise((resolve) => socket?.on("close", resolve));
  const { reusedSocket } = await ask();
  expect(reusedSocket).toBe(false);
  expect(connections).toHaveLength(2);
});

test("an agent that is destroyed closes its idle connections", async () => {
  const { socket } = await ask();
  const closed = once(socket as Socket, "close");
  agent.destroy();
  await closed;
  expect(connections).toHaveLength(1);
});

test.each([10, 5_000_000])(
  "a request of %d bytes on a connection that the upstream has just closed is known as such",
  async (bytes) => {
    await ask();
    connections[0]?.destroy();
    const sent = send(bytes);
    const [error] = await once(sent, "error");
    expect(wasClosed(sent, error)).toBe(true);
  },
);

test("a request on a new connection that the upstream closes is not taken for one", async () => {
  server.on("connection", (socket: Socket) => void socket.destroy());
  const sent = send(10);
  const [error] = await once(sent, "error");
  expect(["ECONNRESET", "EPIPE"]).toContain(error.code);
  expect(wasClosed(sent, error)).toBe(false);
});
