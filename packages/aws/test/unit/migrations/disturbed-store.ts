/** A memory store whose writes can be counted, stopped and held up. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type {
  Change,
  Condition,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";

/** Runs before a write; an error that it throws means that the write is not done. */
export type Disturbance = (writes: readonly Write[], position: number) => Promise<void> | void;

export class DisturbedStore extends MemoryItemStore {
  disturb: Disturbance = () => undefined;
  /** How many requests to write came in. */
  writes = 0;

  override async put(item: Item, condition?: Condition): Promise<WriteResult> {
    await this.#before([{ put: item }]);
    return super.put(item, condition);
  }

  override async update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    await this.#before([{ update: key, change }]);
    return super.update(key, change, condition);
  }

  override async delete(key: Key, condition?: Condition): Promise<WriteResult> {
    await this.#before([{ delete: key }]);
    return super.delete(key, condition);
  }

  override async transact(writes: readonly Write[]): Promise<TransactResult> {
    await this.#before(writes);
    return super.transact(writes);
  }

  async #before(writes: readonly Write[]): Promise<void> {
    this.writes += 1;
    await this.disturb(writes, this.writes);
  }
}

/** The process ends at the n-th write: that one and all later ones never happen. */
export function crashAt(position: number): Disturbance {
  return (_, now) => {
    if (now >= position) throw new RateLimiterUnavailable("gone", { reason: "network" });
  };
}
