/**
 * Usage over several entities, each acquire counted once.
 *
 * An acquire that cascades is in the snapshot of its entity and in those of the ancestors. In a sum
 * over entities a counter is therefore left out when an ancestor has the same counter in the same
 * window: what the entity consumed is part of it. An ancestor without that limit has no such
 * counter, so nothing is lost.
 */

import { flagAt, textAt } from "../../storage/item.ts";
import { ANCESTORS_MAX } from "../entities/ancestry.ts";
import { entityKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import type { UsageSnapshot } from "./usage-item.ts";

export class CascadedUsage {
  readonly #context: RecordContext;
  /** The parent that an entity cascades to; `undefined` when it cascades to none. */
  readonly #parents = new Map<string, string | undefined>();

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** Returns for snapshots of one window the counters to add up, each by the name of its limit. */
  async counters(
    group: readonly Pick<UsageSnapshot, "entityId" | "counters">[],
  ): Promise<readonly (readonly string[])[]> {
    await this.#load(group.map(({ entityId }) => entityId));
    const known = new Map(group.map(({ entityId, counters }) => [entityId, counters]));
    return group.map(({ entityId, counters }) => {
      const above = this.#ancestors(entityId).map((id) => known.get(id) ?? {});
      return Object.keys(counters).filter(
        (name) => !above.some((ancestor) => Object.hasOwn(ancestor, name)),
      );
    });
  }

  /** Returns the nearest ancestor among these entities that each of them cascades to. */
  async nearest(entityIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    await this.#load(entityIds);
    const known = new Set(entityIds);
    const found = new Map<string, string>();
    for (const entityId of entityIds) {
      const above = this.#ancestors(entityId).find((id) => known.has(id));
      if (above !== undefined) found.set(entityId, above);
    }
    return found;
  }

  /** Reads the entities and their ancestors, a generation at a time. */
  async #load(ids: readonly string[]): Promise<void> {
    const { store, namespaceId } = this.#context;
    let unknown = [...new Set(ids)].filter((id) => !this.#parents.has(id));
    for (let above = 0; unknown.length > 0 && above <= ANCESTORS_MAX; above += 1) {
      const records = await store.getMany(unknown.map((id) => entityKey(namespaceId, id)));
      unknown.forEach((id, at) => {
        const record = records[at];
        const cascades = record !== undefined && flagAt(record, "cascade");
        this.#parents.set(id, cascades ? textAt(record, "parent_id") : undefined);
      });
      const parents = unknown.flatMap((id) => this.#parents.get(id) ?? []);
      unknown = [...new Set(parents)].filter((id) => !this.#parents.has(id));
    }
  }

  #ancestors(entityId: string): string[] {
    const ancestors: string[] = [];
    let parent = this.#parents.get(entityId);
    while (parent !== undefined && ancestors.length <= ANCESTORS_MAX) {
      ancestors.push(parent);
      parent = this.#parents.get(parent);
    }
    return ancestors;
  }
}
