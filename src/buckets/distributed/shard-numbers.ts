/**
 * How shards descend from each other.
 *
 * Counts only double, so they are powers of two. Shard `i` of `n` splits into `i` and `i + n` of
 * `2n`; the other way round, every shard but the first came from the one without its highest bit.
 */

export { SHARDS_MAX } from "../../core/shares.ts";

/** How many shards there were when `shard` did not exist yet. */
export function countBefore(shard: number): number {
  return 2 ** Math.floor(Math.log2(shard));
}

/** The shard that `shard` was split from; not for the first. */
export function originOf(shard: number): number {
  return shard - countBefore(shard);
}
