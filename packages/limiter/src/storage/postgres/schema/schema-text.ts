/**
 * The text that brings a schema to a version: `db migrate` sends it and `db sql` prints it. It is
 * one transaction, holds a lock of that transaction, and stops when the schema has another version
 * than the text begins with.
 */

import { MIGRATIONS, type Migration } from "./migrations.ts";
import { literal, quoted } from "./names.ts";

/** The error of a schema that has another version than the text begins with. */
export const OTHER_VERSION = "ZAEL1";

/** The first number of the advisory lock; the second is the schema. */
const LOCK = 0x7a61656c;

export interface SchemaTextOptions {
  readonly schema: string;
  /** The version that the schema has; 0: there is none. */
  readonly from: number;
  /** A role that may use the schema, and not change it. */
  readonly grant?: string | undefined;
  /** Whether rows are visible by policies only, as Supabase recommends. */
  readonly rls?: boolean | undefined;
}

/** Returns the statements, without `BEGIN` and `COMMIT`. */
export function schemaText(
  { schema, from, grant, rls = false }: SchemaTextOptions,
  migrations: readonly Migration[] = MIGRATIONS,
): string {
  const name = quoted(schema);
  const steps = migrations.filter(({ version }) => version > from);
  return [
    begin(schema, from),
    ...steps.map(({ version, reason, sql }) => `-- ${version}: ${reason}\n${sql(name).trim()}`),
    ...(steps.length === 0 ? [] : [end(name, steps)]),
    ...(rls ? [rowSecurity(schema)] : []),
    ...(grant === undefined ? [] : [rights(schema, grant, rls)]),
  ].join("\n\n");
}

function begin(schema: string, from: number): string {
  const name = quoted(schema);
  return `DO $zael$
DECLARE found int;
BEGIN
  PERFORM pg_advisory_xact_lock(${LOCK}, hashtext(${literal(schema)}));
  IF to_regnamespace(${literal(name)}) IS NULL THEN
    CREATE SCHEMA ${name};
  END IF;
  IF to_regclass(${literal(`${name}.schema_version`)}) IS NULL THEN
    CREATE TABLE ${name}.schema_version (
      one boolean PRIMARY KEY DEFAULT true CHECK (one),
      version int NOT NULL,
      client_min int NOT NULL
    );
    INSERT INTO ${name}.schema_version (version, client_min) VALUES (0, 0);
  END IF;
  SELECT version INTO found FROM ${name}.schema_version;
  IF found IS DISTINCT FROM ${from} THEN
    RAISE EXCEPTION 'The schema ${schema} has version %, and this text begins with ${from}', found
      USING ERRCODE = '${OTHER_VERSION}';
  END IF;
END $zael$;`;
}

function end(name: string, steps: readonly Migration[]): string {
  const { version, clientMin } = steps.at(-1) as Migration;
  return `UPDATE ${name}.schema_version SET version = ${version}, client_min = ${clientMin};`;
}

/** Returns what lets a role use the schema; with policies, also one for it on every table. */
function rights(schema: string, role: string, rls: boolean): string {
  const [name, to] = [quoted(schema), quoted(role)];
  const grants = `GRANT USAGE ON SCHEMA ${name} TO ${to};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name} TO ${to};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO ${to};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name} TO ${to};
REVOKE INSERT, UPDATE, DELETE ON ${name}.schema_version FROM ${to};`;
  if (!rls) return grants;
  const policy = `zae_limiter_${role}`.slice(0, 63);
  return `${grants}
${onEveryTable(
  schema,
  `EXECUTE format('DROP POLICY IF EXISTS %I ON %I.%I', ${literal(policy)}, ${literal(schema)}, each);
    EXECUTE format('CREATE POLICY %I ON %I.%I TO %I USING (true) WITH CHECK (true)',
      ${literal(policy)}, ${literal(schema)}, each, ${literal(role)});`,
)}`;
}

function rowSecurity(schema: string): string {
  return onEveryTable(
    schema,
    `EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', ${literal(schema)}, each);`,
  );
}

function onEveryTable(schema: string, statements: string): string {
  return `DO $zael$
DECLARE each name;
BEGIN
  FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = ${literal(schema)} LOOP
    ${statements}
  END LOOP;
END $zael$;`;
}
