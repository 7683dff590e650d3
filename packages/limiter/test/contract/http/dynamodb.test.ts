/** Tests on a table: grants, refusals, corrections, hang-ups and outages of local DynamoDB. */

import { once } from "node:events";
import { connect } from "node:net";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { HttpEvent } from "@zae-limiter/limiter/http/events.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { delayingProxy } from "@zae-limiter/test-support/delaying-proxy.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADAPTERS } from "./served.ts";
import { gate, SLOW, Stage, statusOf } from "./suite.ts";

const LIMITS = [`rpm:2${SLOW}`, `tpm:1000${SLOW}`];
const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };

describeEngine("dynoxide", "rateLimit", ({ endpoint }) => {
  const table = newName();
  const options = { endpoint, region: "us-east-1", credentials: CREDENTIALS };
  beforeAll(async () => (await Repository.createTable(table, options)).close());
  afterAll(() => deleteTable({ table, ...options }));

  const open = (namespace: string, more: { timeoutMs?: number } = {}, at = endpoint) =>
    RateLimiter.open(`dynamodb://${table}`, {
      ...options,
      endpoint: at,
      namespace,
      timeoutMs: 20_000,
      ...more,
    });

  describe.each(ADAPTERS)("of $name", (adapter) => {
    const stage = new Stage(adapter);
    const TARGET = { entityId: "127.0.0.1", resource: "http", limits: LIMITS };

    /** A limiter on a new namespace, and one of another process on the same. */
    const limiters = async () => {
      const namespace = newName();
      const admin = stage.keep(await Repository.open(`dynamodb://${table}`, options));
      await admin.namespaces.register(namespace);
      return [stage.keep(await open(namespace)), stage.keep(await open(namespace))] as const;
    };

    test("requests are granted, settled and refused, as another process sees", async () => {
      const [limiter, other] = await limiters();
      const { url } = await stage.serve(
        { limiter, limits: LIMITS, consume: { rpm: 1, tpm: 200 } },
        ({ lease }) => {
          lease?.settle({ tpm: 300 });
          return { body: "ok" };
        },
      );
      expect([await statusOf(url), await statusOf(url)]).toEqual([200, 200]);
      await expect.poll(() => other.available(TARGET)).toEqual({ rpm: 0, tpm: 400 });
      const refused = await fetch(url);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([
        429,
        expect.stringMatching(/^\d+$/),
      ]);
    });

    test("a client that hangs up pays what its handler settles", async () => {
      const [limiter, other] = await limiters();
      const [arrived, leave] = [gate(), gate()];
      const { url } = await stage.serve({ limiter, limits: LIMITS }, async ({ lease }) => {
        arrived.open();
        await leave.opened;
        lease?.settle({ tpm: 42 });
        return { body: "late" };
      });
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
      await arrived.opened;
      socket.destroy();
      await once(socket, "close");
      leave.open();
      await expect.poll(() => other.available(TARGET)).toEqual({ rpm: 1, tpm: 958 });
    });

    test("during an outage stored limits pass or block as onUnavailable says", async () => {
      const proxy = await delayingProxy(endpoint, 0);
      const namespace = newName();
      const admin = stage.keep(await Repository.open(`dynamodb://${table}`, options));
      await admin.namespaces.register(namespace);
      const limiter = stage.keep(await open(namespace, { timeoutMs: 2000 }, proxy.endpoint));
      const events: HttpEvent[] = [];
      const told = (event: HttpEvent) => events.push(event);
      const [blocking, allowing] = [
        await stage.serve({ limiter, onUnavailable: "block", events: told }),
        await stage.serve({ limiter, onUnavailable: "allow", events: told }),
      ];
      await proxy.close();
      const blocked = await fetch(blocking.url);
      expect([blocked.status, blocked.headers.get("retry-after")]).toEqual([503, "1"]);
      const allowed = await fetch(allowing.url);
      expect([allowed.status, allowed.headers.get("x-ratelimit-degraded")]).toEqual([200, "1"]);
      expect(events.map(({ type }) => type)).toEqual(["unavailable", "degraded"]);
    });
  });
});
