/** A prefix of its own on the Redis server of a test run. */

import { addressClient } from "@zae-limiter/limiter/storage/redis/clients.ts";
import { RedisConnection } from "@zae-limiter/limiter/storage/redis/connection.ts";
import { ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { Redis } from "ioredis";

const TIMEOUT_MS = 20_000;

export interface TestPrefix {
  readonly prefix: string;
  /** A connection that is not the store's. */
  readonly connection: RedisConnection;
  /** Opens another connection to the prefix. */
  connect(): Promise<RedisConnection>;
  /** Removes the keys, and closes the connection. */
  drop(): Promise<void>;
}

/** Opens a connection with a prefix that no other test uses. */
export async function newPrefix(url: string): Promise<TestPrefix> {
  const { prefix } = ownPrefix(url);
  const connect = async () => {
    const client = await addressClient(url, { timeoutMs: TIMEOUT_MS });
    return new RedisConnection(client, { place: "redis://test", prefix });
  };
  const connection = await connect();
  const drop = async () => {
    await connection.close();
    await removeKeys(url, prefix);
  };
  return { prefix, connection, connect, drop };
}

/** Removes what a test has left on a server that other programs may use. */
export async function removeKeys(url: string, prefix: string): Promise<void> {
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1000 })) {
    const found = keys as string[];
    if (found.length > 0) await client.unlink(...found);
  }
  client.disconnect();
}
