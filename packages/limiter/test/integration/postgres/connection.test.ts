import { inspect } from "node:util";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  AddressConnection,
  GivenConnection,
} from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD, PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";

const AT = { place: "postgres://127.0.0.1/postgres", schema: "zae_limiter" };
/** As long as a busy machine may take. */
const SOON = { timeoutMs: 20_000 };
/** Longer than a busy machine takes to stop a server. */
const LONG = { timeoutMs: 50_000 };
/** Longer than any of these tests. */
const ENDLESS = "SELECT pg_sleep(60)";

describePostgres("connections", (url) => {
  let own: AddressConnection;
  beforeAll(async () => {
    own = await AddressConnection.open(url, AT, SOON.timeoutMs);
  });
  afterAll(() => own.close());

  it("texts go in and come out", async () => {
    const rows = await own.query(
      "SELECT ($1::text::bigint[])[2]::text AS second, $2 AS none",
      ["{1,9007199254740993}", null],
      SOON,
    );
    expect(rows).toEqual([{ second: "9007199254740993", none: null }]);
  });

  it("a process has at most four connections, however many calls wait", async () => {
    const text = "SELECT pg_backend_pid()::text AS pid, pg_sleep(0.001)";
    const calls = Array.from({ length: 1000 }, () => own.query(text, [], { timeoutMs: 30_000 }));
    const pids = (await Promise.all(calls)).map(([row]) => row?.pid);
    expect(new Set(pids).size).toBeLessThanOrEqual(4);
  });

  it("a refused statement leaves the connection in use", async () => {
    const pid = async () => (await own.query("SELECT pg_backend_pid()::text AS p", [], SOON))[0];
    const alone = await AddressConnection.open(url, AT, SOON.timeoutMs);
    const first = await alone.query("SELECT pg_backend_pid()::text AS p", [], SOON);
    await expect(alone.query("SELECT 1 / 0", [], SOON)).rejects.toThrow(/22012/);
    expect(await alone.query("SELECT pg_backend_pid()::text AS p", [], SOON)).toEqual(first);
    await alone.close();
    expect(await pid()).toBeDefined();
  });

  it("a server that became a standby is left: its name may lead to another by now", async () => {
    const alone = await AddressConnection.open(url, AT, SOON.timeoutMs);
    const pid = () => alone.query("SELECT pg_backend_pid()::text AS p", [], SOON);
    const first = await pid();
    const refused = alone.query("SET LOCAL transaction_read_only = on; CREATE ROLE r", [], SOON);
    await expect(refused).rejects.toMatchObject({ reason: "server", nothingWritten: true });
    expect(await pid()).not.toEqual(first);
    await alone.close();
  });

  it("a deadline ends the call, and its connection is not used again", async () => {
    const alone = await AddressConnection.open(url, AT, SOON.timeoutMs);
    // Its connection is there: what ends at the deadline is the call, not the connecting.
    await alone.query("SELECT 1", [], SOON);
    const late = alone.query(ENDLESS, [], { timeoutMs: 30 });
    await expect(late).rejects.toMatchObject({ reason: "timeout", nothingWritten: false });
    expect(await alone.query("SELECT 'next' AS t", [], SOON)).toEqual([{ t: "next" }]);
    await alone.close();
    await expect(alone.query("SELECT 1", [], SOON)).rejects.toThrow(/were closed/);
  });

  it("a call that got no connection in time wrote nothing", async () => {
    const alone = await AddressConnection.open(url, AT, SOON.timeoutMs);
    const busy = Array.from({ length: 4 }, () => alone.query("SELECT pg_sleep(0.3)", [], SOON));
    const late = alone.query("SELECT 1", [], { timeoutMs: 20 });
    await expect(late).rejects.toMatchObject({ reason: "timeout", nothingWritten: true });
    await Promise.all(busy);
    await alone.close();
  });

  it("a wrong password is refused, and no error shows one", async () => {
    const wrong = url.replace(POSTGRES_PASSWORD, "another-secret");
    const refused = await AddressConnection.open(wrong, AT, SOON.timeoutMs);
    const error: unknown = await refused.query("SELECT 1", [], SOON).catch((each) => each);
    expect(String(error)).toMatch(/did not accept the user or password/);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/another-secret/);
    await refused.close();
  });

  it("a pool of the caller's is used as it is and never closed", async () => {
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const given = new GivenConnection(pool, "zae_limiter");
    expect(await given.query("SELECT $1::text AS t", ["a"], SOON)).toEqual([{ t: "a" }]);
    await given.close();
    await expect(given.query("SELECT 1", [], SOON)).rejects.toThrow(/were closed/);
    expect((await pool.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    await pool.end();
  });

  it("a single client is refused, because its transactions would undo grants", async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const client = await pool.connect();
    expect(() => new GivenConnection(client, "a")).toThrow(/expected a pool, got a single client/);
    client.release();
    await pool.end();
    expect(() => new GivenConnection(new pg.Client(url), "a")).toThrow(/expected a pool/);
    expect(() => new GivenConnection({} as never, "a")).toThrow(
      /query, unsafe or \$queryRawUnsafe/,
    );
  });
});

describePostgres("a server that fails", () => {
  let server: PostgresServer;
  let own: AddressConnection;
  beforeAll(async () => {
    server = await PostgresServer.start();
    own = await AddressConnection.open(server.url, AT, SOON.timeoutMs);
  });
  afterAll(async () => {
    await own.close();
    await server.remove();
  });

  async function failure(text: string, timeoutMs: number): Promise<RateLimiterUnavailable> {
    const error: unknown = await own.query(text, [], { timeoutMs }).catch((each) => each);
    expect(error).toBeInstanceOf(RateLimiterUnavailable);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(POSTGRES_PASSWORD);
    return error as RateLimiterUnavailable;
  }

  /** Waits until the server is about a statement. */
  async function works(statement: string): Promise<void> {
    const text = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = $1";
    const found = () => own.query(text, [statement], SOON);
    await expect.poll(found, { timeout: SOON.timeoutMs }).toHaveLength(1);
  }

  it("stopped, it wrote nothing; started again, it is used again", async () => {
    await own.query("SELECT 1", [], SOON);
    await server.stop();
    expect(await failure("SELECT 1", SOON.timeoutMs)).toMatchObject({ nothingWritten: true });
    await server.start();
    expect(await own.query("SELECT 'again' AS t", [], SOON)).toEqual([{ t: "again" }]);
  });

  it("stopped while it works, the outcome is unknown", async () => {
    const working = failure(ENDLESS, LONG.timeoutMs);
    await works(ENDLESS);
    await server.stop();
    expect(await working).toMatchObject({ reason: "server", nothingWritten: false });
    await server.start();
  });

  it("killed while it works, the outcome is unknown", async () => {
    const working = failure(ENDLESS, LONG.timeoutMs);
    await works(ENDLESS);
    await server.kill();
    expect(await working).toMatchObject({ reason: "network", nothingWritten: false });
    await server.start();
    expect(await own.query("SELECT 'again' AS t", [], SOON)).toEqual([{ t: "again" }]);
  });

  it("paused, a call ends by its deadline; resumed, the next is answered", async () => {
    await own.query("SELECT 1", [], SOON);
    server.pause();
    expect(await failure("SELECT 1", 50)).toMatchObject({ reason: "timeout" });
    server.resume();
    expect(await own.query("SELECT 'again' AS t", [], SOON)).toEqual([{ t: "again" }]);
  });
});
