/** Redis and Valkey by a client of yours: `zae-limiter/redis`. */

import { show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkClient, ownClient, type RedisClient } from "../../storage/redis/clients.ts";
import { checkPrefix, RedisConnection } from "../../storage/redis/connection.ts";
import { openOn } from "./open-redis.ts";
import { OPENS, type OpenableStore } from "./opened-store.ts";

export type { RedisClient } from "../../storage/redis/clients.ts";
export type { OpenableStore } from "./opened-store.ts";

/** How a client of yours is used. */
export interface RedisClientOptions {
  /** Begins all keys. Default `zael:`. */
  readonly prefix?: string;
}

/**
 * Makes a store of a client of yours: `Redis` or `Cluster` of ioredis or iovalkey, and
 * `createClient`, `createCluster` or `createSentinel` of node-redis. The store uses a duplicate of
 * it, which sends no command twice, and closes only that.
 *
 * @example
 * ```ts
 * import { redis, type RedisClient } from 'zae-limiter/redis';
 * const limits = (client: RedisClient) => redis(client, { prefix: 'limits:' });
 * // await Repository.over(limits(new Redis()))
 * console.log(typeof limits); // function
 * ```
 */
export function redis(client: RedisClient, options: RedisClientOptions = {}): OpenableStore {
  const { prefix, ...rest } = options;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    throw new ValidationError("options", unknown, `expected prefix, got ${show(unknown)}`);
  }
  const at = { place: "Redis", prefix: checkPrefix(prefix) };
  checkClient(client);
  return {
    [OPENS]: (openOptions) => openOn(new RedisConnection(ownClient(client), at), openOptions),
  };
}
