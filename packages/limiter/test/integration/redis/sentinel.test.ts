/** A failover by Sentinel while the old primary still takes writes: by night. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { redis } from "@zae-limiter/limiter/repository/stores/redis-client.ts";
import { RedisServer } from "@zae-limiter/test-engines/redis-server.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createSentinel } from "redis";
import { afterEach, beforeEach, expect, it } from "vitest";

const NAME = "main";
const CALL = { entityId: "key", resource: "api", consume: { n: 1 } };
const SOON_POLL = { timeout: 30_000, interval: 50 };
/** Sentinel may not make a replica of this primary, nor end its connections: it stays as it is. */
const RIGHTS = "default on nopass ~* &* +@all -replicaof -slaveof -client|kill";

describeUnless(NIGHTLY_ONLY)("Sentinel", () => {
  const cleaning: (() => unknown)[] = [];
  let sentinel: RedisServer;
  let replica: RedisServer;

  beforeEach(async () => {
    const started = async (options: Parameters<typeof RedisServer.start>[0]) => {
      const server = await RedisServer.start(options);
      cleaning.push(() => server.remove());
      return server;
    };
    const primary = await started({ settings: ["--user", ...RIGHTS.split(" ")] });
    const of = `127.0.0.1 ${primary.port}`;
    replica = await started({ settings: ["--replicaof", ...of.split(" ")] });
    sentinel = await started({ sentinel: `sentinel monitor ${NAME} ${of} 1\n` });
    const admin = connected(replica.url);
    const isLinked = async () => /master_link_status:up/.test(await admin.info("replication"));
    await expect.poll(isLinked, SOON_POLL).toBe(true);
    const watching = connected(sentinel.url);
    const replicas = () => watching.call("SENTINEL", "REPLICAS", NAME) as Promise<unknown[]>;
    await expect.poll(async () => (await replicas()).length, SOON_POLL).toBe(1);
  });
  afterEach(async () => {
    for (const clean of cleaning.splice(0).reverse()) await clean();
  });

  function connected(url: string): Redis {
    const client = new Redis(url);
    cleaning.push(() => client.disconnect());
    return client;
  }

  const CLIENTS = {
    ioredis: (port: number) => {
      const client = new Redis({ sentinels: [{ host: "127.0.0.1", port }], name: NAME });
      cleaning.push(() => client.disconnect());
      return redis(client);
    },
    iovalkey: (port: number) => {
      const client = new Valkey({ sentinels: [{ host: "127.0.0.1", port }], name: NAME });
      cleaning.push(() => client.disconnect());
      return redis(client);
    },
    "node-redis": (port: number) =>
      redis(createSentinel({ name: NAME, sentinelRootNodes: [{ host: "127.0.0.1", port }] })),
  };

  it.each(Object.entries(CLIENTS))(
    "%s leaves a primary that does not know of its end",
    async (_, storeAt) => {
      const options = { namespace: "left", timeoutMs: 5000, configCacheTtlSeconds: 1e6 };
      const repo = await Repository.over(storeAt(sentinel.port), options);
      cleaning.push(() => repo.close());
      await repo.limits.setSystem(["n:1000000/day"]);
      const limiter = new RateLimiter(repo);
      await limiter.acquire(CALL);
      const admin = connected(replica.url);
      const isThere = async () => (await admin.dbsize()) > 0;
      await expect.poll(isThere, SOON_POLL).toBe(true);
      await connected(sentinel.url).call("SENTINEL", "FAILOVER", NAME);
      const isPrimary = async () => /role:master/.test(await admin.info("replication"));
      await expect.poll(isPrimary, SOON_POLL).toBe(true);
      const arrived = async () => {
        await limiter.acquire(CALL).catch(() => undefined);
        const text = await admin.info("commandstats");
        return /cmdstat_evalsha:calls=\d+/.test(text) || /cmdstat_eval:calls=\d+/.test(text);
      };
      await expect.poll(arrived, SOON_POLL).toBe(true);
    },
  );
});
