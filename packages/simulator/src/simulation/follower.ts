/** Reads the stream of a table, duplicates and all, and must end with the same items. */

import { isDeepStrictEqual } from "node:util";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { SimulatedProcess } from "@zae-limiter/testing/table/simulated-process.ts";
import { Violation } from "../checkers/violation.ts";
import type { World } from "./world.ts";

export class Follower {
  readonly #world: World;
  readonly #items = new Map<string, { key: Key; item: Item | undefined; sequence: string }>();
  duplicates = 0;

  constructor(world: World) {
    this.#world = world;
  }

  start(process: SimulatedProcess): void {
    void this.#follow(process).catch((error: unknown) => this.#world.fail(error));
  }

  /** Compares the counts, after all work has ended. */
  compare(): void {
    for (const { key, item } of this.#items.values()) {
      if (isDeepStrictEqual(item, this.#world.table.read(key))) continue;
      throw new Violation(
        "feed",
        key.PK,
        "the stream has told something else than the table holds",
      );
    }
  }

  async #follow(process: SimulatedProcess): Promise<void> {
    for await (const { key, after, sequence } of process.store.changes({ from: "oldest" })) {
      const id = `${key.PK} ${key.SK}`;
      const known = this.#items.get(id);
      // An item stays in its shard, where sequence numbers only grow.
      if (known !== undefined && known.sequence >= sequence) this.duplicates += 1;
      else this.#items.set(id, { key, item: after, sequence });
    }
  }
}
