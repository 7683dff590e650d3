/** The namespaces of a table, and which of them an item belongs to. */

import { DEFAULT_NAMESPACE, RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import {
  NAMESPACE_ID_PREFIX,
  namespaceKey,
  systemPartition,
} from "@zae-limiter/limiter/records/keys.ts";
import { textAt } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";

const REGISTRY = systemPartition(RESERVED_NAMESPACE);
const ENTITY_PREFIX = "ENTITY#";
const KINDS = [ENTITY_PREFIX, "SYSTEM#", "RESOURCE#", "AUDIT#", "BUCKET#"];
/** `n1/ENTITY#key-1`. Names may contain slashes, but only behind the `#` that ends the kind. */
const PARTITION_PATTERN = /^([^/#]+)\/(.*)$/s;

/** The place that an item belongs to. */
export interface Home {
  readonly namespaceId: string;
  /** The partition without its namespace: `ENTITY#key-1`. */
  readonly partition: string;
  /** The item lies under the name of its namespace instead of its id. */
  readonly isMisplaced: boolean;
}

export class KnownNamespaces {
  /** The namespace of items under its name; `undefined` while it is not registered. */
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
    const [, namespaceId, partition] = PARTITION_PATTERN.exec(pk) ?? [];
    if (namespaceId === undefined || partition === undefined || !isOurs(partition)) {
      return undefined;
    }
    if (this.#usable.has(namespaceId)) return { namespaceId, partition, isMisplaced: false };
    const isMisplaced = namespaceId === DEFAULT_NAMESPACE && !this.#known.has(namespaceId);
    if (!isMisplaced || this.#defaultId === undefined) return undefined;
    return { namespaceId: this.#defaultId, partition, isMisplaced };
  }
}

/** Returns the entity whose records the partition holds; `undefined` for other partitions. */
export function entityOf({ partition }: Home): string | undefined {
  return partition.startsWith(ENTITY_PREFIX) ? partition.slice(ENTITY_PREFIX.length) : undefined;
}

/** Whether a partition is of a kind that this library or the Python library writes. */
function isOurs(partition: string): boolean {
  return KINDS.some((kind) => partition.startsWith(kind));
}
