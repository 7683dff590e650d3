/** The Valkey server of a test run. */

import { REDIS_PASSWORD, RedisServer } from "./redis-server.ts";
import { type ServerEngine, startServer } from "./server-engine.ts";

declare module "vitest" {
  interface ProvidedContext {
    redis: ServerEngine;
  }
}

/** Starts the server of a run; on one of yours every test has a prefix of its own. */
export function startRedis() {
  const { ZAEL_TEST_REDIS_URL: yours } = process.env;
  return startServer("redis", yours, () => RedisServer.start({ password: REDIS_PASSWORD }));
}
