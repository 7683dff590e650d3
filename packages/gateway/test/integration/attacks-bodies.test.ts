/** Requests that would hold the gateway: every one of them ends early, and cheaply. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import { AttackedGateway, bodyFor, CHAT } from "../attacked-gateway.ts";

let attacked: AttackedGateway;
afterEach(async () => {
  vi.restoreAllMocks();
  await attacked.stop();
});

/** How many times longer than an ordinary call a hostile request may take. */
const SLOWER_MAX = 60;
const ROUNDS = 5;

/** Returns how many times longer than an ordinary call something takes, in the best of rounds. */
async function slowness(work: () => Promise<unknown>): Promise<number> {
  const plan = attacked.plan();
  const ordinary = () => attacked.call(CHAT, plan);
  await ordinary();
  let shortest = Number.POSITIVE_INFINITY;
  let control = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    control = Math.min(control, await timeOf(ordinary));
    shortest = Math.min(shortest, await timeOf(work));
  }
  return shortest / control;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Returns how many requests the store got meanwhile. */
async function storeCalls(work: () => Promise<void>): Promise<number> {
  let calls = 0;
  const count = () => {
    calls += 1;
  };
  subscribe("zae-limiter:call", count);
  await work();
  unsubscribe("zae-limiter:call", count);
  return calls;
}

describe("without a key", () => {
  test.each(["%ff", "%20", "%C3%A9", ";", "%2e%2e/", "%25"])(
    "a path of 15 KB made of %j holds nothing up",
    async (part) => {
      attacked = await AttackedGateway.start();
      const path = `/${part.repeat(Math.floor(15_000 / part.length))}b`;
      const slower = await slowness(async () => {
        const { status } = await attacked.send("GET", path, "", { key: "" });
        expect(Math.floor(status / 100)).toBe(4);
      });
      expect(slower).toBeLessThan(SLOWER_MAX);
    },
  );

  test("made-up keys and health checks hardly reach the store", async () => {
    const repository = await Repository.over(counted(new MemoryItemStore()), {
      clock: () => 1_700_000_000_000,
    });
    attacked = await AttackedGateway.start({}, undefined, new RateLimiter(repository));
    const lookups = await storeCalls(async () => {
      for (let at = 0; at < 500; at += 1) {
        const key = `zael-${String(at).padStart(43, "x")}`;
        const { status } = await attacked.send("POST", CHAT, "{}", { key });
        expect([401, 429]).toContain(status);
      }
    });
    expect(lookups).toBeLessThan(200);
    // Keys that are valid work from the same address, those that were used and new ones.
    const key = await attacked.keyOf("team-b");
    for (const each of [attacked.key, key]) {
      expect((await attacked.call(CHAT, attacked.plan(), {}, each)).status).toBe(200);
    }
    const probes = await storeCalls(async () => {
      const from = performance.now();
      for (let at = 0; at < 200; at += 1) await attacked.send("GET", "/healthz");
      // One read for each second that they took, and one for the second that had begun.
      expect(performance.now() - from).toBeLessThan(20_000);
    });
    expect(probes).toBeLessThan(40);
  });

  test("a body is not read", async () => {
    attacked = await AttackedGateway.start();
    const socket = await attacked.connect();
    socket.write(`POST ${CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });
});

describe("with a key", () => {
  test.each<[string, () => string]>([
    ["two million keys", () => `{${'"a":0,'.repeat(2_000_000)}"b":0}`],
    ["600,000 keys in 4 MB", () => `{${'"a":0,'.repeat(600_000)}"b":0}`],
    ["a million nested lists", () => `{"model":"gpt-4o","messages":${"[".repeat(1_000_000)}`],
    ["a million nested objects", () => `{"a":`.repeat(500_000)],
    ["half a million nested lists that end", () => `{"a":${"[".repeat(5e5)}${"]".repeat(5e5)}}`],
  ])("a body of %s is refused without being parsed", async (_, bodyOf) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const parsed = vi.spyOn(JSON, "parse");
    attacked = await AttackedGateway.start();
    const body = Buffer.from(bodyOf());
    parsed.mockClear();
    const { status } = await attacked.send("POST", CHAT, body).catch(() => ({ status: 413 }));
    expect([400, 413]).toContain(status);
    expect(parsed.mock.calls.filter(([text]) => text.length > 1_000_000)).toHaveLength(0);
    expect(warned).not.toHaveBeenCalled();
    expect(attacked.upstream.arrived.filter(({ method }) => method === "POST")).toHaveLength(0);
  });

  test("bodies that never end are bounded by key, and other keys get their answers", async () => {
    attacked = await AttackedGateway.start();
    const other = await attacked.keyOf("team-b");
    const statuses: string[] = [];
    const head =
      `POST ${CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacked.key}\r\n` +
      "Content-Length: 3000000\r\n\r\n{";
    const sockets = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const socket = await attacked.connect();
        socket.on("data", (data) => statuses.push(data.toString().slice(9, 12)));
        socket.write(head);
        return socket;
      }),
    );
    const plan = attacked.plan();
    await vi.waitFor(() => expect(statuses.length).toBeGreaterThan(20), 10_000);
    expect(new Set(statuses)).toEqual(new Set(["429"]));
    expect((await attacked.call(CHAT, plan, {}, other)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await attacked.untilIdle();
    expect((await attacked.call(CHAT, plan)).status).toBe(200);
  });

  test("calls that wait for the provider do not count as bodies that are open", async () => {
    attacked = await AttackedGateway.start();
    const plans = Array.from({ length: 150 }, () => {
      return attacked.plan({ fates: [{ kind: "hold", at: 0 }] });
    });
    const calls = plans.map((plan) => attacked.call(CHAT, plan));
    await Promise.all(plans.map((plan) => attacked.upstream.reached(plan)));
    for (const plan of plans) attacked.upstream.release(plan);
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test("the body of a key whose entity is switched off is not read", async () => {
    attacked = await AttackedGateway.start();
    await attacked.limiter.repository.limits.disable({ entityId: "team-a" });
    const key = await attacked.keyOf("team-a");
    const socket = await attacked.connect();
    const auth = `Authorization: Bearer ${key}`;
    socket.write(`POST ${CHAT} HTTP/1.1\r\nHost: a\r\n${auth}\r\nContent-Length: 999999\r\n\r\n{`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 4\d\d /);
    socket.destroy();
  });

  test("requests behind another one on a connection end with it", async () => {
    attacked = await AttackedGateway.start();
    const plan = attacked.plan({ fates: [{ kind: "hold", at: 0 }] });
    const body = JSON.stringify({ ...bodyFor(CHAT, plan), stream: true });
    const head =
      `POST ${CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacked.key}\r\n` +
      `Content-Length: ${body.length}\r\n\r\n`;
    const socket = await attacked.connect();
    socket.write((head + body).repeat(8));
    await attacked.upstream.reached(plan);
    socket.destroy();
    await attacked.untilIdle();
    expect(await attacked.metric("zae_limiter_gateway_open_requests")).toBe(1);
  });

  test("metrics do not grow with names of models", async () => {
    attacked = await AttackedGateway.start();
    const plan = attacked.plan();
    const ask = (from: number, count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, at) => {
          return attacked.call(CHAT, plan, bodyFor(CHAT, plan, `made-up-${from + at}`));
        }),
      );
    await ask(0, 20);
    const before = (await attacked.send("GET", "/metrics")).text.length;
    for (let from = 100; from < 1100; from += 100) await ask(from, 100);
    const after = (await attacked.send("GET", "/metrics")).text.length;
    expect(after - before).toBeLessThan(4000);
  });
});
