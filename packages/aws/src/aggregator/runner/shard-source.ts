/** The source of a runner: a stream in shards, some of which follow others. */

import type {
  ChangeSource,
  ChangeStream,
  StreamPage,
  StreamShard,
} from "@zae-limiter/limiter/storage/change-source.ts";
import type { ChangeRecord, ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { generationOf, ONLY_GENERATION } from "../stream-change.ts";

/** The next changes of a shard; none when there are none yet. */
export interface ShardFeed {
  next(): Promise<StreamPage>;
  close(): Promise<void>;
}

/** The shards of one stream. A table that gets a new stream gets a new generation. */
export interface SourceShards {
  readonly generation: string;
  readonly shards: readonly StreamShard[];
  /** Opens a shard after a sequence number, or at the oldest change that is kept. */
  open(shardId: string, after: string | undefined): ShardFeed;
}

export interface ShardSource {
  discover(): Promise<SourceShards>;
}

/** Returns where a runner reads the changes of a store. */
export function shardSource(changes: ChangeSource): ShardSource {
  return changes.by === "shards" ? streamSource(changes.stream) : feedSource(changes.store);
}

/** Returns the stream of a table as a source. */
export function streamSource(stream: ChangeStream): ShardSource {
  return {
    discover: async () => {
      const { arn, shards } = await stream.describe();
      return {
        generation: generationOf(arn),
        shards,
        open: (shardId, after) => ({
          next: stream.read(arn, shardId, after),
          close: async () => {},
        }),
      };
    },
  };
}

const FEED_SHARD = "feed";
const PAGE = 1000;

/** Returns the feed of a store that has only one shard as a source. */
export function feedSource(store: ItemStore): ShardSource {
  return {
    discover: async () => ({
      generation: ONLY_GENERATION,
      shards: [{ id: FEED_SHARD, parentId: undefined }],
      open: (_shardId, after) => new BufferedFeed(store, after),
    }),
  };
}

/** A feed waits for more changes, but a reader must not wait: it takes those that have come. */
class BufferedFeed implements ShardFeed {
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;
  #buffer: ChangeRecord[] = [];
  #taken: (() => void) | undefined;
  #error: unknown;

  constructor(store: ItemStore, after: string | undefined) {
    const from = after === undefined ? "oldest" : { after };
    const { signal } = this.#stop;
    signal.addEventListener("abort", () => this.#taken?.(), { once: true });
    this.#reading = this.#read(store.changes({ from, signal })).catch((error: unknown) => {
      this.#error = error;
    });
  }

  async next(): Promise<StreamPage> {
    // Gives the feed a turn to deliver the changes that are under way.
    await Promise.resolve();
    if (this.#buffer.length === 0 && this.#error !== undefined) throw this.#error;
    const changes = this.#buffer;
    this.#buffer = [];
    this.#taken?.();
    return { changes, ended: false };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }

  async #read(feed: AsyncIterable<ChangeRecord>): Promise<void> {
    for await (const change of feed) {
      this.#buffer.push(change);
      if (this.#buffer.length < PAGE) continue;
      await new Promise<void>((resolve) => {
        this.#taken = resolve;
        if (this.#stop.signal.aborted) resolve();
      });
      this.#taken = undefined;
    }
  }
}
