/** Reads when a store is opened: version, mode and eviction policy of the server. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import type { TableCallOptions } from "../item-table.ts";
import type { RedisConnection } from "./connection.ts";

/** The oldest version that lists sorted sets in the order of bytes as scripts do. */
const [MAJOR_MIN, MINOR_MIN] = [6, 2];

/**
 * Refuses a server that cannot carry the limiter; returns a warning where it may lose limits. A
 * server that does not let this user ask is taken as it is.
 */
export async function readServer(
  connection: RedisConnection,
  options: TableCallOptions,
): Promise<string | undefined> {
  const server = await info(connection, "server", options);
  const { place } = connection;
  const version = server.get("redis_version") ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < MAJOR_MIN || (major === MAJOR_MIN && minor < MINOR_MIN);
  if (version !== "" && isOld) {
    throw new InfrastructureError(`${place} is Redis ${version}: expected 6.2 or later, or Valkey`);
  }
  if (server.get("redis_mode") === "cluster" && !connection.isCluster) {
    throw new InfrastructureError(
      `${place} is a node of a cluster, which an address or a single client does not reach: open ` +
        "a cluster client of ioredis or node-redis with Repository.over(redis(client))",
    );
  }
  const memory = await info(connection, "memory", options);
  const policy = memory.get("maxmemory_policy") ?? "noeviction";
  const isBounded = (memory.get("maxmemory") ?? "0") !== "0";
  if (!isBounded || !policy.startsWith("allkeys-")) return undefined;
  return (
    `${place} may evict any key when its memory is full (maxmemory-policy ${policy}): an evicted ` +
    "bucket is full again, and evicted limits limit nothing. Set it to noeviction or volatile-lru"
  );
}

/** Returns the fields of a section; none where the user may not ask. */
async function info(
  connection: RedisConnection,
  section: string,
  options: TableCallOptions,
): Promise<ReadonlyMap<string, string>> {
  let text: unknown;
  try {
    text = await connection.command(["INFO", section], options);
  } catch (error) {
    const cause = (error as { cause?: unknown }).cause;
    if (!/^NOPERM|unknown command/i.test(String((cause as Error | undefined)?.message)))
      throw error;
  }
  const lines = typeof text === "string" ? text.split(/\r?\n/) : [];
  return new Map(lines.map((line) => line.split(":", 2) as [string, string]));
}
