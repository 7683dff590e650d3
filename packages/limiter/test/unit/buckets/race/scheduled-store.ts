/** A memory store whose calls take time: each waits for its turn before it is done and after. */

import { keyOfWrite } from "@zae-limiter/limiter/storage/checks.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type {
  Change,
  Condition,
  ItemStore,
  Query,
  ReadManyOptions,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
import type { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { type Shares, unavailable, type World } from "./world.ts";

/** A write that has been done. */
export interface Landed {
  readonly key: Key;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
  /** The actor that has made it, or the actors that share it. */
  readonly actor: number | Shares | undefined;
  /** Plain writes whose answer is lost are never repeated. */
  readonly lost: boolean;
}

export class ScheduledStore implements ItemStore {
  readonly #items: MemoryItemStore;
  readonly #world: World;
  readonly #onLanded: (landed: readonly Landed[]) => void;

  /** `onLanded` is called with all writes that one request has done at once. */
  constructor(items: MemoryItemStore, world: World, onLanded: (landed: readonly Landed[]) => void) {
    this.#items = items;
    this.#world = world;
    this.#onLanded = onLanded;
  }

  get(key: Key): Promise<Item | undefined> {
    return this.#read("get", () => this.#items.get(key));
  }

  getMany(keys: readonly Key[], options?: ReadManyOptions): Promise<(Item | undefined)[]> {
    return this.#read("getMany", () => this.#items.getMany(keys, options));
  }

  put(item: Item, condition?: Condition): Promise<WriteResult> {
    return this.#write("put", [item], () => this.#items.put(item, condition));
  }

  update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    return this.#write("update", [key], () => this.#items.update(key, change, condition));
  }

  delete(key: Key, condition?: Condition): Promise<WriteResult> {
    return this.#write("delete", [key], () => this.#items.delete(key, condition));
  }

  transact(writes: readonly Write[], options?: TransactOptions): Promise<TransactResult> {
    const keys = writes.map(keyOfWrite);
    // With a token it is repeated until the response arrives.
    const repeatable = options?.token !== undefined;
    return this.#write("transact", keys, () => this.#items.transact(writes, options), repeatable);
  }

  writeMany(writes: { puts?: readonly Item[]; deletes?: readonly Key[] }): Promise<void> {
    const keys = [...(writes.puts ?? []), ...(writes.deletes ?? [])];
    return this.#write("writeMany", keys, () => this.#items.writeMany(writes));
  }

  async *query(query: Query): AsyncGenerator<Item> {
    yield* await this.#read("query", async () => {
      const found: Item[] = [];
      for await (const item of this.#items.query(query)) found.push(item);
      return found;
    });
  }

  changes(): never {
    throw new Error("a race has no feed of changes");
  }

  async close(): Promise<void> {}

  async #read<T>(label: string, work: () => Promise<T>): Promise<T> {
    const world = this.#world;
    if (!world.racing) return work();
    const fault = world.nextFault();
    await world.turn(`${label} begins`);
    if (fault !== undefined) throw unavailable(fault, true);
    const result = await work();
    await world.turn(`${label} ends`);
    return result;
  }

  async #write<T>(
    label: string,
    keys: readonly Key[],
    work: () => Promise<T>,
    repeatable = false,
  ): Promise<T> {
    const world = this.#world;
    if (!world.racing) return work();
    const actor = world.actor.getStore();
    const fault = world.nextFault();
    await world.turn(`${label} begins`);
    if (fault === "throttled" || fault === "conflict") throw unavailable(fault, true);
    const before = keys.map((key) => this.#items.readNow(key));
    // The memory store does its work at once and answers later.
    const done = work();
    const lost = fault === "lost" && !repeatable;
    const landed = keys.flatMap((key, at): Landed[] => {
      const after = this.#items.readNow(key);
      return after === before[at] ? [] : [{ key, before: before[at], after, actor, lost }];
    });
    this.#onLanded(landed);
    const result = await done;
    await world.turn(`${label} ends`);
    if (fault === "lost") throw unavailable(fault, false);
    return result;
  }
}
