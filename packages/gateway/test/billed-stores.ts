/** The stores that bills are compared on. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import pg from "pg";
import { afterAll, beforeAll, describe } from "vitest";

/** Opens a limiter. Its clock does not advance, but on servers that decide by their own. */
export type OpenLimiter = () => Promise<RateLimiter>;

/** Local DynamoDB shares the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/**
 * Runs a suite on memory, a file, and local DynamoDB; `isSlow`: a local DynamoDB that takes ten
 * times as long.
 */
export function describeBilled(
  title: string,
  suite: (open: OpenLimiter, isSlow: boolean) => void,
): void {
  const nowMs = Date.now();
  const clock = () => nowMs;
  describe(`${title} in memory`, () => {
    suite(() => RateLimiter.open("memory:", { clock }), false);
  });
  describe(`${title} in sqlite`, () => {
    let folder = "";
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "zae-limiter-bill-"));
    });
    afterAll(() => rmSync(folder, { recursive: true }));
    suite(() => RateLimiter.open(`sqlite:${join(folder, "limits.db")}`, { clock }), false);
  });
  describeEngines(title, ({ endpoint, name }) => {
    const table = newName();
    beforeAll(async () => {
      await createTable({ table, endpoint, stream: false });
      await (await Repository.createTable(table, { endpoint })).close();
    });
    afterAll(() => deleteTable({ table, endpoint }));
    const options = { clock, endpoint, timeoutMs: TIMEOUT_MS };
    const open = async () => new RateLimiter(await Repository.connect(table, options));
    suite(open, name === "dynamodb-local");
  });
}

/** Runs a suite on every store, also on those whose servers have clocks of their own. */
export function describeEveryStore(title: string, suite: (open: OpenLimiter) => void): void {
  describeBilled(title, suite);
  describePostgres(title, (url) => {
    const { schema, url: address } = ownSchema(url);
    beforeAll(() => Repository.migrate(address));
    afterAll(async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    });
    suite(() => RateLimiter.open(address, { timeoutMs: TIMEOUT_MS }));
  });
  describeRedis(title, (url) => {
    const { prefix, url: address } = ownPrefix(url);
    afterAll(() => removeKeys(url, prefix));
    suite(() => RateLimiter.open(address, { timeoutMs: TIMEOUT_MS }));
  });
}
