/** Opens stores on Redis and Valkey. Loaded when one is first opened. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import { addressClient } from "../../storage/redis/clients.ts";
import { checkPrefix, RedisConnection } from "../../storage/redis/connection.ts";
import { RedisItemTable } from "../../storage/redis/item-table.ts";
import { DEFAULT_PREFIX } from "../../storage/redis/keys.ts";
import { readServer } from "../../storage/redis/server.ts";
import type { Backend } from "../backend.ts";
import type { RedisOptions } from "../options.ts";
import { openItemTable } from "./open-item-table.ts";
import { type PrefixLocation, redis } from "./redis.ts";
import { SHARED_OPTIONS } from "./shared-options.ts";

/** Opens the prefix of an address. */
export async function openRedis(
  { connection, place, prefix }: PrefixLocation,
  options: RedisOptions,
): Promise<Backend> {
  const at = { place, prefix: checkPrefix(prefix) };
  const { tls, timeoutMs = SHARED_OPTIONS.timeoutMs.default } = options;
  if (tls !== undefined && !connection.startsWith("rediss:")) {
    throw new InfrastructureError(`"tls" is for rediss: and valkeys: addresses, got ${place}`);
  }
  const client = await addressClient(connection, { tls, timeoutMs });
  return openOn(new RedisConnection(client, at), options);
}

/** Puts the records and the buckets on a connection, and closes it when that cannot be. */
export async function openOn(connection: RedisConnection, options: RedisOptions): Promise<Backend> {
  const { timeoutMs = SHARED_OPTIONS.timeoutMs.default } = options;
  try {
    const warning = await readServer(connection, { timeoutMs });
    if (warning !== undefined) process.emitWarning(warning, { code: "ZAEL_EVICTION" });
    await connection.askTime({ timeoutMs });
  } catch (error) {
    await connection.close();
    throw error;
  }
  const { place, prefix } = connection;
  const name = prefix === DEFAULT_PREFIX ? place : `${place} (prefix ${prefix})`;
  const known = { name, database: { system: redis.name }, traits: redis.traits };
  return openItemTable(known, new RedisItemTable(connection), options);
}
