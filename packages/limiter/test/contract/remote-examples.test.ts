/** The examples for PostgreSQL and Redis run as users run them. */

import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import pg from "pg";
import { expect, it, vi } from "vitest";

/** Runs the example in a folder, and expects three of its six calls to pass. */
async function run(folder: string, variables: Readonly<Record<string, string>>): Promise<void> {
  const log = vi.spyOn(console, "log").mockReturnValue();
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const { href } = new URL(`../../../../examples/${folder}/index.js`, import.meta.url);
  const { granted } = (await import(/* @vite-ignore */ href)) as { granted: boolean[] };
  vi.unstubAllEnvs();
  log.mockRestore();
  expect(granted).toEqual([true, true, true, false, false, false]);
}

describePostgres("the example", (url) => {
  it("the example for PostgreSQL shares a limit between two machines", async () => {
    const { schema } = ownSchema(url);
    await run("postgres", { DATABASE_URL: url, LIMITER_SCHEMA: schema });
    const pool = new pg.Pool({ connectionString: url });
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });
});

describeRedis("the example", (url) => {
  it("the example for Redis shares a limit between two machines", async () => {
    const { prefix } = ownPrefix(url);
    await run("redis", { REDIS_URL: url, LIMITER_PREFIX: prefix });
    await removeKeys(url, prefix);
  });
});
