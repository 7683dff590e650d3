/** PostgreSQL by a pool of yours: `zae-limiter/postgres`. */

import { checkFlag, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { GivenConnection, type PostgresPool } from "../../storage/postgres/connection.ts";
import { checkSchema, DEFAULT_SCHEMA } from "../../storage/postgres/schema/names.ts";
import { openOn, refuseTransaction } from "./open-postgres.ts";
import { OPENS, type OpenableStore } from "./opened-store.ts";

export type { PostgresPool } from "../../storage/postgres/connection.ts";
export type { OpenableStore } from "./opened-store.ts";

/** How a pool of yours is used. */
export interface PostgresPoolOptions {
  /** The schema with the tables. Default `zae_limiter`. */
  readonly schema?: string;
  /** An acquire waits until its write is on the disk of the server. Default false. */
  readonly durable?: boolean;
}

/**
 * Makes a store of a pool of yours: pg, Neon and PGlite as they are, postgres.js and Prisma too,
 * any other by `{ query: async (text, values) => ({ rows }) }`. The pool is never configured and
 * never closed. A client inside a transaction is refused: its rollback would undo grants.
 *
 * @example
 * ```ts
 * import { postgres } from 'zae-limiter/postgres';
 * const pool = { query: async () => ({ rows: [] }) }; // new pg.Pool()
 * const store = postgres(pool, { schema: 'limits' }); // Repository.over(store)
 * console.log(typeof store); // object
 * ```
 */
export function postgres(pool: PostgresPool, options: PostgresPoolOptions = {}): OpenableStore {
  const { schema = DEFAULT_SCHEMA, durable = false, ...rest } = options;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    const reason = `expected schema or durable, got ${show(unknown)}`;
    throw new ValidationError("options", unknown, reason);
  }
  checkFlag("durable", durable);
  const connected = () => new GivenConnection(pool, checkSchema(schema));
  connected();
  return {
    [OPENS]: async (openOptions) => {
      const connection = connected();
      await refuseTransaction(connection, openOptions);
      return openOn(connection, { ...openOptions, durable });
    },
  };
}
