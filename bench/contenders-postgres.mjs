/** Limiters, and a statement that decides nothing, on one PostgreSQL server. */

import pg from "pg";
import { RateLimiterPostgres } from "rate-limiter-flexible";
import { RateLimiter } from "./dist/index.js";

/** Opens a contender: `take(name)` is one decision. Connections are as many as ours has. */
export const CONTENDERS = {
  ours: async (url) => {
    const limiter = await RateLimiter.open(url, { timeoutMs: 60_000, configCacheTtlSeconds: 3600 });
    await limiter.repository.limits.setSystem(["rpm:1000000000"]);
    return {
      take: (entityId) => limiter.acquire({ entityId, resource: "api", consume: { rpm: 1 } }),
      close: () => limiter.close(),
    };
  },
  rival: async (url, connections) => {
    const pool = new pg.Pool({ connectionString: url, max: connections });
    const tableName = "rival";
    const options = { storeClient: pool, tableName, points: 1_000_000_000, duration: 3600 };
    const rival = await new Promise((resolve, reject) => {
      const made = new RateLimiterPostgres(options, (error) =>
        error ? reject(new Error("no table", { cause: error })) : setImmediate(() => resolve(made)),
      );
    });
    return { take: (name) => rival.consume(name), close: () => pool.end() };
  },
  update: async (url, connections) => {
    const pool = new pg.Pool({ connectionString: url, max: connections });
    await pool.query("CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, n bigint)");
    const text = "INSERT INTO bare VALUES ($1, 0) ON CONFLICT DO NOTHING";
    await pool.query(text, ["hot"]);
    const update = { name: "bare", text: "UPDATE bare SET n = n + 1 WHERE key = $1 RETURNING n" };
    return {
      take: (name) => pool.query({ ...update, values: [name] }),
      close: () => pool.end(),
    };
  },
};
