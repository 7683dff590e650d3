/** Requests to an upstream over real connections: when they are sent again, and when not. */

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Cancellation } from "@zae-limiter/gateway/cancellation.ts";
import {
  UpstreamConnection,
  UpstreamFailure,
  type UpstreamRequest,
} from "@zae-limiter/gateway/upstream-connection.ts";
import { checkUpstream } from "@zae-limiter/gateway/upstreams.ts";
import { afterEach, beforeEach, expect, test } from "vitest";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

let server: Server;
let sockets: Socket[];
/** Requests by the connection they came on, counted from 0. */
let arrivals: number[];
let reply: (socket: Socket, arrival: number) => void;
let connection: UpstreamConnection;
let nowMs: number;

beforeEach(async () => {
  sockets = [];
  arrivals = [];
  nowMs = 0;
  reply = (socket) => void socket.write(OK);
  server = createServer((socket) => {
    const at = sockets.push(socket) - 1;
    socket.on("error", () => {});
    socket.on("data", (data) => {
      if (!data.toString("latin1").includes("HTTP/1.1\r\n")) return;
      reply(socket, arrivals.push(at));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  connection = connect();
});
afterEach(() => {
  connection.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

function connect(timeoutMs = 5000): UpstreamConnection {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const spec = checkUpstream({ url, key: "none" }, {}, false);
  return new UpstreamConnection(spec, timeoutMs, () => nowMs);
}

function send(more: Partial<UpstreamRequest> = {}) {
  const stop = new Cancellation();
  const body = Buffer.from("{}");
  const headers = ["content-length", "2"];
  return connection.send({ method: "POST", path: "/x", headers, body, stop, ...more });
}

/** Makes a request and reads its answer, so that its connection can be used again. */
async function ask(): Promise<void> {
  const answer = await send();
  answer.resume();
  await once(answer, "close");
}

function failureOf(sent: Promise<unknown>): Promise<UpstreamFailure> {
  return sent.then(
    () => Promise.reject(new Error("expected a failure")),
    (error: unknown) => {
      expect(error).toBeInstanceOf(UpstreamFailure);
      return error as UpstreamFailure;
    },
  );
}

test("requests one after the other use one connection", async () => {
  await ask();
  await ask();
  expect(arrivals).toEqual([0, 0]);
});

test("a request on a reused connection that ends at once is sent once more, on a fresh one", async () => {
  await Promise.all([ask(), ask(), ask()]);
  arrivals = [];
  reply = (socket, arrival) => {
    if (arrival === 1) socket.resetAndDestroy();
    else socket.write(OK);
  };
  await ask();
  expect(arrivals).toHaveLength(2);
  expect(arrivals[1]).toBe(3);
});

test("a request is sent twice at most, however many connections are idle", async () => {
  await Promise.all(Array.from({ length: 10 }, () => ask()));
  arrivals = [];
  reply = (socket) => socket.resetAndDestroy();
  const failure = await failureOf(send());
  expect(arrivals).toHaveLength(2);
  expect(failure.isUnsent).toBe(false);
});

test("a request whose reused connection ends after a second is not sent again", async () => {
  await ask();
  reply = (socket) => {
    nowMs += 1000;
    socket.resetAndDestroy();
  };
  const failure = await failureOf(send());
  expect(arrivals).toHaveLength(2);
  expect(failure.isUnsent).toBe(false);
});

test("a request whose answer has begun is not sent again", async () => {
  await ask();
  reply = (socket) => void socket.write("HTTP/1.1 2", () => socket.resetAndDestroy());
  await failureOf(send());
  expect(arrivals).toHaveLength(2);
});

test("a request whose new connection ends is not sent again", async () => {
  reply = (socket) => socket.resetAndDestroy();
  const failure = await failureOf(send());
  expect(arrivals).toHaveLength(1);
  expect(failure.isUnsent).toBe(false);
});

test("a request that no connection could be made for was never sent", async () => {
  server.close();
  await once(server, "close");
  const failure = await failureOf(send());
  expect(failure.isUnsent).toBe(true);
  expect(failure.message).toBe("The upstream could not be reached.");
});

test("a silent upstream is given up after the time-out, and not asked again", async () => {
  connection.close();
  connection = connect(1000);
  // On a new connection, a slow machine could spend the time before the request is sent.
  await ask();
  reply = () => {};
  const failure = await failureOf(send());
  expect(failure.message).toBe("The upstream did not answer in time.");
  expect(arrivals).toHaveLength(2);
});

test("a switch of protocols that was not asked for ends at once", async () => {
  reply = (socket) =>
    void socket.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
  const failure = await failureOf(send());
  expect(failure.message).toBe("The upstream switched protocols.");
  await once(sockets[0] as Socket, "close");
});

test("a call that is stopped ends its request, and is no reason to send it again", async () => {
  await ask();
  const stop = new Cancellation();
  reply = () => stop.cancel();
  await failureOf(send({ stop }));
  expect(arrivals).toHaveLength(2);
});

test("at most 64 idle connections stay open", async () => {
  await Promise.all(Array.from({ length: 80 }, () => ask()));
  await expect.poll(() => sockets.filter((socket) => !socket.destroyed).length).toBe(64);
});
