/** The PostgreSQL server of a test run. */

import { PostgresServer } from "./postgres-server.ts";

/** The server of a run, or why there is none. */
export type PostgresEngine =
  | { readonly url: string; readonly skipped?: undefined }
  | { readonly url?: undefined; readonly skipped: string };

declare module "vitest" {
  interface ProvidedContext {
    postgres: PostgresEngine;
  }
}

/**
 * Starts the server of a run: none where `ZAEL_TEST_POSTGRES_URL` names one of yours, which gets
 * schemas of its own and is otherwise left alone.
 */
export async function startPostgres(): Promise<{
  readonly engine: PostgresEngine;
  stop(): Promise<void>;
}> {
  const stop = () => Promise.resolve();
  const yours = process.env.ZAEL_TEST_POSTGRES_URL;
  if (yours !== undefined && yours !== "") return { engine: { url: yours }, stop };
  if (process.env.ZAEL_QUICK !== undefined) {
    return { engine: { skipped: "npm run test:quick starts no engine" }, stop };
  }
  try {
    const server = await PostgresServer.start();
    return { engine: { url: server.url }, stop: () => server.remove() };
  } catch (error) {
    const skipped = (error as Error).message.split("\n", 1).join("");
    console.warn(`skipped postgres: ${skipped}`);
    return { engine: { skipped }, stop };
  }
}
