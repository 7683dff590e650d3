/** How requests end: clients that hang up, streams, waiting, and options that are wrong. */

import { once } from "node:events";
import { connect } from "node:net";
import type { Outcome } from "@zae-limiter/limiter/http/options.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS, type TestOptions } from "./served.ts";
import { gate, hangUp, SLOW, Stage, statusOf, waitingRoom } from "./suite.ts";

const LIMITS = [`rpm:1000${SLOW}`, `tpm:100000${SLOW}`];
const TARGET = { entityId: "127.0.0.1", resource: "http", limits: LIMITS };

/** Sends a request over a socket of its own, which the test may close at any time. */
async function rawRequest(url: string, path = "/"): Promise<ReturnType<typeof connect>> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  return socket;
}

describe.each(ADAPTERS)("ends of rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);

  test("a client that hangs up in the middle of a stream pays for what was settled", async () => {
    const limiter = await stage.limiter();
    const client = gate();
    const { url } = await stage.serve({ limiter, limits: LIMITS }, ({ lease }) => ({
      body: (async function* () {
        yield "data: 1\n\n";
        lease?.settle({ tpm: 700 });
        client.open();
        for (let chunk = 0; chunk < 1e6; chunk += 1) {
          yield "data: more\n\n";
          await new Promise((resolve) => setImmediate(resolve));
        }
      })(),
    }));
    const socket = await rawRequest(url);
    await once(socket, "data");
    await client.opened;
    socket.destroy();
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 999, tpm: 99_300 });
  });

  test("refundWhen may refund a client that hangs up", async () => {
    const limiter = await stage.limiter();
    const seen: unknown[] = [];
    const { url } = await stage.serve(
      {
        limiter,
        limits: LIMITS,
        refundWhen: (outcome) => {
          seen.push(outcome);
          return outcome.aborted;
        },
      },
      () => ({
        body: (async function* () {
          for (let chunk = 0; chunk < 1e6; chunk += 1) {
            yield "data: more\n\n";
            await new Promise((resolve) => setImmediate(resolve));
          }
        })(),
      }),
    );
    const socket = await rawRequest(url);
    await once(socket, "data");
    socket.destroy();
    await expect.poll(() => seen).toEqual([{ status: 200, aborted: true }]);
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 1000, tpm: 100_000 });
  });

  test("a client that hangs up before the first byte pays what the handler says later", async () => {
    const limiter = await stage.limiter();
    const [arrived, leave] = [gate(), gate()];
    const { url } = await stage.serve({ limiter, limits: LIMITS }, async ({ lease }) => {
      arrived.open();
      await leave.opened;
      lease?.settle({ tpm: 42 });
      return { body: "late" };
    });
    const socket = await rawRequest(url);
    await arrived.opened;
    await hangUp(socket);
    leave.open();
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 999, tpm: 99_958 });
  });

  itUnless(adapter.name === "fetch" && "its handler's body has been read to the end by then")(
    "a client that hangs up before a large body has reached it has hung up",
    async () => {
      const outcomes: unknown[] = [];
      const refundWhen = (outcome: Outcome) => {
        outcomes.push(outcome);
        return outcome.aborted;
      };
      const limiter = await stage.limiter();
      const arrived = gate();
      const { url } = await stage.serve({ limiter, limits: LIMITS, refundWhen }, () => {
        arrived.open();
        return { body: "x".repeat(50_000_000) };
      });
      const socket = await rawRequest(url);
      await arrived.opened;
      await once(socket, "data");
      socket.destroy();
      await expect.poll(() => outcomes).toEqual([{ status: 200, aborted: true }]);
      await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 1000, tpm: 100_000 });
    },
  );

  itUnless(["Hono", "fetch"].includes(adapter.name) && "web-standard handlers are called anyway")(
    "a client that is gone when the decision comes reaches no handler and consumes nothing",
    async () => {
      const limiter = await stage.limiter();
      const [arrived, leave] = [gate(), gate()];
      const events: string[] = [];
      let handled = 0;
      const options: TestOptions = {
        limiter,
        limits: LIMITS,
        entityId: async () => {
          arrived.open();
          await leave.opened;
          return "127.0.0.1";
        },
        events: ({ type }) => events.push(type),
      };
      const { url } = await stage.serve(options, () => {
        handled += 1;
        return { body: "ok" };
      });
      const socket = await rawRequest(url);
      await arrived.opened;
      await hangUp(socket);
      leave.open();
      await expect.poll(() => events).toEqual(["granted"]);
      await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 1000, tpm: 100_000 });
      expect(handled).toBe(0);
    },
  );

  test("a response that was sent is no hang-up, whether the connection stays or not", async () => {
    const outcomes: unknown[] = [];
    const refundWhen = (outcome: Outcome) => {
      outcomes.push(outcome);
      return false;
    };
    const { url } = await stage.serve({ limits: LIMITS, refundWhen }, ({ path }) => ({
      body: path === "/large" ? "x".repeat(5_000_000) : "ok",
    }));
    for (const path of ["/", "/large"]) {
      await statusOf(`${url}${path}`);
      await statusOf(`${url}${path}`, { Connection: "close" });
    }
    const sent = { status: 200, aborted: false };
    await expect.poll(() => outcomes).toEqual([sent, sent, sent, sent]);
  });

  test("a stream that is read to its end is committed", async () => {
    const limiter = await stage.limiter();
    const { url } = await stage.serve({ limiter, limits: LIMITS }, ({ lease }) => ({
      body: (async function* () {
        for (const part of ["a", "b", "c"]) yield part;
        lease?.settle({ tpm: 9 });
      })(),
    }));
    const response = await fetch(url);
    expect(await response.text()).toBe("abc");
    await expect.poll(() => limiter.available(TARGET)).toEqual({ rpm: 999, tpm: 99_991 });
  });

  test("a request waits for tokens, and is served when they come", async () => {
    const { url } = await stage.serve({ limits: ["rps:20/sec:1"], maxWaitSeconds: 5 });
    const statuses = await Promise.all([statusOf(url), statusOf(url), statusOf(url)]);
    expect(statuses).toEqual([200, 200, 200]);
  });

  test("a client that goes away while it waits leaves the queue and consumes nothing", async () => {
    const waited = await waitingRoom(stage);
    const socket = await rawRequest(waited.url);
    await expect.poll(waited.isOccupied).toBe(true);
    socket.destroy();
    await expect.poll(waited.isOccupied).toBe(false);
    expect(waited.handled()).toBe(0);
  });

  test("a request with Expect: 100-continue is answered, granted or refused", async () => {
    const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`] });
    const { request } = await import("node:http");
    const post = () =>
      new Promise<number>((resolve, reject) => {
        const sent = request(url, {
          method: "POST",
          headers: { Expect: "100-continue", "Content-Type": "text/plain" },
        });
        sent.on("response", (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        });
        sent.on("continue", () => sent.end("body"));
        sent.on("error", reject);
        sent.flushHeaders();
      });
    expect([await post(), await post()]).toEqual([200, 429]);
  });

  describe("options", () => {
    test.each<[string, unknown, RegExp]>([
      ["no limits and no limiter", {}, /limits/],
      ["an unknown option", { limits: ["rpm:1"], windowMs: 5 }, /windowMs.*is not an option/],
      ["a limit that is none", { limits: ["rpm"] }, /limit/i],
      ["a name in consume that is no limit", { limits: ["rpm:1"], consume: { x: 1 } }, /"x"/],
      ["a style that does not exist", { limits: ["rpm:1"], headers: "draft-99" }, /draft-7/],
      ["two drafts at once", { limits: ["rpm:1"], headers: ["draft", "draft-6"] }, /one draft/],
      ["headers that are null", { limits: ["rpm:1"], headers: null }, /"draft".*got null/],
      ["headers that are no list", { limits: ["rpm:1"], headers: {} }, /"draft".*got an object/],
      ["no limit at all", { limits: [] }, /at least one/],
      ["an anonymous that is no id", { limits: ["rpm:1"], anonymous: "a b" }, /^Invalid anonymous/],
      ["a subnet that is null", { limits: ["rpm:1"], ipv6Subnet: null }, /^Invalid ipv6Subnet/],
      ["a wait that is null", { limits: ["rpm:1"], maxWaitSeconds: null }, /^Invalid maxWait/],
      ["a mode that is null", { limits: ["rpm:1"], mode: null }, /^Invalid mode/],
      ["an onError that is null", { limits: ["rpm:1"], onError: null }, /^Invalid onError/],
      ["a mode that does not exist", { limits: ["rpm:1"], mode: "dry" }, /observe/],
      ["an onError that does not exist", { limits: ["rpm:1"], onError: "x" }, /rollback/],
      ["a negative wait", { limits: ["rpm:1"], maxWaitSeconds: -1 }, />= 0/],
      ["a subnet that does not exist", { limits: ["rpm:1"], ipv6Subnet: 129 }, /128/],
      ["an entityId that is no function", { limits: ["rpm:1"], entityId: "me" }, /function/],
      ["a limiter that is none", { limiter: {} }, /RateLimiter/],
      ["no object", "rpm:1", /object/],
    ])("%s is refused when the middleware is made", async (_, options, message) => {
      const made = async () => adapter.make(options as TestOptions);
      await expect(made()).rejects.toMatchObject({
        code: expect.stringMatching(/^ZAEL_/),
        message: expect.stringMatching(message),
      });
    });
  });
});
