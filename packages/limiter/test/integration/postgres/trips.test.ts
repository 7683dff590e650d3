/** The cost of calls on PostgreSQL: round trips, connections, and rows that no index notices. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { PostgresConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { expect, it } from "vitest";

const RESOURCE = "gpt-4";
const SOON = { timeoutMs: 20_000 };
const SLOW = { timeoutMs: 300_000, configCacheTtlSeconds: 1e6 };
/** Thousands of calls, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };
const CONSUME = { calls: 1, tokens: 10, units: 1 };
/** Nothing comes back while a test runs, however long the machine takes for it. */
const LIMITS = ["calls:1/day:1000", "tokens:1/day:100000", "units:1/day:5000"];

/** A limiter that counts its requests, and the processes of the server that answer them. */
class Counted {
  trips = 0;
  mostAtOnce = 0;
  #atOnce = 0;
  readonly limiter: RateLimiter;
  readonly repo: Repository;

  private constructor(repo: Repository) {
    this.repo = repo;
    this.limiter = new RateLimiter(repo);
  }

  static async open(connection: PostgresConnection, namespace: string): Promise<Counted> {
    let counted: Counted | undefined;
    const { place, schema } = connection;
    const counting: PostgresConnection = {
      place,
      schema,
      query: async (...call) => {
        counted?.begin();
        try {
          return await connection.query(...call);
        } finally {
          counted?.end();
        }
      },
      close: async () => undefined,
    };
    const table = new PostgresItemTable(counting);
    counted = new Counted(await Repository.over(table, { namespace, ...SLOW }));
    return counted;
  }

  begin(): void {
    this.trips += 1;
    this.#atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce);
  }

  end(): void {
    this.#atOnce -= 1;
  }

  async tripsOf(work: () => Promise<unknown>): Promise<number> {
    const before = this.trips;
    await work();
    return this.trips - before;
  }
}

