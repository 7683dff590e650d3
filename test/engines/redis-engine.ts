/** The Valkey server of a test run. */

import { REDIS_PASSWORD, RedisServer } from "./redis-server.ts";

/** The server of a run, or why there is none. */
export type RedisEngine =
  | { readonly url: string; readonly skipped?: undefined }
  | { readonly url?: undefined; readonly skipped: string };

declare module "vitest" {
  interface ProvidedContext {
    redis: RedisEngine;
  }
}

/**
 * Starts the server of a run: none where `ZAEL_TEST_REDIS_URL` names one of yours, on which every
 * test has a prefix of its own.
 */
export async function startRedis(): Promise<{
  readonly engine: RedisEngine;
  stop(): Promise<void>;
}> {
  const stop = () => Promise.resolve();
  const yours = process.env.ZAEL_TEST_REDIS_URL;
  if (yours !== undefined && yours !== "") return { engine: { url: yours }, stop };
  if (process.env.ZAEL_QUICK !== undefined) {
    return { engine: { skipped: "npm run test:quick starts no engine" }, stop };
  }
  try {
    const server = await RedisServer.start({ password: REDIS_PASSWORD });
    return { engine: { url: server.url }, stop: () => server.remove() };
  } catch (error) {
    const skipped = (error as Error).message.split("\n", 1).join("");
    console.warn(`skipped redis: ${skipped}`);
    return { engine: { skipped }, stop };
  }
}
