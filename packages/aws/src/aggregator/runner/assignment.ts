/** Assigns the shards of a stream to processes. Pure. */

import type { StreamShard } from "@zae-limiter/limiter/storage/change-source.ts";
import type { ShardLease } from "./lease-items.ts";

interface AssignmentInput {
  readonly worker: string;
  readonly shards: readonly StreamShard[];
  readonly leases: ReadonlyMap<string, ShardLease>;
  /** Workers that are alive, this one included. */
  readonly workers: ReadonlySet<string>;
  /** Shards whose lease is dead. */
  readonly dead: ReadonlySet<string>;
}

interface Assignment {
  /** Shards to take. */
  readonly take: readonly string[];
  /** Shards to release to processes that have fewer. */
  readonly release: readonly string[];
}

/**
 * Gives every process an equal share. A process that has more releases the rest by itself, so that
 * no process has to take a shard from another.
 */
export function assign(input: AssignmentInput): Assignment {
  const { worker, leases, workers, dead } = input;
  const readable = input.shards.filter((shard) => isReadable(shard, input));
  const share = Math.ceil(readable.length / Math.max(1, workers.size));
  const own = readable.filter(({ id }) => leases.get(id)?.owner === worker);
  const free = readable.filter(({ id }) => {
    const owner = leases.get(id)?.owner;
    return owner === undefined || (owner !== worker && dead.has(id));
  });
  return {
    take: free.slice(0, Math.max(0, share - own.length)).map(({ id }) => id),
    release: own.slice(share).map(({ id }) => id),
  };
}

/** Changes of one item go from a shard to those that follow it: those have to wait. */
function isReadable({ id, parentId }: StreamShard, input: AssignmentInput): boolean {
  const { leases, shards } = input;
  if (leases.get(id)?.done === true) return false;
  const parent = shards.find((shard) => shard.id === parentId);
  return parent === undefined || leases.get(parent.id)?.done === true;
}
