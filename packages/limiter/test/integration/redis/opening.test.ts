import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { redis } from "@zae-limiter/limiter/repository/stores/redis-client.ts";
import { parseStoreUrl, placeName, urlOf } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { REDIS_PASSWORD } from "@zae-limiter/test-engines/redis-server.ts";
import { CERTIFICATE, PRIVATE_KEY } from "@zae-limiter/test-support/certificate.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { afterAll, expect, it } from "vitest";

const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { calls: 1 } };

describeRedis("opening", (server) => {
  const { prefix, url } = ownPrefix(server);
  afterAll(() => removeKeys(server, prefix));

  it.each([
    ["ioredis", () => new Redis(server), (client: Redis) => client.disconnect()],
    ["iovalkey", () => new Valkey(server), (client: Valkey) => client.disconnect()],
  ])(
    "an address and a client of %s share their buckets, and the client stays open",
    async (name, make, end) => {
      const client = make() as never as Redis;
      const options = { namespace: `shared-${name}` };
      await using byAddress = await Repository.open(url, options);
      const byClient = await Repository.over(redis(client, { prefix }), options);
      await byAddress.limits.setSystem(["calls:2/day"]);
      await new RateLimiter(byAddress).acquire(REQUEST);
      await new RateLimiter(byClient).acquire(REQUEST);
      const refused = new RateLimiter(byAddress).acquire(REQUEST);
      await expect(refused).rejects.toMatchObject({ code: "ZAEL_RATE_LIMIT_EXCEEDED" });
      await byClient.close();
      expect(await client.call("PING")).toBe("PONG");
      (end as (each: unknown) => void)(client);
    },
  );

  it("a client of node-redis is duplicated, whether it is connected or not", async () => {
    const client = createClient({ url: server });
    const store = redis(client, { prefix });
    const repo = await Repository.over(store, { namespace: "node" });
    await repo.limits.setSystem(["calls:1/day"]);
    await new RateLimiter(repo).acquire(REQUEST);
    await repo.close();
    expect(client.isOpen).toBe(false);
    await client.connect();
    await using again = await Repository.over(store, { namespace: "node" });
    const refused = new RateLimiter(again).acquire(REQUEST);
    await expect(refused).rejects.toMatchObject({ code: "ZAEL_RATE_LIMIT_EXCEEDED" });
    expect(await client.ping()).toBe("PONG");
    client.destroy();
  });

  it("what cannot be duplicated, or is no client, is refused", () => {
    const resends = { call: () => undefined, evalsha: () => undefined } as never;
    expect(() => redis(resends)).toThrow(/sends unanswered commands again.*counts calls twice/);
    for (const wrong of [undefined, null, {}, "redis://localhost", { eval: () => undefined }]) {
      expect(() => redis(wrong as never)).toThrow(/expected a client of ioredis, iovalkey or node/);
    }
    const client = new Redis({ lazyConnect: true });
    expect(() => redis(client, { prefx: "a" } as never)).toThrow(/expected prefix, got "prefx"/);
    expect(() => redis(client, { prefix: "a b" })).toThrow(/letters, digits/);
  });

  it("an acquire is one request, whatever the number of its parents", async () => {
    const calls: string[] = [];
    const onCall = ({ operation }: { operation: string }) => calls.push(operation);
    await using repo = await Repository.open(url, { namespace: "trips", onCall });
    await repo.limits.setSystem(["rpm:100/min", "tpm:100/min"]);
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "team", parentId: "org", cascade: true });
    await repo.entities.create({ id: "key", parentId: "team", cascade: true });
    const limiter = new RateLimiter(repo);
    for (const entityId of ["org", "team", "key"]) {
      const request = { entityId, resource: "gpt-4", consume: { rpm: 1, tpm: 1 } };
      for (const _ of [1, 2, 3]) await (await limiter.acquire(request)).commit();
      calls.splice(0);
      await (await limiter.acquire(request)).commit();
      expect(calls).toEqual(["consume"]);
    }
  });

  it("names, addresses for messages and errors show neither user nor password", async () => {
    const location = parseStoreUrl(url);
    expect(placeName(location)).not.toContain(REDIS_PASSWORD);
    expect(urlOf(location)).toBe(url.replaceAll(":&", "%3A&").replace(/:$/, "%3A"));
    await using repo = await Repository.open(url);
    expect(repo[INTERNALS].storeName).not.toContain(REDIS_PASSWORD);
    const secret = "p%40ss-word-1";
    for (const wrong of [
      `redis://u:${secret}@host:99999`,
      `redis://u:${secret}@host/db`,
      `redis://u:${secret}@host?unknown=1`,
      `redis://u:${secret}@host?prefix=`,
      `redis:u:${secret}@host`,
      `rediss://u:${secret}@`,
      `rediz://u:${secret}@host`,
      `redis://u:p/${secret}@host`,
      `redis://host?password=${secret}`,
      `redis://u:${secret}@host?prefix=a%20b`,
      `redis://u:${secret}@127.0.0.1:1`,
    ]) {
      const error: unknown = await Repository.open(wrong).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(inspect(error, { depth: 9, showHidden: true }), wrong).not.toMatch(/ss-word-1/);
    }
  });

  it("a wrong password is refused with a sentence, and no error shows one", async () => {
    // A user that no server has: yours may ask for no password.
    const address = Object.assign(new URL(server), { username: "z", password: "another-secret" });
    const opened = Repository.open(address.href);
    const error: unknown = await opened.catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/user (?:and|or) (?:a )?password/);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/another-secret/);
  });

  it("TLS is as strict as Node.js, for an address and for clients", async () => {
    const { hostname, port, username, password } = new URL(server);
    const plain = { host: hostname, port: Number(port) };
    const proxy = createTlsServer({ key: PRIVATE_KEY, cert: CERTIFICATE }, (socket) => {
      const through = connect(plain);
      socket.pipe(through).pipe(socket);
      for (const each of [socket, through]) each.on("error", () => undefined);
    });
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const place = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const login = password === "" ? "" : `${username}:${password}@`;
    const address = `rediss://${login}${place}`;
    const tls = { ca: CERTIFICATE, servername: "receiver.test" };
    const unknown = Repository.open(address);
    await expect(unknown).rejects.toMatchObject({ code: "ZAEL_UNAVAILABLE", nothingWritten: true });
    const other = Repository.open(address, { tls: { ca: CERTIFICATE, servername: "other.test" } });
    await expect(other).rejects.toThrow(/cannot be reached/);
    const trusted = await Repository.open(`${address}?prefix=${prefix}`, { tls });
    expect(await trusted.limits.listResources()).toEqual([]);
    await trusted.close();
    for (const client of [
      new Redis(address, { tls, lazyConnect: true }),
      new Valkey(address, { tls, lazyConnect: true }),
      createClient({ url: address, socket: { ...tls, tls: true } }),
    ]) {
      const repo = await Repository.over(redis(client, { prefix }));
      expect(await repo.limits.listResources()).toEqual([]);
      await repo.close();
    }
    proxy.close();
  });

  it("a wrong option is refused", async () => {
    await expect(Repository.open(url, { durable: true })).rejects.toThrow(/PostgreSQL only/);
    await expect(Repository.open("memory:", { tls: {} })).rejects.toThrow(/Redis only/);
    await expect(Repository.open(url, { tls: {} })).rejects.toThrow(/rediss: and valkeys:/);
  });
});
