import { AddressConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import {
  checkSchemaVersion,
  migratePostgres,
} from "@zae-limiter/limiter/storage/postgres/migrate.ts";
import type { Migration } from "@zae-limiter/limiter/storage/postgres/schema/migrations.ts";
import { schemaText } from "@zae-limiter/limiter/storage/postgres/schema/schema-text.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { afterEach, expect, it } from "vitest";

const SOON = { timeoutMs: 20_000 };

const FIRST: Migration = {
  version: 1,
  reason: "a table",
  clientMin: 1,
  sql: (schema) =>
    `CREATE TABLE ${schema}.things (n int); INSERT INTO ${schema}.things VALUES (1);`,
};
const SECOND: Migration = {
  version: 2,
  reason: "a function that the first does not have",
  clientMin: 1,
  sql: (schema) => `CREATE FUNCTION ${schema}.f_2() RETURNS int LANGUAGE sql AS 'SELECT 2';`,
};
const THIRD: Migration = {
  version: 3,
  reason: "an end to clients of the first",
  clientMin: 3,
  sql: (schema) => `DROP FUNCTION ${schema}.f_2();`,
};

describePostgres("migrations", (url) => {
  const cleaning: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const clean of cleaning.splice(0).reverse()) await clean();
  });

  async function connect(schema: string, address = url): Promise<AddressConnection> {
    const at = { place: "postgres://here/db", schema };
    const connection = await AddressConnection.open(address, at, SOON.timeoutMs);
    cleaning.push(() => connection.close());
    return connection;
  }

  async function newSchema(): Promise<AddressConnection> {
    const { schema } = ownSchema(url);
    const connection = await connect(schema);
    cleaning.push(() => connection.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`, [], SOON));
    return connection;
  }

  /** Adds a role that may log in; returns it and its address. */
  async function newRole(connection: AddressConnection) {
    const role = `role-${connection.schema.slice(2, 12)}`;
    await connection.query(`CREATE ROLE "${role}" LOGIN PASSWORD 'p'`, [], SOON);
    cleaning.push(async () => {
      await connection.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`, [], SOON);
    });
    const address = new URL(url);
    address.username = role;
    address.password = "p";
    return { role, address: address.href };
  }

  it("a new schema is created, a known one brought up, a whole one left alone", async () => {
    const own = await newSchema();
    expect(await migratePostgres(own, SOON, [FIRST])).toEqual({ from: 0, to: 1 });
    expect(await migratePostgres(own, SOON, [FIRST, SECOND])).toEqual({ from: 1, to: 2 });
    expect(await migratePostgres(own, SOON, [FIRST, SECOND])).toEqual({ from: 2, to: 2 });
    expect(await own.query(`SELECT n::text AS n FROM ${own.schema}.things`, [], SOON)).toEqual([
      { n: "1" },
    ]);
  });

  it("processes that migrate at once do it once", async () => {
    const own = await newSchema();
    const all = await Promise.all([
      migratePostgres(own, SOON, [FIRST, SECOND]),
      migratePostgres(own, SOON, [FIRST, SECOND]),
      migratePostgres(own, SOON, [FIRST, SECOND]),
    ]);
    expect(all.map(({ to }) => to)).toEqual([2, 2, 2]);
    expect(await own.query(`SELECT n::text AS n FROM ${own.schema}.things`, [], SOON)).toHaveLength(
      1,
    );
  });

  it("a migration that fails leaves nothing behind", async () => {
    const own = await newSchema();
    const broken = { ...SECOND, sql: () => "SELECT 1 / 0;" };
    await expect(migratePostgres(own, SOON, [FIRST, broken])).rejects.toThrow(/22012/);
    const [row] = await own.query(
      `SELECT to_regnamespace('${own.schema}')::text AS there`,
      [],
      SOON,
    );
    expect(row).toEqual({ there: null });
    expect(await migratePostgres(own, SOON, [FIRST])).toEqual({ from: 0, to: 1 });
  });

  it("a newer schema is not migrated, and used only as long as it allows it", async () => {
    const own = await newSchema();
    await migratePostgres(own, SOON, [FIRST, SECOND]);
    await expect(migratePostgres(own, SOON, [FIRST])).rejects.toThrow(/newer than this release/);
    await expect(checkSchemaVersion(own, SOON, [FIRST])).resolves.toBeUndefined();
    await migratePostgres(own, SOON, [FIRST, SECOND, THIRD]);
    await expect(checkSchemaVersion(own, SOON, [FIRST])).rejects.toThrow(/update the package/);
  });

  it("a missing or an old schema is named with both ways to create it", async () => {
    const own = await newSchema();
    const missing = checkSchemaVersion(own, SOON, [FIRST]);
    await expect(missing).rejects.toThrow(/is missing.*db migrate.*db sql --schema t_/s);
    await migratePostgres(own, SOON, [FIRST]);
    const old = checkSchemaVersion(own, SOON, [FIRST, SECOND]);
    await expect(old).rejects.toThrow(/has version 1 of 2.*db migrate/s);
  });

  it("a role without rights is told so, and a grant lets it use but not change", async () => {
    const own = await newSchema();
    await migratePostgres(own, SOON, [FIRST]);
    const { role, address } = await newRole(own);
    const theirs = await connect(own.schema, address);
    await expect(checkSchemaVersion(theirs, SOON, [FIRST])).rejects.toThrow(/--grant <role>/);
    await migratePostgres(own, { ...SOON, grant: role }, [FIRST]);
    await checkSchemaVersion(theirs, SOON, [FIRST]);
    await theirs.query(`UPDATE ${own.schema}.things SET n = 2`, [], SOON);
    const drop = theirs.query(`UPDATE ${own.schema}.schema_version SET version = 9`, [], SOON);
    await expect(drop).rejects.toThrow(/may not use/);
  });

  it("with row security, a role sees rows by its policy, and without one is told so", async () => {
    const own = await newSchema();
    const { role, address } = await newRole(own);
    const theirs = await connect(own.schema, address);
    await migratePostgres(own, { ...SOON, grant: role }, [FIRST]);
    await migratePostgres(own, { ...SOON, rls: true }, [FIRST]);
    await expect(checkSchemaVersion(theirs, SOON, [FIRST])).rejects.toThrow(/shows this user no/);
    await migratePostgres(own, { ...SOON, rls: true, grant: role }, [FIRST]);
    await checkSchemaVersion(theirs, SOON, [FIRST]);
    expect(await theirs.query(`SELECT 1 FROM ${own.schema}.things`, [], SOON)).toHaveLength(1);
  });

  it("the printed text does the same, and refuses a schema of another version", async () => {
    const own = await newSchema();
    const { schema } = own;
    const text = `BEGIN; ${schemaText({ schema, from: 0 }, [FIRST])} COMMIT;`;
    await own.query(text, [], SOON);
    await checkSchemaVersion(own, SOON, [FIRST]);
    await expect(own.query(text, [], SOON)).rejects.toThrow(/has version 1, and this text begins/);
    await own.query("ROLLBACK", [], SOON);
    await own.query(schemaText({ schema, from: 1 }, [FIRST, SECOND]), [], SOON);
    await checkSchemaVersion(own, SOON, [FIRST, SECOND]);
  });
});
