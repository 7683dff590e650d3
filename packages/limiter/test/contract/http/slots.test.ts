/** Limits of slots, on every HTTP adapter: a request holds what `consume` takes until it ends. */

import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { ADAPTERS } from "./served.ts";
import { gate, hangUp, SLOW, Stage, statusOf } from "./suite.ts";

const PLACE = { entityId: "127.0.0.1", resource: "http" };

describe.each(ADAPTERS)("slots on $name", (adapter) => {
  const stage = new Stage(adapter);

  async function served(handle: (path: string) => Promise<void> | AsyncIterable<string>) {
    const limiter = await stage.limiter();
    await limiter.repository.limits.setSystem(["parallel:1 concurrent", `rpm:100${SLOW}`]);
    const consume = { parallel: 1, rpm: 1 };
    const { url } = await stage.serve({ limiter, consume }, async ({ path }) => {
      const work = handle(path);
      if (!(work instanceof Promise)) return { body: work };
      await work;
      return { body: "ok" };
    });
    return { limiter, url };
  }

  test("a request holds its slot until its response has ended, and one more is refused", async () => {
    const [arrived, leave] = [gate(), gate()];
    const { limiter, url } = await served(async (path) => {
      if (path !== "/slow") return;
      arrived.open();
      await leave.opened;
    });
    const slow = fetch(`${url}/slow`);
    await arrived.opened;
    const refused = await fetch(url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("ratelimit-policy")).toContain('"parallel";q=1,');
    expect(refused.headers.get("ratelimit")).toContain('"parallel";r=0;t=');
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const { limits } = (await refused.json()) as { limits: object[] };
    expect(limits).toMatchObject([
      { limit_name: "parallel", kind: "concurrency", exceeded: true, estimated: true },
      { limit_name: "rpm", available: 99 },
    ]);
    leave.open();
    expect(await (await slow).text()).toBe("ok");
    await expect.poll(() => limiter.available(PLACE)).toEqual({ parallel: 1, rpm: 99 });
    expect(await statusOf(url)).toBe(200);
  });

  test("a stream holds its slot until its last byte", async () => {
    const [arrived, leave] = [gate(), gate()];
    const { limiter, url } = await served(async function* () {
      yield "first";
      arrived.open();
      await leave.opened;
      yield "last";
    });
    const response = await fetch(url);
    await arrived.opened;
    expect((await limiter.available(PLACE))["parallel"]).toBe(0);
    leave.open();
    expect(await response.text()).toBe("firstlast");
    await expect.poll(() => limiter.available(PLACE)).toEqual({ parallel: 1, rpm: 99 });
  });

  test("a client that hangs up leaves its slot with the handler, until that is done", async () => {
    const [arrived, leave] = [gate(), gate()];
    const { limiter, url } = await served(async () => {
      arrived.open();
      await leave.opened;
    });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    await arrived.opened;
    await hangUp(socket);
    expect((await limiter.available(PLACE))["parallel"]).toBe(0);
    leave.open();
    await expect.poll(() => limiter.available(PLACE)).toEqual({ parallel: 1, rpm: 99 });
  });
});
