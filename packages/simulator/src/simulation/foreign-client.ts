/**
 * A client of the Python library, as far as it disturbs ours: it doubles the shard count in the
 * first shard, and neither moves its base time nor creates the others.
 */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ShardImage } from "../checkers/bucket-image.ts";

/** Few, so that each shard still holds some tokens. */
const SHARDS_MAX = 8;

export class ForeignClient {
  readonly #store: ItemStore;

  constructor(store: ItemStore) {
    this.#store = store;
  }

  /** Whether the bucket was doubled. */
  async double(PK: string, { count }: ShardImage): Promise<boolean> {
    if (count >= SHARDS_MAX) return false;
    try {
      const { ok } = await this.#store.update(
        { PK, SK: "#STATE" },
        { set: { shard_count: 2 * count } },
        [{ is: "=", name: "shard_count", value: count }],
      );
      return ok;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return false;
    }
  }
}
