/** How the changes of a store are followed: as one feed, or by the shards of a stream. */

import type { ChangeRecord, ItemStore } from "./item-store.ts";

export type ChangeSource =
  /** One reader follows `store.changes()`. */
  | { readonly by: "feed"; readonly store: ItemStore }
  /** Several readers share the shards of a stream among themselves. */
  | { readonly by: "shards"; readonly stream: ChangeStream };

/** A shard of a stream, and the one it follows. */
export interface StreamShard {
  readonly id: string;
  /** The shard that has to be read to its end before this one. */
  readonly parentId: string | undefined;
}

/** Some changes of a shard. */
export interface StreamPage {
  readonly changes: readonly ChangeRecord[];
  /** The shard is closed and read to its end. */
  readonly ended: boolean;
}

/** A stream in shards, some of which follow others. */
export interface ChangeStream {
  /** Returns the address of the stream, and its shards. A new stream has a new address. */
  describe(): Promise<{ readonly arn: string; readonly shards: readonly StreamShard[] }>;
  /** Reads a shard after a sequence number, or from the oldest change that is kept. */
  read(arn: string, shardId: string, after: string | undefined): () => Promise<StreamPage>;
}