describePostgres("the cost", (url) => {
  const schema = forSuite(() => newSchema(url));

  it.each([0, 1, 2])("a warm acquire below %i ancestors is one round trip", async (depth) => {
    const counted = await Counted.open(schema().connection, `depth-${depth}`);
    const { limiter, repo } = counted;
    await repo.limits.setSystem(LIMITS);
    for (let at = 0; at <= depth; at += 1) {
      const parent = at === 0 ? {} : { parentId: `e${at - 1}` };
      await repo.entities.create({ id: `e${at}`, cascade: true, ...parent });
    }
    const call = { entityId: `e${depth}`, resource: RESOURCE, consume: CONSUME };
    await limiter.acquire(call);
    expect(await counted.tripsOf(() => limiter.acquire(call))).toBe(1);
    const chain = await Promise.all(
      Array.from({ length: depth + 1 }, (_, at) => repo.buckets.list(`e${at}`)),
    );
    const tokens = chain.flat().filter(({ limitName }) => limitName === "tokens");
    expect(tokens.map(({ totalConsumed }) => totalConsumed)).toEqual(chain.map(() => 20));
    const lease = await limiter.acquire(call);
    expect(await counted.tripsOf(() => lease.commit())).toBe(0);
    const tooMuch = { ...call, consume: { calls: 1, tokens: 100_000 } };
    expect(await counted.tripsOf(() => limiter.tryAcquire(tooMuch))).toBe(1);
    const { granted } = await limiter.tryAcquire(tooMuch);
    expect(granted).toBe(false);
    await repo.close();
  });

  it("the first acquire of a bucket is five requests, with a parent seven", async () => {
    const counted = await Counted.open(schema().connection, "first");
    const { limiter, repo } = counted;
    await repo.limits.setSystem(LIMITS);
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "key", parentId: "team", cascade: true });
    const call = { entityId: "other", resource: RESOURCE, consume: CONSUME };
    await limiter.acquire(call);
    // Limits and link at once; not warm; rows with records; commit.
    const first = () => limiter.acquire({ ...call, entityId: "alone" });
    expect(await counted.tripsOf(first)).toBe(5);
    const chain = () => limiter.acquire({ ...call, entityId: "key" });
    expect(await counted.tripsOf(chain)).toBe(7);
    await repo.close();
  });

  it("totals, parts of other entities and adjustments of one bucket are one round trip", async () => {
    const counted = await Counted.open(schema().connection, "totals");
    const { limiter, repo } = counted;
    await repo.limits.setSystem(LIMITS);
    await repo.entities.create({ id: "team", cascade: true });
    await repo.entities.create({ id: "key", parentId: "team", cascade: true });
    await repo.limits.setEntity("key", ["calls:500"], { resource: TOTAL });
    await repo.limits.setEntity("team", ["calls:900"], { resource: TOTAL });
    const call = { entityId: "key", resource: RESOURCE, consume: CONSUME };
    const more = {
      ...call,
      also: [{ entityId: "other", resource: "search", consume: { calls: 1 } }],
    };
    for (const each of [call, more]) {
      await limiter.acquire(each);
      expect(await counted.tripsOf(() => limiter.acquire(each))).toBe(1);
    }
    const alone = { entityId: "alone", resource: RESOURCE, consume: CONSUME };
    await limiter.acquire(alone);
    const lease = await limiter.acquire(alone);
    lease.adjust({ tokens: 5 });
    expect(await counted.tripsOf(() => lease.commit())).toBe(1);
    await repo.close();
  });

  it(
    "calls that wait for one bucket share requests, and a thousand need four connections",
    LONG,
    async () => {
      const alone = await schema().connect();
      const counted = await Counted.open(alone, "hot");
      const { limiter, repo } = counted;
      await repo.limits.setSystem(["rpm:1000000"]);
      const call = { entityId: "hot", resource: RESOURCE, consume: { rpm: 1 } };
      await limiter.acquire(call);
      const calls = 64 * 20;
      const trips = await counted.tripsOf(() =>
        Promise.all(
          Array.from({ length: 64 }, async () => {
            for (let left = calls / 64; left > 0; left -= 1) await limiter.acquire(call);
          }),
        ),
      );
      expect(trips / calls).toBeLessThanOrEqual(0.05);
      const keys = Array.from({ length: 1000 }, (_, at) => ({ ...call, entityId: `key-${at}` }));
      const pids = new Set<unknown>();
      const spying = async () => {
        const [row] = await alone.query("SELECT pg_backend_pid()::text AS pid", [], SLOW);
        pids.add(row?.pid);
      };
      await Promise.all(keys.flatMap((each) => [limiter.acquire(each), spying()]));
      expect(counted.mostAtOnce).toBeGreaterThan(100);
      expect(pids.size).toBeLessThanOrEqual(4);
      await repo.close();
      await alone.close();
    },
  );

  it("another process notices a change of limits with its next acquire", async () => {
    const [one, other] = await Promise.all([
      Counted.open(schema().connection, "changes"),
      Counted.open(schema().connection, "changes"),
    ]);
    await one.repo.limits.setSystem(["rpm:1000"]);
    const call = { entityId: "key", resource: RESOURCE, consume: { rpm: 1 } };
    for (const { limiter } of [one, other, one, other]) await limiter.acquire(call);
    await one.repo.limits.setSystem(["rpm:3"]);
    const { granted } = await other.limiter.tryAcquire({ ...call, consume: { rpm: 4 } });
    expect(granted).toBe(false);
    await Promise.all([one.repo.close(), other.repo.close()]);
  });

  it("acquires replace their rows in place", LONG, async () => {
    // A statement of another test that lasts would keep the rows that it may still see.
    const server = await PostgresServer.start();
    const own = await newSchema(server.url);
    const connection = await own.connect();
    const { repo, limiter } = await Counted.open(connection, "rows");
    await repo.limits.setSystem(["rpm:1000000", "tpm:100000000"]);
    const calls = Array.from({ length: 50 }, (_, at) => ({
      entityId: `key-${at}`,
      resource: RESOURCE,
      consume: { rpm: 1, tpm: 3 },
    }));
    const rounds = casesOf(20_000) / calls.length;
    for (let round = 0; round <= rounds; round += 1) {
      await Promise.all(calls.map((call) => limiter.acquire(call)));
    }
    await repo.close();
    // Connections that end report what they have counted.
    await connection.close();
    const seen = { all: 0, inPlace: 0 };
    const text = `SELECT n_tup_upd::text AS all, n_tup_hot_upd::text AS hot
      FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'items'`;
    await expect
      .poll(
        async () => {
          const [row] = await own.connection.query(text, [own.schema], SOON);
          Object.assign(seen, { all: Number(row?.all), inPlace: Number(row?.hot) });
          return seen.all;
        },
        { timeout: 20_000 },
      )
      .toBeGreaterThanOrEqual(rounds * calls.length);
    expect(seen.inPlace / seen.all).toBeGreaterThanOrEqual(0.99);
    await own.drop();
    await server.remove();
  });
});
