/** `postgres://<host>/<database>`, a schema on PostgreSQL. Opening one never creates it. */

import { FLAG } from "../../domain/options.ts";
import type { OpenOptions, PostgresOptions } from "../options.ts";
import type { OpenOptionTable } from "./open-option.ts";
import type { StoreAddress, StoreKind, StoreLocation } from "./store-kind.ts";
import { DURABLE_USAGE, usageOption } from "./usage-option.ts";

const NAME = "postgres";

/** A schema on PostgreSQL. */
export interface SchemaLocation extends StoreLocation {
  readonly kind: typeof NAME;
  /** The address for `pg`, with its credentials. */
  readonly connection: string;
  /** The address for messages: host, port and database. */
  readonly place: string;
  /** The default one when `undefined`. */
  readonly schema: string | undefined;
}

const OPTIONS = {
  ...usageOption(DURABLE_USAGE),
  durable: {
    check: FLAG,
    default: false,
    doc: "`true`: an acquire waits until its write is on the disk of the server",
  },
} as const satisfies OpenOptionTable<Pick<PostgresOptions, "usage" | "durable">>;

export const postgres: StoreKind<SchemaLocation, OpenOptions & PostgresOptions> = {
  name: NAME,
  title: "PostgreSQL",
  schemes: [NAME, "postgresql"],
  form: "postgres://<host>/<database>",
  parameters: {
    schema: "<schema>",
    // These are for the connection, and `pg` reads them.
    sslmode: "<mode>",
    sslrootcert: "<file>",
    sslcert: "<file>",
    sslkey: "<file>",
    channel_binding: "<mode>",
  },
  options: OPTIONS,
  traits: { isShared: true, createsItself: true, writesPerPartition: undefined },
  parse: (address) => {
    const { schema, ...connecting } = address.parameters;
    const url = urlIn(address);
    const place = `postgres://${url.host === "" ? "localhost" : url.host}${url.pathname}`;
    for (const [name, value] of Object.entries(connecting)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const { namespace } = address;
    return { kind: NAME, connection: url.href, place, schema, namespace };
  },
  address: ({ connection, schema }) => {
    const url = new URL(connection);
    if (schema !== undefined) url.searchParams.set("schema", schema);
    return url.href;
  },
  describe: ({ place, schema }) => (schema === undefined ? place : `${place} (schema ${schema})`),
  open: async (location, options) => {
    const { openPostgres } = await import("./open-postgres.ts");
    return openPostgres(location, options);
  },
  migrate: async (location, options) => {
    const { migrateAt } = await import("./open-postgres.ts");
    return migrateAt(location, options);
  },
};

/** Returns the address without parameters; the error of a wrong one must not show its password. */
function urlIn({ place, refusal }: StoreAddress): URL {
  const text = `postgres:${place}`;
  if (!place.startsWith("//")) throw refusal("two slashes are missing after postgres:");
  if (!URL.canParse(text)) throw refusal("the host or port cannot be read");
  const url = new URL(text);
  if (!/^\/[^/]+$/.test(url.pathname)) {
    throw refusal("the name of a database is missing after the host");
  }
  return url;
}
