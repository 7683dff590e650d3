/** A stream whose shards close and are followed by others when a test says so. */

import type {
  ShardFeed,
  ShardSource,
  SourceShards,
} from "@zae-limiter/aws/aggregator/runner/shard-source.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ChangeRecord } from "@zae-limiter/limiter/storage/item-store.ts";
import { AT } from "../changes.ts";

const PAGE = 3;

interface SimulatedShard {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly records: ChangeRecord[];
  closed: boolean;
}

export class SimulatedStream implements ShardSource {
  readonly shards: SimulatedShard[] = [];
  /** Which shard was read after what, in that order. */
  readonly opened: string[] = [];
  generation = "";
  #sequence = 0;

  add(id: string, parentId?: string): void {
    this.shards.push({ id, parentId, records: [], closed: false });
  }

  close(id: string): void {
    this.#shard(id).closed = true;
  }

  append(id: string, before: Item | undefined, after: Item): void {
    this.#sequence += 1;
    const sequence = String(this.#sequence);
    const { PK, SK } = after;
    this.#shard(id).records.push({
      key: { PK, SK },
      before,
      after,
      atMs: AT,
      expired: false,
      shard: id,
      sequence,
      position: sequence,
    });
  }

  async discover(): Promise<SourceShards> {
    return {
      generation: this.generation,
      shards: this.shards.map(({ id, parentId }) => ({ id, parentId })),
      open: (id, after) => this.#open(id, after),
    };
  }

  #open(id: string, after: string | undefined): ShardFeed {
    this.opened.push(`${id} after ${after ?? "nothing"}`);
    const shard = this.#shard(id);
    let next = shard.records.findIndex(({ sequence }) => sequence === after) + 1;
    return {
      next: async () => {
        const changes = shard.records.slice(next, next + PAGE);
        next += changes.length;
        return { changes, ended: shard.closed && next >= shard.records.length };
      },
      close: async () => {},
    };
  }

  #shard(id: string): SimulatedShard {
    const found = this.shards.find((shard) => shard.id === id);
    if (found === undefined) throw new Error(`there is no shard ${id}`);
    return found;
  }
}
