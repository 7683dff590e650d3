/** The namespaces of a table, and which of them an item of any age belongs to. */

import { DEFAULT_NAMESPACE, RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { textAt } from "@zae-limiter/limiter/records/fields.ts";
import {
  NAMESPACE_ID_PREFIX,
  namespaceKey,
  systemPartition,
} from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { isOurs, type Partition, partitionOf } from "./old-keys.ts";

const REGISTRY = systemPartition(RESERVED_NAMESPACE);

export interface Home {
  readonly namespaceId: string;
  /** The partition without its namespace. */
  readonly partition: Partition;
  /** The item is still where it was before there were namespaces. */
  readonly isOutside: boolean;
}

export class KnownNamespaces {
  /** Where items without a namespace belong; `undefined` while it is not registered. */
  readonly #defaultId: string | undefined;
  readonly #usable: ReadonlySet<string>;
  readonly #known: ReadonlySet<string>;

  private constructor(states: ReadonlyMap<string, string>, defaultId: string | undefined) {
    this.#known = new Set(states.keys());
    // A namespace that is being purged must not be written to: the purge would miss the items.
    this.#usable = new Set(
      [...states].filter(([, state]) => state !== "purging").map(([id]) => id),
    );
    this.#defaultId = defaultId;
  }

  static async read(store: ItemStore): Promise<KnownNamespaces> {
    const states = new Map<string, string>();
    const sort = { beginsWith: NAMESPACE_ID_PREFIX };
    for await (const item of store.query({ partition: REGISTRY, sort, consistent: true })) {
      states.set(item.SK.slice(NAMESPACE_ID_PREFIX.length), textAt(item, "status") ?? "");
    }
    const forward = await store.get(namespaceKey(DEFAULT_NAMESPACE), { consistent: true });
    return new KnownNamespaces(states, textAt(forward, "namespace_id"));
  }

  /**
   * Returns `undefined` for items that are not ours to change. The Python library has also written
   * under the name of the namespace where its id should be; such items belong to it all the same.
   */
  homeOf(pk: string): Home | undefined {
    const partition = partitionOf(pk);
    const { namespaceId } = partition;
    if (!isOurs(partition)) return undefined;
    if (namespaceId !== undefined && this.#usable.has(namespaceId)) {
      return { namespaceId, partition, isOutside: false };
    }
    const isOutside =
      namespaceId === undefined ||
      (namespaceId === DEFAULT_NAMESPACE && !this.#known.has(namespaceId));
    if (!isOutside || this.#defaultId === undefined) return undefined;
    return { namespaceId: this.#defaultId, partition, isOutside };
  }
}
