/** The record of an entity, as it is stored. */

import { Entity } from "../../domain/entity.ts";
import { flagAt, type Item, jsonAt, textAt, type Value } from "../../storage/item.ts";
import { childrenPartition, entityKey, inNamespace, parseEntityPartition } from "../keys.ts";

export function encodeEntity(namespaceId: string, entity: Entity): Item {
  const key = entityKey(namespaceId, entity.id);
  const parent =
    entity.parentId === undefined
      ? {}
      : {
          GSI1PK: childrenPartition(namespaceId, entity.parentId),
          GSI1SK: `CHILD#${entity.id}`,
        };
  return {
    ...key,
    ...inNamespace(namespaceId, key.PK),
    ...parent,
    entity_id: entity.id,
    name: entity.name ?? entity.id,
    parent_id: entity.parentId ?? null,
    cascade: entity.cascade,
    metadata: entity.metadata as Value,
    created_at: entity.createdAt ?? null,
  };
}

/** Returns the entity that the key names: attributes are what any writer put there. */
export function decodeEntity(item: Item): Entity {
  return new Entity({
    id: parseEntityPartition(item.PK)?.entityId ?? "",
    name: textAt(item, "name"),
    parentId: textAt(item, "parent_id"),
    cascade: flagAt(item, "cascade"),
    metadata: jsonAt(item, "metadata"),
    createdAt: textAt(item, "created_at"),
  });
}
