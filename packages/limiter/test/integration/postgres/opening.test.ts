import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { postgres } from "@zae-limiter/limiter/repository/stores/postgres-pool.ts";
import { parseStoreUrl, placeName, urlOf } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD } from "@zae-limiter/test-engines/postgres-server.ts";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";

const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { calls: 1 } };

describePostgres("opening", (server) => {
  const { schema, url } = ownSchema(server);
  let pool: pg.Pool;
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: server, max: 3 });
    await Repository.migrate(url);
  });
  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  it("an address without a schema says how to create one, and creates nothing", async () => {
    const other = ownSchema(server);
    const opened = Repository.open(other.url);
    await expect(opened).rejects.toMatchObject({ code: "ZAEL_INFRASTRUCTURE_NOT_FOUND" });
    await expect(opened).rejects.toThrow(/is missing.*db migrate.*db sql/s);
    const { rows } = await pool.query("SELECT to_regnamespace($1) AS there", [other.schema]);
    expect(rows).toEqual([{ there: null }]);
  });

  it("processes and pools of one schema share their buckets", async () => {
    await using byAddress = await Repository.open(url, { namespace: "shared" });
    await using byPool = await Repository.over(postgres(pool, { schema }), { namespace: "shared" });
    await byAddress.limits.setSystem(["calls:2/day"]);
    await new RateLimiter(byAddress).acquire(REQUEST);
    await new RateLimiter(byPool).acquire(REQUEST);
    const refused = new RateLimiter(byAddress).acquire(REQUEST);
    await expect(refused).rejects.toMatchObject({ code: "ZAEL_RATE_LIMIT_EXCEEDED" });
  });

  it("a pool of the caller's is still open after the repository is closed", async () => {
    const repo = await Repository.over(postgres(pool, { schema, durable: true }));
    await repo.close();
    expect((await pool.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
  });

  it("a client inside a transaction is refused, whatever it is wrapped in", async () => {
    const client = await pool.connect();
    await client.query("BEGIN");
    const hidden = { query: (text: string, values?: unknown[]) => client.query(text, values) };
    const opened = Repository.over(postgres(hidden, { schema }));
    await expect(opened).rejects.toThrow(/got a client inside a transaction/);
    await client.query("ROLLBACK");
    client.release();
  });

  it("names, addresses for messages and errors show neither user nor password", async () => {
    const location = parseStoreUrl(url);
    expect(placeName(location)).not.toMatch(new RegExp(`${POSTGRES_PASSWORD}|tester`));
    expect(urlOf(location)).toContain(POSTGRES_PASSWORD);
    await using repo = await Repository.open(url);
    expect(repo[INTERNALS].storeName).not.toMatch(new RegExp(`${POSTGRES_PASSWORD}|tester`));
    const secret = "p%40ss-word-1";
    for (const wrong of [
      `postgres://u:${secret}@host:99999/db`,
      `postgres://u:${secret}@host`,
      `postgres://u:${secret}@host/db?unknown=1`,
      `postgres://u:${secret}@host/db?schema=`,
      `postgres:u:${secret}@host/db`,
      `postgress://u:${secret}@host/db`,
      `postgres://u:p/${secret}@host/db`,
      `postgres://host/db?password=${secret}`,
      `postgres://u:${secret}@host/db?schema=Not-One`,
      `postgres://u:${secret}@127.0.0.1:1/db`,
    ]) {
      const error: unknown = await Repository.open(wrong).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(inspect(error, { depth: 9, showHidden: true }), wrong).not.toMatch(/ss-word-1/);
    }
  });

  it("a wrong option is refused", async () => {
    await expect(Repository.open(url, { region: "eu-west-1" })).rejects.toThrow(/DynamoDB only/);
    await expect(Repository.open("memory:", { durable: true })).rejects.toThrow(/PostgreSQL only/);
    const wrong = { grants: "a" } as never;
    await expect(Repository.migrate(url, wrong)).rejects.toThrow(/grants/);
    expect(() => postgres(pool, { shema: "a" } as never)).toThrow(/expected schema or durable/);
  });
});
