/**
 * Calls while the server is stopped, paused, restarted or killed, or has no room: what is unwritten
 * is known to be, and what is not known is neither repeated nor given out again.
 */

import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { AddressConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD, PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

const AT = { place: "postgres://test", schema: "zae_limiter" };
const SOON = { timeoutMs: 20_000 };
const SOON_POLL = { timeout: 20_000, interval: 20 };
const IMPATIENT_MS = 400;
const AT_ONCE = 20;
/** Three times `wal_writer_delay`, and what a busy machine adds. */
const FORGOTTEN_MS = 1000;
const ONE = { entityId: "key", resource: "api", consume: { n: 1 } };

/** Grants and failures of calls that never stop while the server comes and goes. */
interface Load {
  /** When each grant was answered, by `performance.now`. */
  readonly grants: readonly number[];
  /** Calls that may have been counted. */
  readonly unknown: number;
  readonly failures: readonly unknown[];
  end(): Promise<void>;
}

describePostgres("failures", () => {
  let server: PostgresServer;
  const opened: RateLimiter[] = [];
  const failed: unknown[] = [];

  beforeAll(async () => {
    server = await PostgresServer.start();
    await Repository.migrate(server.url);
  });
  afterEach(async () => {
    for (const limiter of opened.splice(0)) await limiter.close();
  });
  afterAll(() => server.remove());

  /** Opens a limiter whose bucket is warm. */
  async function open(namespace: string, options: object = {}): Promise<RateLimiter> {
    const limiter = await RateLimiter.open(server.url, {
      namespace,
      timeoutMs: IMPATIENT_MS,
      configCacheTtlSeconds: 1e6,
      ...options,
    });
    opened.push(limiter);
    await limiter.repository.limits.setSystem(["n:100000/day"]);
    for (let call = 0; call < 2; call += 1) await limiter.acquire(ONE);
    return limiter;
  }

  /** Returns what another process finds in the bucket. */
  async function consumed(namespace: string): Promise<number> {
    await using repo = await Repository.open(server.url, { namespace, ...SOON });
    const [state] = await repo.buckets.list("key");
    return state?.totalConsumed ?? 0;
  }

  async function failureIn(call: Promise<unknown>): Promise<RateLimiterUnavailable> {
    const error = await failureOf(call);
    failed.push(error);
    if (!(error instanceof RateLimiterUnavailable)) throw error;
    return error;
  }

  function loadOn(limiter: RateLimiter): Load {
    const [grants, failures]: [number[], unknown[]] = [[], []];
    let isOver = false;
    let unknown = 0;
    const clients = Array.from({ length: AT_ONCE }, async () => {
      while (!isOver) {
        try {
          await limiter.acquire(ONE);
          grants.push(performance.now());
        } catch (error) {
          failures.push(error);
          failed.push(error);
          if (!(error as RateLimiterUnavailable).nothingWritten) unknown += 1;
        }
      }
    });
    return {
      grants,
      failures,
      get unknown() {
        return unknown;
      },
      end: async () => {
        isOver = true;
        await Promise.all(clients);
      },
    };
  }

  async function granted(load: Load, more: number): Promise<void> {
    const until = load.grants.length + more;
    await expect.poll(() => load.grants.length, SOON_POLL).toBeGreaterThanOrEqual(until);
  }

  it("a stopped server is unavailable with nothing written, and comes back by itself", async () => {
    const limiter = await open("stopped");
    const covered = await open("covered", { onUnavailable: "allow" });
    await server.stop();
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ code: "ZAEL_UNAVAILABLE", nothingWritten: true });
    expect((await covered.acquire(ONE)).degraded).toBe(true);
    await expect(Repository.open(server.url)).rejects.toThrow(/cannot be reached/);
    await server.start();
    await expect
      .poll(() => limiter.tryAcquire(ONE).catch(() => "down"), SOON_POLL)
      .not.toBe("down");
    expect(await consumed("stopped")).toBe(3);
    expect(await consumed("covered")).toBe(2);
  });

  it("a paused server counts a call at most once, and a refund exactly once", async () => {
    const limiter = await open("paused");
    const lease = await limiter.acquire({ ...ONE, consume: { n: 100 } });
    server.pause();
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: false });
    const rolledBack = lease.rollback();
    await expect.poll(() => limiter.acquire(ONE).catch(() => "late"), SOON_POLL).toBe("late");
    server.resume();
    await rolledBack;
    await limiter.close();
    // Warm calls before, and the ones that were lost, which may have been counted.
    const found = await consumed("paused");
    expect(found).toBeGreaterThanOrEqual(2);
    expect(found).toBeLessThanOrEqual(4);
  });

  it("a server that restarts under load forgets nothing", async () => {
    const limiter = await open("restarted");
    const load = loadOn(limiter);
    await granted(load, 200);
    await server.stop("fast");
    await server.start();
    await granted(load, 200);
    await load.end();
    const sent = load.grants.length + 2;
    const found = await consumed("restarted");
    expect(load.failures.length).toBeGreaterThan(0);
    for (const failure of load.failures) expect(failure).toBeInstanceOf(RateLimiterUnavailable);
    expect(found).toBeGreaterThanOrEqual(sent);
    expect(found).toBeLessThanOrEqual(sent + load.unknown);
  });

  it.each([
    ["forgets the last moments only", false],
    ["forgets nothing that is durable", true],
  ])("a server that is killed under load %s", async (_, durable) => {
    const namespace = `killed-${durable}`;
    const limiter = await open(namespace, { durable });
    const load = loadOn(limiter);
    await granted(load, 300);
    await expect
      .poll(() => performance.now() - (load.grants[0] ?? 0), SOON_POLL)
      .toBeGreaterThan(1400);
    const killedAt = performance.now();
    await server.kill();
    await server.start();
    const kept = durable
      ? load.grants.length
      : load.grants.filter((at) => at < killedAt - FORGOTTEN_MS).length;
    await granted(load, 100);
    await load.end();
    const after = load.grants.filter((at) => at > killedAt).length;
    const found = await consumed(namespace);
    expect(kept).toBeGreaterThan(AT_ONCE);
    expect(found).toBeGreaterThanOrEqual(durable ? load.grants.length + 2 : kept + after - AT_ONCE);
    expect(found).toBeLessThanOrEqual(load.grants.length + 2 + load.unknown);
    expect((await limiter.repository.limits.getSystem())?.limits).toHaveLength(1);
  });

  it("a row that stays locked is a call that was not written", async () => {
    const limiter = await open("locked");
    const connection = await AddressConnection.open(server.url, AT, 5000);
    const lock = `SELECT 1 FROM zae_limiter.items WHERE build IS NOT NULL FOR UPDATE;
      SELECT pg_sleep(1)`;
    const locked = connection.query(lock, [], SOON);
    await expect
      .poll(async () => {
        const text =
          "SELECT count(*)::text AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        return (await connection.query(text, [], SOON))[0]?.n;
      }, SOON_POLL)
      .toBe("1");
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: true });
    await locked;
    await limiter.acquire(ONE);
    expect(await consumed("locked")).toBe(3);
    await connection.close();
  });

  it("connections that an administrator ends are made again", async () => {
    const limiter = await open("ended");
    const connection = await AddressConnection.open(server.url, AT, 5000);
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`;
    await connection.query(end, [], SOON);
    await expect.poll(() => limiter.acquire(ONE).catch(() => "ended"), SOON_POLL).not.toBe("ended");
    await connection.close();
  });

  it("no error of all of these shows the password", () => {
    expect(failed.length).toBeGreaterThan(5);
    for (const error of failed) {
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(POSTGRES_PASSWORD);
    }
  });
});
