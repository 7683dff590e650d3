/** A schema of its own on the PostgreSQL server of a test run. */

import {
  AddressConnection,
  type PostgresConnection,
} from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { migratePostgres } from "@zae-limiter/limiter/storage/postgres/migrate.ts";
import { ownSchema } from "@zae-limiter/test-engines/postgres.ts";

const SOON = { timeoutMs: 20_000 };
/** A thousand calls may wait for a connection, on a machine that has much else to do. */
const CONNECT_MS = 300_000;

export interface TestSchema {
  readonly schema: string;
  /** The address of the schema. */
  readonly url: string;
  /** A connection that is not the store's. */
  readonly connection: PostgresConnection;
  /** Opens another connection to the schema. */
  connect(): Promise<PostgresConnection>;
  /** Removes the schema, and closes the connection. */
  drop(): Promise<void>;
}

/** Creates a schema with the tables and functions of this release. */
export async function newSchema(server: string): Promise<TestSchema> {
  const { schema, url } = ownSchema(server);
  const connect = () =>
    AddressConnection.open(server, { place: "postgres://test", schema }, CONNECT_MS);
  const connection = await connect();
  await migratePostgres(connection, SOON);
  const drop = async () => {
    await connection.query(`DROP SCHEMA ${schema} CASCADE`, [], SOON);
    await connection.close();
  };
  return { schema, url, connection, connect, drop };
}
