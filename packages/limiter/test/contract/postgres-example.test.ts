/** The example for PostgreSQL runs as users run it. */

import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import pg from "pg";
import { expect, it, vi } from "vitest";

const EXAMPLE = new URL("../../../../examples/postgres/index.js", import.meta.url).href;

describePostgres("the example", (url) => {
  it("the example for PostgreSQL shares a limit between two machines", async () => {
    const { schema } = ownSchema(url);
    const log = vi.spyOn(console, "log").mockReturnValue();
    vi.stubEnv("DATABASE_URL", url);
    vi.stubEnv("LIMITER_SCHEMA", schema);
    const { granted } = (await import(/* @vite-ignore */ EXAMPLE)) as { granted: boolean[] };
    vi.unstubAllEnvs();
    log.mockRestore();
    expect(granted).toEqual([true, true, true, false, false, false]);
    const pool = new pg.Pool({ connectionString: url });
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });
});
