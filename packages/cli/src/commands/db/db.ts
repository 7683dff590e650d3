/** `db`: the schema of a store on PostgreSQL. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { migrateStore, placeName } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { type Group, leaf, type OptionSpec, UsageError } from "../../frame/command.ts";
import { type StoreOptions, storePlace } from "../../store/store-options.ts";
import { wholeNumber } from "../../terminal/numbers.ts";

const VERSION_MAX = 1_000_000;

interface RightsOptions {
  readonly grant?: string;
  readonly rls?: boolean;
}

const RIGHTS: readonly OptionSpec[] = [
  { flags: "--grant <role>", text: "let this role use the schema, and not change it" },
  { flags: "--rls", text: "turn row level security on; with --grant, the role gets a policy" },
];

const migrate = leaf<StoreOptions & RightsOptions>({
  name: "migrate",
  summary: "creates the schema, or brings it to this release",
  details:
    "All of it is one transaction, and processes that migrate at once wait for each other. A " +
    "schema that is newer than this release is refused. Old and new processes run side by side.",
  store: "change",
  namespaced: false,
  options: RIGHTS,
  examples: [
    "db migrate --url postgres://owner@db/main",
    "db migrate --url postgres://owner@db/main?schema=limits --grant app",
  ],
  json: { store: "text", from: "number", to: "number" },
  run: async ({ options, terminal }) => {
    const { location, options: connection } = storePlace(options, terminal);
    const { grant, rls } = options;
    const { timeoutMs } = connection;
    const migrated = await migrateStore(location, defined({ grant, rls, timeoutMs }));
    const store = placeName(location);
    if (migrated === undefined) {
      throw new UsageError(`${store} has no schema to migrate: --url names one on PostgreSQL`);
    }
    const { from, to } = migrated;
    return { json: () => ({ store, from, to }), text: () => outcome(store, from, to) };
  },
});

const sql = leaf<RightsOptions & { from: number; schema?: string }>({
  name: "sql",
  summary: "prints the statements of `db migrate`, for the owner of a database",
  details:
    "The text is one transaction, for psql, Flyway, Prisma, Drizzle or Supabase. Leave out its " +
    "first and last line where the tool begins a transaction itself.",
  options: [
    {
      flags: "--from <version>",
      text: "version that the schema has; 0: there is none",
      default: 0,
      parse: wholeNumber(0, VERSION_MAX),
    },
    { flags: "--schema <name>", text: "name of the schema (default: zae_limiter)" },
    ...RIGHTS,
  ],
  examples: ["db sql | psql postgres://owner@db/main", "db sql --schema limits --grant app --rls"],
  json: { schema: "text", from: "number", to: "number", sql: "text" },
  run: async ({ options }) => {
    const { checkRole, checkSchema, DEFAULT_SCHEMA } = await import(
      "@zae-limiter/limiter/storage/postgres/schema/names.ts"
    );
    const { schemaText } = await import(
      "@zae-limiter/limiter/storage/postgres/schema/schema-text.ts"
    );
    const { SCHEMA_VERSION } = await import(
      "@zae-limiter/limiter/storage/postgres/schema/migrations.ts"
    );
    const { from, grant, rls } = options;
    const schema = checkSchema(options.schema ?? DEFAULT_SCHEMA);
    if (grant !== undefined) checkRole(grant);
    if (from > SCHEMA_VERSION) {
      throw new UsageError(`--from is at most ${SCHEMA_VERSION}, the version of this release`);
    }
    const text = `BEGIN;\n\n${schemaText({ schema, from, grant, rls })}\n\nCOMMIT;`;
    return {
      json: () => ({ schema, from, to: SCHEMA_VERSION, sql: text }),
      text: () => text,
    };
  },
});

export const db: Group = {
  name: "db",
  summary: "the schema of a store on PostgreSQL",
  commands: [migrate, sql],
};

function outcome(store: string, from: number, to: number): string {
  if (from === to) return `✓ ${store} has version ${to} already`;
  return from === 0
    ? `✓ Created the schema of ${store}, version ${to}`
    : `✓ Brought ${store} from version ${from} to ${to}`;
}
