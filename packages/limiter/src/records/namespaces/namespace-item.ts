/** The two records of a namespace: from its name to its id, and from its id to its name. */

import { RESERVED_NAMESPACE } from "../../domain/names.ts";
import { type Item, textAt } from "../../storage/item.ts";
import { ITEM_ABSENT, type Write } from "../../storage/item-store.ts";
import { inNamespace, namespaceIdKey, namespaceKey, systemPartition } from "../keys.ts";

export const REGISTRY = systemPartition(RESERVED_NAMESPACE);

/** State of a namespace. */
export type NamespaceStatus = "active" | "deleted" | "purging";

/**
 * A registered namespace.
 *
 * @example
 * ```ts
 * import { Repository, type Namespace } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.namespaces.register('tenant-a');
 * const namespaces: Namespace[] = await repo.namespaces.list();
 * console.log(namespaces.map(({ name }) => name).join(' ')); // default tenant-a
 * await repo.close();
 * ```
 */
export interface Namespace {
  /** The name that `open` takes. */
  readonly name: string;
  /** The id that the keys of its items begin with. */
  readonly namespaceId: string;
  /** Whether it can be used. */
  readonly status: NamespaceStatus;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly createdAt: string;
}

/** A deleted namespace that still has data. */
export interface OrphanNamespace {
  /** The id that the keys of its items begin with. */
  readonly namespaceId: string;
  /** The name it had. */
  readonly namespace: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`, where it is known. */
  readonly deletedAt: string | undefined;
}

export type NamespaceFields = Omit<Namespace, "status">;

/** Returns the write of the record by name, which must be free. */
export function forward(fields: NamespaceFields): Write {
  return { put: { ...namespaceKey(fields.name), ...attributes(fields) }, condition: [ITEM_ABSENT] };
}

/** Returns the write of the record by id, which must be free. */
export function reverse(fields: NamespaceFields): Write {
  const key = namespaceIdKey(fields.namespaceId);
  return { put: { ...key, ...attributes(fields) }, condition: [ITEM_ABSENT] };
}

function attributes({ name, namespaceId, createdAt }: NamespaceFields) {
  return {
    ...inNamespace(RESERVED_NAMESPACE, REGISTRY),
    namespace_name: name,
    namespace_id: namespaceId,
    status: "active",
    created_at: createdAt,
  };
}

export function decodeNamespace(item: Item): Namespace {
  const status = textAt(item, "status");
  return {
    name: textAt(item, "namespace_name") ?? "",
    namespaceId: textAt(item, "namespace_id") ?? "",
    status: status === "deleted" || status === "purging" ? status : "active",
    createdAt: textAt(item, "created_at") ?? "",
  };
}
