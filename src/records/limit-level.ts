/** A level that stores limits as an item of its own: a resource, or an entity for a resource. */

import type { Item, Key, Value } from "../storage/item.ts";
import type { Write } from "../storage/item-store.ts";
import { resourceSubject } from "./audit.ts";
import { hasFlags } from "./config-item.ts";
import { deregistration, isCounted, registration } from "./config-registry.ts";
import { slotNames } from "./config-resolver.ts";
import {
  entityConfigKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  inNamespace,
  resourceConfigKey,
  resourceRegistryKey,
} from "./keys.ts";

export interface LimitLevel {
  readonly key: Key;
  /** The item that lists the levels of this kind. */
  readonly registryKey: Key;
  readonly resource: string;
  /** The subject of its audit events. */
  readonly subject: string;
  /** Its place in the cache of limits. */
  readonly slot: string;
  /** What its item says besides limits. */
  readonly attributes: Readonly<Record<string, Value>>;
  /** The writes that list it, next to one that sets its limits. */
  register(item: Item | undefined): readonly Write[];
  /** The writes that take it off the list, next to one that deletes its limits. */
  unregister(item: Item, registry: Item | undefined): readonly Write[];
}

export function resourceLevel(namespaceId: string, resource: string): LimitLevel {
  const registryKey = resourceRegistryKey(namespaceId);
  const names = { resources: [resource] };
  const setIfAbsent = inNamespace(namespaceId, registryKey.PK);
  return {
    key: resourceConfigKey(namespaceId, resource),
    registryKey,
    resource,
    subject: resourceSubject(resource),
    slot: slotNames.resource(resource),
    attributes: { resource },
    register: () => [{ update: registryKey, change: { addToSet: names, setIfAbsent } }],
    // Limits that others wrote may be in no registry; an update would make an empty one.
    unregister: (item, registry) =>
      registry === undefined || hasFlags(item)
        ? []
        : [{ update: registryKey, change: { deleteFromSet: names } }],
  };
}

export function entityLevel(namespaceId: string, entityId: string, resource: string): LimitLevel {
  const registryKey = entityConfigRegistryKey(namespaceId);
  return {
    key: entityConfigKey(namespaceId, entityId, resource),
    registryKey,
    resource,
    subject: entityId,
    slot: slotNames.entity(entityId, resource),
    attributes: {
      entity_id: entityId,
      resource,
      GSI3PK: entityConfigPartition(namespaceId, resource),
      GSI3SK: entityId,
    },
    register: (item) => (isCounted(item) ? [] : [registration(registryKey, namespaceId, resource)]),
    unregister: (item, registry) => {
      const counted = isCounted(item) && !hasFlags(item) ? [resource] : [];
      const write = deregistration(registryKey, registry, counted);
      return write === undefined ? [] : [write];
    },
  };
}
