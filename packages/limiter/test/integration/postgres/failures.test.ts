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
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

const AT = { place: "postgres://test", schema: "zae_limiter" };
const SOON = { timeoutMs: 20_000 };
const SOON_POLL = { timeout: 20_000, interval: 20 };
/** For what must not be answered in time; all else may take as long as a busy machine takes. */
const IMPATIENT_MS = 1500;
/** A fifth of it is for the way to the server and back. */
const PATIENT_MS = 5000;
const AT_ONCE = 20;
const ONE = { entityId: "key", resource: "api", consume: { n: 1 } };

/** Grants and failures of calls that never stop while the server comes and goes. */
interface Load {
  readonly grants: number;
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
      ...SOON,
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
    const failures: unknown[] = [];
    let isOver = false;
    let [grants, unknown] = [0, 0];
    const clients = Array.from({ length: AT_ONCE }, async () => {
      while (!isOver) {
        try {
          await limiter.acquire(ONE);
          grants += 1;
        } catch (error) {
          failures.push(error);
          failed.push(error);
          if (!(error as RateLimiterUnavailable).nothingWritten) unknown += 1;
        }
      }
    });
    return {
      failures,
      get grants() {
        return grants;
      },
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
    const until = load.grants + more;
    await expect.poll(() => load.grants, SOON_POLL).toBeGreaterThanOrEqual(until);
  }

  /** Waits until the server has written by itself what it had answered; it takes about 0.6 s. */
  async function onDisk(): Promise<void> {
    const connection = await AddressConnection.open(server.url, AT, SOON.timeoutMs);
    const [now] = await connection.query(
      "SELECT pg_current_wal_insert_lsn()::text AS at",
      [],
      SOON,
    );
    const text = "SELECT (pg_current_wal_flush_lsn() >= $1::text::pg_lsn)::text AS is_there";
    const isThere = async () => {
      const [row] = await connection.query(text, [String(now?.["at"])], SOON);
      return row?.["is_there"];
    };
    await expect.poll(isThere, SOON_POLL).toBe("true");
    await connection.close();
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
    const limiter = await open("paused", { timeoutMs: IMPATIENT_MS });
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
    const sent = load.grants + 2;
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
    const flushed = load.grants;
    await onDisk();
    await server.kill();
    const before = load.grants;
    await server.start();
    await granted(load, 100);
    await load.end();
    const after = load.grants - before;
    const found = await consumed(namespace);
    // A call of each client may have been answered before the end, and counted after it.
    const kept = durable ? before : flushed - AT_ONCE;
    expect(found).toBeGreaterThanOrEqual(2 + kept + after);
    expect(found).toBeLessThanOrEqual(load.grants + 2 + load.unknown);
    expect((await limiter.repository.limits.getSystem())?.limits).toHaveLength(1);
  });

  it("a row that stays locked is a call that was not written", async () => {
    const limiter = await open("locked", { timeoutMs: PATIENT_MS });
    const other = new pg.Client(server.url);
    await other.connect();
    await other.query("BEGIN; SELECT 1 FROM zae_limiter.items WHERE build IS NOT NULL FOR UPDATE");
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ reason: "timeout", nothingWritten: true });
    await other.query("ROLLBACK");
    await limiter.acquire(ONE);
    expect(await consumed("locked")).toBe(3);
    await other.end();
  });

  it("a call that an administrator cancels was not written", async () => {
    const limiter = await open("cancelled");
    const other = new pg.Client(server.url);
    await other.connect();
    await other.query("BEGIN; SELECT 1 FROM zae_limiter.items WHERE build IS NOT NULL FOR UPDATE");
    const failure = failureIn(limiter.acquire(ONE));
    const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid()`;
    await expect.poll(async () => (await other.query(cancel)).rowCount, SOON_POLL).toBe(1);
    expect(await failure).toMatchObject({ reason: "timeout", nothingWritten: true });
    await other.query("ROLLBACK");
    await other.end();
    expect(await consumed("cancelled")).toBe(2);
  });

  it("a standby refuses calls, and they go on when it is the primary again", async () => {
    const limiter = await open("standby");
    await server.stop();
    await server.start("standby");
    const error = await failureIn(limiter.acquire(ONE));
    expect(error).toMatchObject({ reason: "server", nothingWritten: true });
    expect(await consumed("standby")).toBe(2);
    await server.promote();
    await expect.poll(() => limiter.acquire(ONE).catch(() => "no"), SOON_POLL).not.toBe("no");
    expect(await consumed("standby")).toBe(3);
  });

  it("a server that takes no more connections is unavailable with nothing written", async () => {
    const admin = new pg.Client(server.url);
    await admin.connect();
    // As many as one process opens.
    await admin.query("CREATE ROLE few LOGIN PASSWORD 'p' CONNECTION LIMIT 4");
    await Repository.migrate(server.url, { grant: "few" });
    const address = Object.assign(new URL(server.url), { username: "few", password: "p" }).href;
    const others = [1, 2, 3, 4].map(() => new pg.Client(address));
    for (const other of others) await other.connect();
    const error = await failureIn(RateLimiter.open(address, SOON));
    expect(error).toMatchObject({ reason: "server", nothingWritten: true });
    for (const other of others) await other.end();
    const reopened = async () => {
      const limiter = await RateLimiter.open(address, SOON).catch(() => undefined);
      if (limiter !== undefined) opened.push(limiter);
      return limiter !== undefined;
    };
    await expect.poll(reopened, SOON_POLL).toBe(true);
    await admin.end();
  });

  it("a database that does not exist is named, and no outage", async () => {
    const address = server.url.replace(/postgres$/, "nowhere");
    const error = await failureOf(RateLimiter.open(address, SOON));
    failed.push(error);
    expect(error).toMatchObject({ code: "ZAEL_INFRASTRUCTURE_NOT_FOUND" });
    expect(String(error)).toMatch(/nowhere.*Create the database first/s);
  });

  it("connections that an administrator ends are made again", async () => {
    const limiter = await open("ended");
    const connection = await AddressConnection.open(server.url, AT, SOON.timeoutMs);
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
