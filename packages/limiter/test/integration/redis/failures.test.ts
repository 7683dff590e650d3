/**
 * Calls while the server refuses, is stopped, paused or killed, or its answer is lost: what is
 * unwritten is known to be, and what is not known is never sent again.
 */

import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { redis } from "@zae-limiter/limiter/repository/stores/redis-client.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { REDIS_PASSWORD, RedisServer } from "@zae-limiter/test-engines/redis-server.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

const SOON_POLL = { timeout: 20_000, interval: 20 };
/** For what must not be answered in time; all else may take as long as a busy machine takes. */
const IMPATIENT = { timeoutMs: 1500 };
const ONE = { entityId: "key", resource: "api", consume: { n: 1 } };
/** The server answers after each kilobyte that it loads. */
const BULK = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [at, "x".repeat(1024)]));
/** Microseconds for each key: the server loads for a minute, or until this is set to nothing. */
const SLOW_LOADING = [
  ...["--key-load-delay", "120000"],
  ...["--loading-process-events-interval-bytes", "1024"],
];
const SETTINGS = ["--busy-reply-threshold", "50"];

describeRedis("failures", () => {
  let server: RedisServer;
  let admin: Redis;
  const cleaning: (() => unknown)[] = [];
  const failed: unknown[] = [];

  beforeAll(async () => {
    server = await RedisServer.start({ password: REDIS_PASSWORD, settings: SETTINGS });
    admin = new Redis(server.url, { retryStrategy: () => 20 });
    admin.on("error", () => undefined);
  });
  afterEach(async () => {
    for (const clean of cleaning.splice(0).reverse()) await clean();
  });
  afterAll(async () => {
    admin.disconnect();
    await server.remove();
  });

  /** Opens a limiter whose bucket is warm. */
  async function open(
    namespace: string,
    store: Parameters<typeof Repository.over>[0] | string,
    { timeoutMs } = { timeoutMs: 20_000 },
  ) {
    const options = { namespace, timeoutMs, configCacheTtlSeconds: 1e6 };
    const repo = await (typeof store === "string"
      ? Repository.open(store, options)
      : Repository.over(store, options));
    cleaning.push(() => repo.close());
    await repo.limits.setSystem(["n:100000/day"]);
    const limiter = new RateLimiter(repo);
    for (let call = 0; call < 2; call += 1) await limiter.acquire(ONE);
    return limiter;
  }

  async function consumed(namespace: string): Promise<number> {
    await using repo = await Repository.open(server.url, { namespace, timeoutMs: 20_000 });
    const [state] = await repo.buckets.list("key");
    return state?.totalConsumed ?? 0;
  }

  async function failureIn(call: Promise<unknown>): Promise<RateLimiterUnavailable> {
    const error = await failureOf(call);
    failed.push(error);
    if (!(error instanceof RateLimiterUnavailable)) throw error;
    return error;
  }

  /** Sets settings of the server until the test has ended. */
  async function configure(settings: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, value] of Object.entries(settings)) {
      const [, before] = (await admin.config("GET", name)) as [string, string];
      cleaning.push(() => admin.config("SET", name, before));
      await admin.config("SET", name, value);
    }
  }

  it("a replica, no memory and no disk refuse calls, with nothing written", async () => {
    const limiter = await open("refused", server.url);
    const refusedBy = async (word: string) => {
      let error: RateLimiterUnavailable | undefined;
      const message = async () => {
        error = await failureIn(limiter.acquire(ONE));
        return error.message;
      };
      // A client leaves a server that is a replica, and connects again between two calls.
      await expect.poll(message, SOON_POLL).not.toContain("cannot be reached");
      expect(error?.message).toContain(word);
      expect(error).toMatchObject({ reason: "server", nothingWritten: true });
    };
    await configure({ maxmemory: "1", "maxmemory-policy": "noeviction" });
    await refusedBy("OOM");
    await admin.config("SET", "maxmemory", "0");
    await configure({ "min-replicas-to-write": "1" });
    await refusedBy("NOREPLICAS");
    await admin.config("SET", "min-replicas-to-write", "0");
    cleaning.push(() => admin.replicaof("NO", "ONE"));
    await admin.replicaof("127.0.0.1", "1");
    await refusedBy("READONLY");
    await configure({ "replica-serve-stale-data": "no" });
    await refusedBy("MASTERDOWN");
    await admin.config("SET", "replica-serve-stale-data", "yes");
    await admin.replicaof("NO", "ONE");
    // The client has left the replica, and connects again.
    await expect
      .poll(() => limiter.tryAcquire(ONE).catch(() => "away"), SOON_POLL)
      .not.toBe("away");
    const [, directory] = (await admin.config("GET", "dir")) as [string, string];
    await configure({ save: "3600 1" });
    rmSync(directory, { recursive: true });
    await admin.bgsave().catch(() => undefined);
    const status = async () => /rdb_last_bgsave_status:(\w+)/.exec(await admin.info())?.[1];
    await expect.poll(status, SOON_POLL).toBe("err");
    await refusedBy("MISCONF");
    await admin.config("SET", "stop-writes-on-bgsave-error", "no");
    await limiter.acquire(ONE);
    expect(await consumed("refused")).toBe(4);
  });

  it("a script of another program that does not end refuses calls until it is killed", async () => {
    const limiter = await open("busy", server.url, IMPATIENT);
    const endless = new Redis(server.url);
    const running = endless.eval("while true do end", 0).catch(String);
    await expect
      .poll(() => admin.ping().catch((error: Error) => error.message.slice(0, 4)), SOON_POLL)
      .toBe("BUSY");
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: true });
    await admin.script("KILL");
    expect(await running).toMatch(/script/);
    endless.disconnect();
    await limiter.acquire(ONE);
    expect(await consumed("busy")).toBe(3);
  });

  it("a user without rights is told which commands to allow", async () => {
    await admin.call("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-eval", "-evalsha");
    const address = server.url.replace(`:${REDIS_PASSWORD}`, "poor:pw");
    await expect(Repository.open(address)).rejects.toThrow(/does not let this user.*EVALSHA/s);
    const rights =
      "-@all +eval +evalsha +get +set +del +getrange +incr +pexpire +zadd +zrem +zrange +xadd " +
      "+xrange +xdel +xlen +sadd +smembers +info +time +hello +client|setinfo +client|setname +ping";
    await admin.call("ACL", "SETUSER", "able", "on", ">pw", "~zael:*", ...rights.split(" "));
    const limiter = await open("able", server.url.replace(`:${REDIS_PASSWORD}`, "able:pw"));
    const lease = await limiter.acquire(ONE);
    lease.adjust({ n: 2 });
    await lease.commit();
    const { repository } = limiter;
    await repository.entities.create({ id: "one" });
    await repository.namespaces.register("of-able");
    expect(await consumed("able")).toBe(5);
    const poor = server.url.replace(`:${REDIS_PASSWORD}@`, "");
    await expect(Repository.open(poor)).rejects.toThrow(/asks for a user and a password/);
  });

  it("a policy that evicts any key is warned of once, and never refused", async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => warnings.push(warning);
    process.on("warning", listen);
    cleaning.push(() => process.off("warning", listen));
    await configure({ maxmemory: "1gb", "maxmemory-policy": "allkeys-lru" });
    const limiter = await open("evicting", server.url);
    await limiter.acquire(ONE);
    const codes = () => warnings.map((each) => (each as { code?: string }).code);
    await expect.poll(codes, SOON_POLL).toContain("ZAEL_EVICTION");
    expect(codes().filter((code) => code === "ZAEL_EVICTION")).toHaveLength(1);
  });

  const CLIENTS = {
    "an address": (url: string) => url,
    ioredis: (url: string) => redis(kept(new Redis(url))),
    iovalkey: (url: string) => redis(kept(new Valkey(url))),
    "node-redis": (url: string) => redis(createClient({ url })),
  };

  /** A client of the caller's, as it comes: it would send unanswered commands again. */
  function kept<
    Client extends { disconnect(): void; on(event: "error", listener: () => void): unknown },
  >(client: Client): Client {
    client.on("error", () => undefined);
    cleaning.push(() => client.disconnect());
    return client;
  }

  it.each(Object.entries(CLIENTS))(
    "a call of %s whose answer is lost is counted once, and never sent again",
    async (name, storeAt) => {
      const namespace = `lost-${name.replace(" ", "-")}`;
      const proxy = await Cutter.start(server.port);
      cleaning.push(() => proxy.close());
      const url = server.url.replace(String(server.port), String(proxy.port));
      const limiter = await open(namespace, storeAt(url));
      proxy.swallowNext();
      const error = await failureIn(limiter.acquire(ONE));
      expect(error).toMatchObject({ nothingWritten: false });
      // The connection is made again by itself, and nothing of before is sent on it.
      await expect.poll(() => limiter.acquire(ONE).catch(() => "lost"), SOON_POLL).not.toBe("lost");
      expect(await consumed(namespace)).toBe(4);
    },
  );

  it.each(Object.entries(CLIENTS))(
    "a killed server is unavailable for %s, also while it loads its data, and then used again",
    async (name, storeAt) => {
      const namespace = `killed-${name.replace(" ", "-")}`;
      const own = await RedisServer.start({ password: REDIS_PASSWORD });
      cleaning.push(() => own.remove());
      const limiter = await open(namespace, storeAt(own.url), IMPATIENT);
      const saving = kept(new Redis(own.url, { enableReadyCheck: false }));
      await saving.mset(BULK);
      await saving.config("SET", "rdbcompression", "no");
      await saving.save();
      await own.kill();
      await expect
        .poll(async () => (await failureIn(limiter.acquire(ONE))).nothingWritten, SOON_POLL)
        .toBe(true);
      await own.start(SLOW_LOADING);
      const failures: RateLimiterUnavailable[] = [];
      const next = async () => {
        const answer = await limiter.tryAcquire(ONE).catch((error: unknown) => error);
        if (answer instanceof RateLimiterUnavailable) failures.push(answer);
        return answer instanceof Error ? answer.message : "granted";
      };
      expect(await next()).not.toBe("granted");
      const load = () => saving.config("SET", "key-load-delay", "0").catch(String);
      await expect.poll(load, SOON_POLL).toBe("OK");
      await expect.poll(next, SOON_POLL).toBe("granted");
      // A server that loads may leave a request unanswered.
      const isKnown = (error: RateLimiterUnavailable) =>
        error.nothingWritten || error.reason === "timeout";
      expect(failures.filter((error) => !isKnown(error))).toEqual([]);
    },
  );

  it("no error of all of these shows the password, or a command", () => {
    expect(failed.length).toBeGreaterThan(8);
    for (const error of failed) {
      const shown = inspect(error, { depth: 9, showHidden: true });
      expect(shown).not.toContain(REDIS_PASSWORD);
      expect(shown).not.toContain("GETRANGE");
    }
  });
});

/** A network that can lose an answer and cut the connection. */
class Cutter {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #swallows = false;

  private constructor(to: number) {
    this.#server = createServer((client) => {
      const upstream = connect(to, "127.0.0.1");
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket.on("error", () => undefined));
        socket.on("close", () => {
          client.destroy();
          upstream.destroy();
        });
      }
      client.on("data", (bytes) => upstream.write(bytes));
      upstream.on("data", (bytes) => {
        if (!this.#swallows) return client.write(bytes);
        this.#swallows = false;
        return client.destroy();
      });
    });
  }

  static async start(to: number): Promise<Cutter> {
    const cutter = new Cutter(to);
    cutter.#server.listen(0, "127.0.0.1");
    await once(cutter.#server, "listening");
    return cutter;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts the connection instead of handing on the next answer. */
  swallowNext(): void {
    this.#swallows = true;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }
}
