/** Serves readers that do not need the newest data: indexes and eventually consistent reads. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Landing } from "./call.ts";

interface Recent {
  readonly before: Item | undefined;
  readonly untilMs: number;
}

const RECENT_MAX = 5000;

export class Lagging {
  readonly #time: VirtualTime;
  readonly #items: MemoryItemStore;
  readonly #random: Random;
  /** The table as its indexes show it; the table itself until something lags for the first time. */
  #replica: MemoryItemStore | undefined;
  readonly #recent = new Map<string, Recent>();
  /** For each item, the newest change that its indexes show. */
  readonly #known = new Map<string, number>();
  #changes = 0;

  constructor(time: VirtualTime, items: MemoryItemStore, random: Random) {
    this.#time = time;
    this.#items = items;
    this.#random = random;
  }

  get indexed(): ItemStore {
    return this.#replica ?? this.#items;
  }

  /** Lets indexes lag from now on; they show everything that exists now. */
  begin(): void {
    if (this.#replica !== undefined) return;
    this.#replica = new MemoryItemStore({ clock: () => 0 });
    for (const item of this.#items.itemsNow()) void this.#replica.put(item);
  }

  changed({ key, before, after }: Landing, indexed: boolean, lagMs: number): void {
    if (lagMs > 0) {
      const untilMs = this.#time.nowMs + this.#random() * lagMs;
      const id = `${key.PK} ${key.SK}`;
      this.#recent.set(id, { before, untilMs });
      if (this.#recent.size > RECENT_MAX) this.#forgetOld();
    }
    if (!indexed || this.#replica === undefined) return;
    this.#changes += 1;
    const change = this.#changes;
    if (lagMs <= 0) this.#show(key, after, change);
    else this.#time.after(this.#random() * lagMs, () => this.#show(key, after, change));
  }

  /** Returns what an eventually consistent read sees. */
  read(key: Key): Item | undefined {
    const recent = this.#recent.get(`${key.PK} ${key.SK}`);
    if (recent !== undefined && this.#time.nowMs < recent.untilMs) return recent.before;
    return this.#items.readNow(key);
  }

  #show(key: Key, after: Item | undefined, change: number): void {
    const id = `${key.PK} ${key.SK}`;
    if ((this.#known.get(id) ?? 0) > change) return;
    this.#known.set(id, change);
    const store = this.#replica as MemoryItemStore;
    void (after === undefined ? store.delete(key) : store.put(after));
  }

  #forgetOld(): void {
    for (const [id, { untilMs }] of this.#recent) {
      if (untilMs <= this.#time.nowMs) this.#recent.delete(id);
    }
  }
}
