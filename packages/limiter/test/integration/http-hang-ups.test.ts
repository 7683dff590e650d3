/**
 * Clients that go away at any moment, and a great many requests: every lease ends, what was
 * consumed is what handlers said, and nothing is left behind in the process.
 */

import { once } from "node:events";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS } from "../contract/http/served.ts";
import { Stage } from "../contract/http/suite.ts";

const SOAK = process.env.ZAEL_SOAK !== undefined;
const CLIENTS = SOAK ? 1000 : 200;
const REQUESTS = SOAK ? 100_000 : 400;
const CAPACITY = 1_000_000_000;
/** Refills one token a day: what is missing was consumed. */
const LIMITS = [`rpd:1/day:${CAPACITY}`, `tpd:1/day:${CAPACITY}`];
const TARGET = { entityId: "127.0.0.1", resource: "http", limits: LIMITS };

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Timers and others; how many sockets the client keeps open is its own affair. */
function handles(): number {
  return process.getActiveResourcesInfo().filter((name) => !name.startsWith("TCP")).length;
}

describe.each(ADAPTERS)("hang-ups on $name", (adapter) => {
  const stage = new Stage(adapter);

  test(`${CLIENTS} clients that close at random leave no lease open`, async () => {
    const random = seededRandom(7);
    const limiter = await stage.limiter();
    let handled = 0;
    let tokens = 0;
    const { url } = await stage.serve({ limiter, limits: LIMITS }, ({ lease }) => ({
      body: (async function* () {
        handled += 1;
        let used = 0;
        const chunks = Math.floor(random() * 20);
        tokens += 1;
        for (let chunk = 0; chunk < chunks; chunk += 1) {
          used += 10;
          lease?.settle({ tpd: used + 1 });
          tokens += 10;
          yield "data: more\n\n";
          await new Promise((resolve) => setImmediate(resolve));
        }
      })(),
    }));
    const { hostname, port } = new URL(url);
    const client = async () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => undefined);
      await once(socket, "connect");
      socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
      const patience = Math.floor(random() * 6);
      for (let turn = 0; turn < patience; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (random() < 0.7) socket.destroy();
      else {
        socket.resume();
        await once(socket, "close");
      }
    };
    for (let started = 0; started < CLIENTS; started += 50) {
      await Promise.all(Array.from({ length: 50 }, client));
    }
    await expect
      .poll(async () => {
        const { rpd = 0, tpd = 0 } = await limiter.available(TARGET);
        return { requests: CAPACITY - rpd - handled, tokens: CAPACITY - tpd - tokens };
      })
      .toEqual({ requests: 0, tokens: 0 });
    expect(handled).toBeGreaterThan(0);
  });

  const patience = { timeout: SOAK ? 900_000 : 60_000 };
  test(`${REQUESTS} requests leave heap, handles and listeners level`, patience, async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const { url } = await stage.serve({ limits: LIMITS }, ({ lease }) => {
      lease?.settle({ tpd: 3 });
      return { body: "ok" };
    });
    const many = async (count: number) => {
      const lane = async () => {
        for (let at = 0; at < count / 20; at += 1) await (await fetch(url)).arrayBuffer();
      };
      await Promise.all(Array.from({ length: 20 }, lane));
    };
    await many(REQUESTS / 4);
    const [heap, before] = [heapBytes(), handles()];
    await many(REQUESTS);
    expect(handles()).toBeLessThanOrEqual(before + 5);
    // A megabyte is what the machine and the client may add; anything kept per request is more.
    expect(heapBytes() - heap).toBeLessThan(1_000_000 + (SOAK ? 10 : 2000) * REQUESTS);
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});
