/** Requests that a client sends before the answers to its earlier ones are there. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS } from "./served.ts";
import { gate, hangUp, SLOW, Stage, waitingRoom } from "./suite.ts";

const LIMITS = [`rpm:1000${SLOW}`, `tpm:100000${SLOW}`];
const TARGET = { entityId: "127.0.0.1", resource: "http", limits: LIMITS };
const PATHS = ["/10", "/20", "/30"];

/** Sends all requests at once. */
async function pipelined(url: string, end = ""): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  const requests = PATHS.map((path, at) => {
    const more = at === PATHS.length - 1 ? end : "";
    return `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${more}\r\n`;
  });
  socket.write(requests.join(""));
  return socket;
}

describe.each(ADAPTERS)("pipelined requests with rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);

  test("each request has a lease of its own", async () => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve({ limiter, limits: LIMITS }, ({ lease, path }) => {
      lease?.settle({ tpm: Number(path.slice(1)) });
      return { body: "ok" };
    });
    const socket = await pipelined(url, "Connection: close\r\n");
    socket.resume();
    await once(socket, "close");
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 997, tpm: 99_940 });
  });

  test("a client that hangs up pays what the handlers of all requests say later", async () => {
    const limiter = await stage.limiter();
    const leave = gate();
    const leases: (Lease | undefined)[] = [];
    const { url } = await stage.serve({ limiter, limits: LIMITS }, async ({ lease, path }) => {
      leases.push(lease);
      await leave.opened;
      lease?.settle({ tpm: Number(path.slice(1)) });
      return { body: "ok" };
    });
    const socket = await pipelined(url);
    await expect.poll(() => leases.length).toBe(PATHS.length);
    await hangUp(socket);
    leave.open();
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 997, tpm: 99_940 });
    for (const lease of leases) expect(() => lease?.adjust({ tpm: 1 })).toThrow(LeaseExpiredError);
  });

  itUnless(adapter.name === "fetch" && "the server of these tests does not tell a queued request")(
    "a client that goes away while all of them wait leaves the queue",
    async () => {
      const waited = await waitingRoom(stage);
      const socket = await pipelined(waited.url);
      await expect.poll(waited.isOccupied).toBe(true);
      await hangUp(socket);
      await expect.poll(waited.isOccupied).toBe(false);
      expect(waited.handled()).toBe(0);
    },
  );
});
