/**
 * A table with changes that are not written: reads see the table and the writes made here. A dry
 * run is a run on this store, so its report is what a real run would do.
 *
 * It keeps all changes of a migration in memory.
 */

import {
  checkTransaction,
  keyOfWrite,
  type ManyWrites,
  writesIn,
} from "@zae-limiter/limiter/storage/checks.ts";
import { applyChange, holds, storedItem } from "@zae-limiter/limiter/storage/evaluate.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type {
  Change,
  ChangeRecord,
  Condition,
  Query,
  ReadManyOptions,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
import type { ScanOptions, ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";

export class OverlayStore implements ScanStore {
  readonly #below: ScanStore;
  /** Items that differ from the table; `undefined` where one was deleted. */
  readonly #written = new Map<string, Item | undefined>();

  constructor(below: ScanStore) {
    this.#below = below;
  }

  async get(key: Key): Promise<Item | undefined> {
    const name = nameOf(key);
    if (this.#written.has(name)) return this.#written.get(name);
    return this.#below.get(key, { consistent: true });
  }

  async getMany(keys: readonly Key[], _?: ReadManyOptions): Promise<(Item | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async put(item: Item, condition?: Condition): Promise<WriteResult> {
    return this.#write({ put: item, condition });
  }

  async update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    return this.#write({ update: key, change, condition });
  }

  async delete(key: Key, condition?: Condition): Promise<WriteResult> {
    return this.#write({ delete: key, condition });
  }

  async transact(writes: readonly Write[]): Promise<TransactResult> {
    checkTransaction(writes);
    const found = await this.getMany(writes.map(keyOfWrite));
    const failures = new Map<number, { item: Item | undefined }>();
    for (const [position, write] of writes.entries()) {
      if (!holds(write.condition, found[position]))
        failures.set(position, { item: found[position] });
    }
    if (failures.size > 0) return { ok: false, failures };
    for (const [position, write] of writes.entries()) {
      this.#written.set(nameOf(keyOfWrite(write)), outcome(write, found[position]));
    }
    return { ok: true };
  }

  async writeMany(writes: ManyWrites): Promise<void> {
    for (const write of writesIn(writes)) await this.#write(write);
  }

  /** Queries the table itself, in no particular order: migrations need no more. */
  async *query(query: Query): AsyncGenerator<Item> {
    const prefix =
      query.sort !== undefined && "beginsWith" in query.sort ? query.sort.beginsWith : "";
    const fits = ({ PK, SK }: Key) => PK === query.partition && SK.startsWith(prefix);
    yield* this.#merged(this.#below.query(query), fits);
  }

  async *scan(options: ScanOptions = {}): AsyncGenerator<Item> {
    yield* this.#merged(this.#below.scan(options), () => true);
  }

  changes(): AsyncIterable<ChangeRecord> {
    return this.#below.changes();
  }

  /** Leaves the table below open, which belongs to the caller. */
  async close(): Promise<void> {}

  /** Yields the items of the table with the changes applied, then the new items. */
  async *#merged(below: AsyncIterable<Item>, fits: (key: Key) => boolean): AsyncGenerator<Item> {
    const seen = new Set<string>();
    for await (const item of below) {
      const name = nameOf(item);
      if (!this.#written.has(name)) {
        yield item;
        continue;
      }
      seen.add(name);
      const written = this.#written.get(name);
      if (written !== undefined) yield written;
    }
    for (const [name, item] of [...this.#written]) {
      if (item !== undefined && !seen.has(name) && fits(item)) yield item;
    }
  }

  async #write(write: Write): Promise<WriteResult> {
    const before = await this.get(keyOfWrite(write));
    const result = await this.transact([write]);
    if (!result.ok) return { ok: false, item: before };
    if ("update" in write) return { ok: true, item: this.#written.get(nameOf(write.update)) };
    return { ok: true, item: "delete" in write ? before : undefined };
  }
}

function nameOf({ PK, SK }: Key): string {
  return JSON.stringify([PK, SK]);
}

function outcome(write: Write, before: Item | undefined): Item | undefined {
  if ("put" in write) return storedItem(write.put);
  if ("update" in write) return applyChange(write.update, before, write.change);
  return "delete" in write ? undefined : before;
}
