/** One pass over a table: every item is shown to the rules of one migration. */

import { type Item, type Key, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import type { MigrationTable, Rule } from "./migration.ts";
import type { Checkpoint, MigrationLease } from "./migration-state.ts";

/** Items that are changed at the same time. */
const TOGETHER = 16;
/** The most items between two checkpoints. */
const CHECKPOINT_ITEMS = 1000;
/** Each lost attempt means that another client changed the item; this many are an error. */
const ATTEMPTS_MAX = 20;

interface PassOptions {
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void;
  readonly signal?: AbortSignal | undefined;
}

export class Pass {
  readonly #table: MigrationTable;
  readonly #rules: readonly Rule[];
  readonly #lease: MigrationLease;
  readonly #changes: Map<string, number>;
  #checkpoint: Checkpoint;

  /** Goes on from the checkpoint. */
  constructor(
    table: MigrationTable,
    rules: readonly Rule[],
    lease: MigrationLease,
    checkpoint: Checkpoint,
  ) {
    this.#table = table;
    this.#rules = rules;
    this.#lease = lease;
    this.#checkpoint = checkpoint;
    this.#changes = new Map(Object.entries(checkpoint.changes));
  }

  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  /** Returns true at the end of the table, false when the run was stopped. */
  async run(options: PassOptions = {}): Promise<boolean> {
    let concerned: Item[] = [];
    let looked = 0;
    let last: Key | undefined;
    const settle = async () => {
      await this.#changeAll(concerned);
      await this.#save(last, looked);
      options.onCheckpoint?.(this.#checkpoint);
      concerned = [];
      looked = 0;
    };
    const stopped = () => options.signal?.aborted === true;
    if (stopped()) return false;
    for await (const item of this.#table.store.scan({ after: this.#checkpoint.cursor })) {
      looked += 1;
      last = keyOf(item);
      if (this.#rules.some((rule) => rule.concerns(item, this.#table))) concerned.push(item);
      if (concerned.length < TOGETHER && looked < CHECKPOINT_ITEMS) continue;
      await settle();
      if (stopped()) return false;
    }
    await settle();
    return true;
  }

  /** Waits for all changes before it reports the first failure, so that none goes on unnoticed. */
  async #changeAll(items: readonly Item[]): Promise<void> {
    const outcomes = await Promise.allSettled(items.map((item) => this.#change(item)));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  async #change(item: Item): Promise<void> {
    let current: Item | undefined = item;
    for (const rule of this.#rules) {
      if (current !== undefined) current = await this.#apply(rule, current);
    }
  }

  /** Repeats until the rule finds nothing to change. Returns the item as it is then. */
  async #apply(rule: Rule, item: Item): Promise<Item | undefined> {
    const { store } = this.#table;
    let current: Item | undefined = item;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (current === undefined || !rule.concerns(current, this.#table)) return current;
      const writes = await rule.writes(current, this.#table);
      if (writes.length === 0) return current;
      const { ok } = await store.transact(writes);
      if (ok) this.#changes.set(rule.name, (this.#changes.get(rule.name) ?? 0) + 1);
      if (ok && writes.some((write) => "delete" in write && isAt(write.delete, item))) return;
      current = await store.get(keyOf(item), { consistent: true });
    }
    throw new Error(`${item.PK} ${item.SK} changed ${ATTEMPTS_MAX} times while it was migrated`);
  }

  async #save(cursor: Key | undefined, looked: number): Promise<void> {
    this.#checkpoint = {
      ...this.#checkpoint,
      cursor: cursor ?? this.#checkpoint.cursor,
      scanned: this.#checkpoint.scanned + looked,
      changes: Object.fromEntries(this.#changes),
    };
    await this.#lease.save(this.#checkpoint);
  }
}

function isAt(key: Key, { PK, SK }: Key): boolean {
  return key.PK === PK && key.SK === SK;
}
