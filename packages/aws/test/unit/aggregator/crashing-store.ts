/** A memory store whose process dies at a chosen write: before it, or after it and unheard. */

import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Change, Condition, WriteResult } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";

/** The error that a process which is gone would throw. */
class Crash extends Error {}

export class CrashingStore extends MemoryItemStore {
  #left = Number.POSITIVE_INFINITY;
  #afterwards = false;

  /**
   * Makes the write after `writes` the last; `afterwards`: it is executed, its response is lost.
   */
  crashAfter(writes: number, afterwards: boolean): void {
    this.#left = writes;
    this.#afterwards = afterwards;
  }

  /** The next process. */
  restart(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  override async update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    if (this.#left <= 0) {
      if (this.#left === 0 && this.#afterwards) await super.update(key, change, condition);
      this.#left -= 1;
      throw new Crash("the process died");
    }
    this.#left -= 1;
    return super.update(key, change, condition);
  }
}
