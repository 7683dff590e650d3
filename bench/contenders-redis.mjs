/** Limiters, and a command that decides nothing, on one server of Redis or Valkey. */

import { Redis } from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { RateLimiter } from "./dist/index.js";

/** Opens a contender: `take(name)` is one decision. Ours has two limits, the rival has one. */
export const CONTENDERS = {
  ours: async (url) => {
    const limiter = await RateLimiter.open(url, { timeoutMs: 60_000, configCacheTtlSeconds: 3600 });
    await limiter.repository.limits.setSystem(["rpm:1000000000", "tpm:1000000000"]);
    const consume = { rpm: 1, tpm: 10 };
    return {
      take: (entityId) => limiter.acquire({ entityId, resource: "api", consume }),
      close: () => limiter.close(),
    };
  },
  rival: async (url) => {
    const storeClient = new Redis(url);
    const rival = new RateLimiterRedis({ storeClient, points: 1_000_000_000, duration: 3600 });
    return { take: (name) => rival.consume(name), close: () => storeClient.disconnect() };
  },
  increment: async (url) => {
    const client = new Redis(url);
    return {
      take: (name) => client.incrby(`bare-${name}`, 1),
      close: () => client.disconnect(),
    };
  },
};
