/**
 * Changes of namespaces touch two slots of a cluster. Here the store takes one server for a
 * cluster, so that it writes in two parts, and crashes between them.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { holderKey } from "@zae-limiter/limiter/records/holders.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { addressClient, type OwnClient } from "@zae-limiter/limiter/storage/redis/clients.ts";
import { RedisConnection } from "@zae-limiter/limiter/storage/redis/connection.ts";
import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { COMMIT } from "@zae-limiter/limiter/storage/redis/scripts/commit.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";

const TIMEOUT_MS = 20_000;
const BEGIN_MS = Date.parse("2030-01-01T12:00:00Z");

/** A client that says it is one of a cluster, and ends before one of its commits. */
class CrashingClient implements OwnClient {
  readonly isCluster = true;
  readonly #client: OwnClient;
  #left = Number.POSITIVE_INFINITY;
  /** Runs once, before the next commit of which there was one already. */
  meanwhile: (() => Promise<unknown>) | undefined;
  #commits = 0;

  constructor(client: OwnClient) {
    this.#client = client;
  }

  get isReady(): boolean {
    return this.#client.isReady;
  }

  connected(): Promise<void> {
    return this.#client.connected();
  }

  /** Does something before the second commit from now. */
  beforeSecond(work: () => Promise<unknown>): void {
    this.#commits = 0;
    this.meanwhile = work;
  }

  /** Lets some more commits pass. */
  crashAfter(commits: number): void {
    this.#left = commits;
  }

  async send(args: readonly string[], key: string | undefined): Promise<unknown> {
    if (args[1] === COMMIT.digest) {
      if (this.#left === 0) throw new Error("the process has crashed");
      this.#left -= 1;
      this.#commits += 1;
      const { meanwhile } = this;
      if (meanwhile !== undefined && this.#commits > 1) {
        this.meanwhile = undefined;
        await meanwhile();
      }
    }
    return this.#client.send(args, key);
  }

  reconnect(): void {}

  close(): void {
    this.#client.close();
  }
}

describeRedis("two slots", (url) => {
  const { prefix } = ownPrefix(url);
  const opened: Repository[] = [];
  let client: CrashingClient;
  let repo: Repository;

  async function open(options: OpenOptions = {}): Promise<[CrashingClient, Repository]> {
    const made = new CrashingClient(await addressClient(url, { timeoutMs: TIMEOUT_MS }));
    const connection = new RedisConnection(made, { place: "redis://test", prefix });
    const store = new RedisItemTable(connection);
    const other = await Repository.over(store, { timeoutMs: TIMEOUT_MS, ...options });
    opened.push(other);
    return [made, other];
  }

  beforeEach(async () => {
    [client, repo] = await open();
  });
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });
  afterAll(() => removeKeys(url, prefix));

  /** Runs a change that crashes between its parts. */
  async function crash(change: () => Promise<unknown>): Promise<void> {
    client.crashAfter(1);
    await expect(change()).rejects.toThrow();
    [client, repo] = await open();
  }

  const names = async () => (await repo.namespaces.list()).map(({ name }) => name);

  it("a namespace that was registered by half is registered by doing it again", async () => {
    await crash(() => repo.namespaces.register("half"));
    expect(await names()).not.toContain("half");
    const { half } = await repo.namespaces.register("half");
    expect((await repo.namespaces.get("half"))?.namespaceId).toBe(half);
    expect(await repo.namespaces.register("half")).toEqual({ half });
  });

  it("a namespace that was deleted by half is deleted by doing it again", async () => {
    const { gone } = await repo.namespaces.register("gone");
    await crash(() => repo.namespaces.delete("gone"));
    expect(await names()).toContain("gone");
    await repo.namespaces.delete("gone");
    expect(await names()).not.toContain("gone");
    const orphans = await repo.namespaces.orphans();
    expect(orphans.map(({ namespaceId }) => namespaceId)).toContain(gone);
  });

  it("a namespace that was recovered by half is recovered after deleting it again", async () => {
    const { back = "" } = await repo.namespaces.register("back");
    await repo.namespaces.delete("back");
    await crash(() => repo.namespaces.recover(back));
    await repo.namespaces.delete("back");
    expect(await repo.namespaces.recover(back)).toBe("back");
    expect((await repo.namespaces.get("back"))?.namespaceId).toBe(back);
  });

  it("a namespace is purged with all that it has, and leaves no bucket behind", async () => {
    const { full = "" } = await repo.namespaces.register("full");
    const inside = await repo.namespace("full");
    await inside.limits.setSystem(["rpm:10"]);
    await inside.entities.create({ id: "one" });
    await repo.namespaces.delete("full");
    await repo.namespaces.purge(full);
    expect(await repo.namespaces.orphans()).toEqual(
      expect.not.arrayContaining([expect.objectContaining({ namespaceId: full })]),
    );
    await expect(repo.namespaces.recover(full)).rejects.toThrow();
  });

  it("slots of a dead process come back once while the record of another one changes", async () => {
    const atSecond = (seconds: number) => open({ clock: () => BEGIN_MS + seconds * 1000 });
    const [[, dead], [, alive], [caller, late]] = [
      await atSecond(0),
      await atSecond(50),
      await atSecond(100),
    ];
    await dead.limits.setSystem(["parallel:2 concurrent"]);
    const call = { entityId: "key", resource: "api", consume: { parallel: 1 } };
    await new RateLimiter(dead).acquire(call);
    const held = await new RateLimiter(alive).acquire(call);
    const [{ holders = {} } = {}] = await alive.buckets.list("key");
    const limiter = new RateLimiter(late);
    caller.beforeSecond(async () => {
      const { store } = alive[INTERNALS].records;
      for (const id of Object.keys(holders)) {
        const item = await store.get(holderKey(id));
        if (Number(item?.["until"]) < BEGIN_MS + 100_000) continue;
        await store.put({ ...item, ...holderKey(id), until: BEGIN_MS + 155_000 });
      }
    });
    const lease = await limiter.acquire(call);
    expect(caller.meanwhile).toBeUndefined();
    const [after] = await late.buckets.list("key");
    expect(after?.tokens).toBe(0);
    expect(Object.values(after?.holders ?? {})).toEqual([1, 1]);
    await lease.commit();
    await held.commit();
    expect((await late.buckets.list("key"))[0]?.tokens).toBe(2);
  });

  it("the log of each namespace is read in its order, from where it was left", async () => {
    const table = new RedisItemTable(
      new RedisConnection(client, { place: "redis://test", prefix: `${prefix}log:` }),
    );
    const put = (PK: string, n: number) => {
      const key = { PK, SK: "a" };
      const reads = [{ key, item: undefined, revision: undefined }];
      const writes = [{ key, before: undefined, after: { ...key, n }, isLogged: true }];
      return table.commit({ reads, writes, token: undefined, nowMs: 1000 + n }, SOON);
    };
    const SOON = { timeoutMs: TIMEOUT_MS };
    for (const n of [1, 2, 3, 4]) await put(`ns-${n % 2}/part-${n}`, n);
    const first = await table.log("oldest", 3, SOON);
    expect(first.records.map(({ after }) => after?.["n"])).toEqual([1, 2, 3]);
    await put("ns-2/part", 5);
    const rest = await table.log({ after: first.position }, 10, SOON);
    expect(rest.records.map(({ after }) => after?.["n"])).toEqual([4, 5]);
    for (const { position } of rest.records.slice(-1)) {
      expect(await table.log({ after: position }, 10, SOON)).toEqual({ records: [], position });
    }
    await expect(table.log({ after: "ns-1=99" }, 10, SOON)).rejects.toThrow(/position/);
  });
});
