/** The PostgreSQL server of a test run. */

import { PostgresServer } from "./postgres-server.ts";
import { type ServerEngine, startServer } from "./server-engine.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgres: ServerEngine;
  }
}

/** Starts the server of a run; one of yours gets schemas of its own, and is left alone. */
export function startPostgres() {
  const { ZAEL_TEST_POSTGRES_URL: yours } = process.env;
  return startServer("postgres", yours, () => PostgresServer.start());
}
