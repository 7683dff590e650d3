/** A store whose reads a test can hold up or let fail, to observe other calls meanwhile. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";

/** A read that has happened and whose answer is on its way. */
export interface HeldRead {
  /** Settles when the read has happened. */
  readonly reached: Promise<void>;
  release(): void;
}

export class Gate {
  /** The keys of every batched read. */
  readonly reads: (readonly Key[])[] = [];
  readonly store: ItemStore;
  /** The store underneath, for other clients, which are not held up. */
  readonly items = new MemoryItemStore();
  readonly #holds: { onRead: () => void; released: Promise<void> }[] = [];
  readonly #failures: Error[] = [];

  constructor() {
    this.store = new Proxy<ItemStore>(this.items, {
      get: (items, operation: keyof ItemStore) => {
        if (operation === "getMany") return (keys: readonly Key[]) => this.#getMany(keys);
        return items[operation]?.bind(items) as unknown;
      },
    });
  }

  /** Holds up the answer of the next batched read. */
  holdNext(): HeldRead {
    let release = () => {};
    let onRead = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      onRead = resolve;
    });
    this.#holds.push({ onRead, released });
    return { reached, release };
  }

  /** Lets the next batched read fail. */
  failNext(error: Error): void {
    this.#failures.push(error);
  }

  async #getMany(keys: readonly Key[]): Promise<(Item | undefined)[]> {
    this.reads.push(keys);
    const failure = this.#failures.shift();
    const hold = this.#holds.shift();
    const items = await this.items.getMany(keys);
    hold?.onRead();
    await hold?.released;
    if (failure !== undefined) throw failure;
    return items;
  }
}
