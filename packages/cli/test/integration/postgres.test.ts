/** The command line on PostgreSQL: every kind of command, and no output with the password. */

import { AddressConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD } from "@zae-limiter/test-engines/postgres-server.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, expect, it } from "vitest";

describePostgres("the command line", (server) => {
  const { schema, url } = ownSchema(server);
  afterAll(async () => {
    const at = { place: "postgres://test", schema };
    const connection = await AddressConnection.open(server, at, 20_000);
    await connection.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`, [], { timeoutMs: 20_000 });
    await connection.close();
  });

  async function run(...words: string[]) {
    const { code, out, err } = await cli([...words, "--url", url]);
    expect(out + err).not.toContain(POSTGRES_PASSWORD);
    return { code, text: out + err };
  }

  it("commands name both ways to create the schema, and db migrate creates it", async () => {
    for (const command of ["check", "status", "version"]) {
      const missing = await run(command);
      expect(missing.code).toBe(1);
      expect(missing.text).toMatch(/is missing.*db migrate.*db sql/s);
    }
    expect((await run("entity", "list")).text).toMatch(/db migrate/);
    expect(await run("db", "migrate")).toMatchObject({ code: 0 });
    expect((await run("db", "migrate")).text).toMatch(/has version \d+ already/);
  });

  it("limits, acquires, usage, audit and namespaces work as elsewhere", async () => {
    expect((await run("system", "set-limits", "-l", "rpd:5/day")).code).toBe(0);
    expect((await run("entity", "create", "key-1")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "-c", "rpd=2")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "-c", "rpd=4")).code).toBe(3);
    expect((await run("peek", "key-1", "gpt-4")).text).toContain("rpd");
    expect((await run("usage", "list", "-r", "gpt-4")).text).toContain("key-1");
    expect((await run("audit", "list")).text).toContain("entity_created");
    expect((await run("namespace", "register", "tenant-a")).code).toBe(0);
    expect((await run("status")).text).toContain("Ready");
    expect((await run("check")).text).toContain("Compatible");
    expect(await run("aggregate")).toMatchObject({
      code: 0,
      text: expect.stringContaining("Not needed"),
    });
    expect((await run("entity", "delete", "key-1", "--yes")).code).toBe(0);
  });

  it("a hint that repeats the address hides its password", async () => {
    const { code, text } = await run("peek", "key-1", "gpt-4", "-N", "nowhere");
    expect(code).not.toBe(0);
    expect(text).toContain("…@127.0.0.1");
  });

  it("a store without a schema has nothing to migrate", async () => {
    const { code, err } = await cli(["db", "migrate", "--url", "memory:"]);
    expect([code, err]).toEqual([2, expect.stringContaining("no schema to migrate")]);
  });

  it("the printed statements name schema and role, and a wrong name is refused", async () => {
    const { out } = await cli(["db", "sql", "--schema", "limits", "--grant", "app", "--rls"]);
    expect(out).toMatch(/^BEGIN;.*CREATE SCHEMA "limits".*TO "app".*POLICY.*COMMIT;\n$/s);
    expect((await cli(["db", "sql", "--schema", "A; DROP"])).code).not.toBe(0);
    expect((await cli(["db", "sql", "--from", "99"])).err).toContain("the version of this release");
    const { out: json } = await cli(["db", "sql", "--json"]);
    expect(JSON.parse(json)).toMatchObject({ schema: "zae_limiter", from: 0 });
  });
});
