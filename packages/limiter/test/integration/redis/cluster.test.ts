/** Redis 7 alone, and clusters of Valkey and Redis: by night, or where ZAEL_NIGHTLY is set. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { redis } from "@zae-limiter/limiter/repository/stores/redis-client.ts";
import { addressClient, ownClient } from "@zae-limiter/limiter/storage/redis/clients.ts";
import { RedisConnection } from "@zae-limiter/limiter/storage/redis/connection.ts";
import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { fetchedRedis } from "@zae-limiter/test-engines/fetched-redis.ts";
import { ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { RedisCluster } from "@zae-limiter/test-engines/redis-cluster.ts";
import { RedisServer, type RedisServerOptions } from "@zae-limiter/test-engines/redis-server.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { newPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import * as vitest from "vitest";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Faults, faultyTable } from "../../contract/limiter/faults.ts";
import { openRedis } from "../../contract/limiter/limiter-stores.ts";
import { decisionTests } from "../remote/decisions.ts";
import { processTests } from "../remote/processes.ts";

const AT = { place: "redis://test", prefix: "zael:" };
const CALL = { entityId: "key", resource: "api", consume: { n: 1 } };
const SOON_POLL = { timeout: 20_000, interval: 50 };

describeUnless(NIGHTLY_ONLY)("Redis 7", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start(await fetchedRedis());
  });
  afterAll(() => server.remove());

  const openTable = async () => {
    const client = await addressClient(server.url, { timeoutMs: 20_000 });
    const store = new RedisItemTable(new RedisConnection(client, AT));
    return { store, close: () => store.close() };
  };
  itemStoreContract("a table", openTable, { many: 500 });

  describe("the limiter", () => {
    limiterContract(vitest, "redis 7", () => openRedis(server.url), { slots: true });
  });

  describe("decisions", () => {
    const open = async () => {
      const { connection, connect, drop } = await newPrefix(server.url);
      const again = async () => new RedisItemTable(await connect());
      return { table: new RedisItemTable(connection), connect: again, drop };
    };
    decisionTests({ open, atOnce: 8, handsBack: true, inOrder: true });
  });

  describe("processes", () => {
    processTests(() => ({ address: ownPrefix(server.url).url, readsClock: false }));
  });
});

describeUnless(NIGHTLY_ONLY).each(["valkey", "redis"])("a cluster of %s", (kind) => {
  let cluster: RedisCluster;
  const cleaning: (() => unknown)[] = [];
  beforeAll(async () => {
    const options: RedisServerOptions = kind === "redis" ? await fetchedRedis() : {};
    cluster = await RedisCluster.start(options);
  });
  afterEach(async () => {
    for (const clean of cleaning.splice(0).reverse()) await clean();
  });
  afterAll(() => cluster.remove());

  function storeOf(client: "ioredis" | "node-redis") {
    const places = cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
    if (client === "ioredis") {
      const made = new Cluster(places);
      cleaning.push(() => made.disconnect());
      return redis(made);
    }
    return redis(
      createCluster({
        rootNodes: places.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
      }),
    );
  }

  async function open(
    client: "ioredis" | "node-redis",
    namespace: string,
    more: { readonly clock?: () => number } = {},
  ) {
    const options = { namespace, timeoutMs: 5000, configCacheTtlSeconds: 1e6, ...more };
    const repo = await Repository.over(storeOf(client), options);
    cleaning.push(() => repo.close());
    return { repo, limiter: new RateLimiter(repo) };
  }

  it.each(["ioredis", "node-redis"] as const)(
    "namespaces by %s are spread over the nodes, and have all that others have",
    async (client) => {
      const { repo } = await open(client, `root-${client}`);
      const names = Array.from({ length: 20 }, (_, at) => `${client}-${at}`);
      await repo.namespaces.register(...names);
      for (const name of names) {
        const inside = await repo.namespace(name);
        await inside.limits.setSystem(["n:10/day"]);
        await inside.entities.create({ id: "org" });
        await inside.entities.create({ id: "key", parentId: "org", cascade: true });
        const limiter = new RateLimiter(inside);
        for (let call = 1; call <= 10; call += 1) {
          if (call === 5) await cluster.forgetScripts();
          expect((await limiter.tryAcquire(CALL)).granted).toBe(true);
        }
        expect((await limiter.tryAcquire(CALL)).granted).toBe(false);
        const states = await Promise.all(["org", "key"].map((id) => inside.buckets.list(id)));
        expect(states.flat().map(({ totalConsumed }) => totalConsumed)).toEqual([10, 10]);
      }
      const listed = (await repo.namespaces.list()).map(({ name }) => name);
      expect(listed).toEqual(expect.arrayContaining(names));
      const [first = ""] = names;
      const id = (await repo.namespaces.get(first))?.namespaceId ?? "";
      await repo.namespaces.delete(first);
      await repo.namespaces.purge(id);
      expect(await repo.namespaces.get(first)).toBeUndefined();
    },
  );

  it.each(["ioredis", "node-redis"] as const)(
    "a slot that no node serves makes calls of %s unavailable, with nothing written",
    async (client) => {
      const { repo, limiter } = await open(client, `down-${client}`);
      await repo.limits.setSystem(["n:10/day"]);
      await limiter.acquire(CALL);
      await cluster.withoutSlotOf(`{${repo.namespaceId}}`, async () => {
        const error = await failureOf(limiter.acquire(CALL));
        expect(error).toBeInstanceOf(RateLimiterUnavailable);
        expect(error).toMatchObject({ reason: "server", nothingWritten: true });
        expect((error as Error).message).toContain("CLUSTERDOWN");
      });
      await expect
        .poll(() => limiter.acquire(CALL).catch(() => "down"), SOON_POLL)
        .not.toBe("down");
      const [state] = await repo.buckets.list("key");
      expect(state?.totalConsumed).toBe(2);
    },
  );

  const moves = (key: string) => cluster.moveSlotOf(key, async () => undefined);
  const failsOver = () => cluster.failOver();
  const rate = { limits: ["n:1000000/day"], consume: { n: 1 } };
  const slots = { limits: ["n:1000000/month", "held:4 concurrent"], consume: { n: 1, held: 1 } };

  it.each([
    ["a slot of the cluster is moved, rates", moves, rate],
    ["a slot of the cluster is moved, quotas and slots of calls", moves, slots],
    ["a replica takes over, rates", failsOver, rate],
    ["a replica takes over, quotas and slots of calls", failsOver, slots],
  ] as const)("while %s are exact, and every client goes on", async (_, act, each) => {
    const namespace = newName();
    const clients = [await open("ioredis", namespace), await open("node-redis", namespace)];
    const [{ repo }] = clients as [(typeof clients)[number]];
    await repo.limits.setSystem([...each.limits]);
    const call = { ...CALL, consume: each.consume, maxWaitSeconds: 20 };
    let [granted, unknown, isOver] = [0, 0, false];
    const failures: unknown[] = [];
    const load = clients.flatMap(({ limiter }) =>
      [1, 2, 3].map(async () => {
        while (!isOver) {
          try {
            const lease = await limiter.acquire(call);
            granted += 1;
            await lease.commit();
          } catch (error) {
            failures.push(error);
            if (!(error as RateLimiterUnavailable).nothingWritten) unknown += 1;
          }
        }
      }),
    );
    try {
      await expect.poll(() => granted, SOON_POLL).toBeGreaterThan(200);
      await act(`{${repo.namespaceId}}`);
      const before = granted;
      await expect.poll(() => granted, SOON_POLL).toBeGreaterThan(before + 200);
    } finally {
      isOver = true;
      await Promise.all(load);
    }
    for (const failure of failures) expect(failure).toBeInstanceOf(RateLimiterUnavailable);
    const free = async () => {
      const states = await repo.buckets.list("key");
      return states.find(({ limitName }) => limitName === "held")?.tokens ?? 4;
    };
    await expect.poll(free, SOON_POLL).toBe(4);
    for (const { limiter } of clients) await (await limiter.acquire(call)).commit();
    const states = await repo.buckets.list("key");
    const consumed = states.find(({ limitName }) => limitName === "n")?.totalConsumed;
    // A failover may forget what the replica had not received; a manual one waits for it.
    expect(consumed).toBeGreaterThanOrEqual(granted + 2);
    expect(consumed).toBeLessThanOrEqual(granted + 2 + unknown);
  });

  describe("the limiter", () => {
    const openPlace = async () => {
      const made = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
      const connection = new RedisConnection(ownClient(made), AT);
      made.disconnect();
      // Every repository is closed after its test, and the connection is that of all.
      const table = faultyTable(new RedisItemTable(connection), new Faults());
      const open = ({ maxAttempts: _, ...options }: DynamoOptions) =>
        Repository.over(table, options);
      return { open, close: () => connection.close() };
    };
    limiterContract(vitest, "a cluster", openPlace, { slots: true });
  });

  it("clients share slots, whose records of processes are on another node", async () => {
    const nowMs = Date.parse("2030-01-01T12:00:00Z");
    const at = (ms: number) => ({ clock: () => nowMs + ms });
    const dead = await open("ioredis", "slots", { clock: () => nowMs });
    const [one, other] = [
      await open("ioredis", "slots", at(70_000)),
      await open("node-redis", "slots", at(70_000)),
    ];
    await dead.repo.limits.setSystem(["parallel:3 concurrent"]);
    const call = { ...CALL, consume: { parallel: 1 } };
    await dead.limiter.acquire(call);
    await dead.limiter.acquire(call);
    const leases = [
      await one.limiter.acquire(call),
      await other.limiter.acquire(call),
      await one.limiter.acquire(call),
    ];
    expect((await other.limiter.tryAcquire(call)).granted).toBe(false);
    for (const lease of leases) await lease.commit();
    expect((await other.repo.buckets.list("key"))[0]?.tokens).toBe(3);
  });

  it("an address and a single client are told that it is a cluster", async () => {
    const [port] = cluster.ports;
    const opened = Repository.open(`redis://127.0.0.1:${port}`);
    await expect(opened).rejects.toThrow(/is a node of a cluster.*Repository\.over/s);
  });
});
