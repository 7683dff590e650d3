/** Flags of config levels: whether a resource is switched off or bypassed, whether it cascades. */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkResource,
  DEFAULT_RESOURCE,
} from "../domain/names.ts";
import type { Item, Key, Value } from "../storage/item.ts";
import type { Write } from "../storage/item-store.ts";
import { resourceSubject } from "./audit.ts";
import { unchanged } from "./config-change.ts";
import { deregistration, isCounted, registration } from "./config-registry.ts";
import { slotNames } from "./config-resolver.ts";
import { valueAt } from "./fields.ts";
import {
  entityConfigKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  inNamespace,
  resourceConfigKey,
  resourceRegistryKey,
} from "./keys.ts";

/** The place of a flag: a resource, an entity, or an entity for one resource. */
export interface FlagTarget {
  /** The entity; absent for a whole resource. */
  readonly entityId?: string;
  /** The resource; absent for all resources of an entity. */
  readonly resource?: string;
}

/** A place that was checked. Without an entity it is the resource itself. */
export interface FlagLevel {
  readonly entityId: string | undefined;
  /** `_default_` for all resources of an entity. */
  readonly resource: string;
}

/** Checks the place of a flag: an entity, a resource, or both. */
export function checkFlagTarget(target: FlagTarget): FlagLevel {
  const { entityId, resource } = target;
  if (entityId !== undefined) {
    checkEntityId(entityId);
    return { entityId, resource: checkConfigResource(resource ?? DEFAULT_RESOURCE) };
  }
  if (resource !== undefined) return { entityId, resource: checkResource(resource) };
  const reason = `expected entityId, resource or both, got ${show(target)} with neither`;
  throw new ValidationError("target", target, reason);
}

export function flagKey(namespaceId: string, { entityId, resource }: FlagLevel): Key {
  return entityId === undefined
    ? resourceConfigKey(namespaceId, resource)
    : entityConfigKey(namespaceId, entityId, resource);
}

export function flagRegistryKey(namespaceId: string, { entityId }: FlagLevel): Key {
  return entityId === undefined
    ? resourceRegistryKey(namespaceId)
    : entityConfigRegistryKey(namespaceId);
}

/** The subject of audit events about a place. */
export function flagSubject({ entityId, resource }: FlagLevel): string {
  return entityId ?? resourceSubject(resource);
}

/** The name of a place in the cache of limits. */
export function flagSlot({ entityId, resource }: FlagLevel): string {
  return entityId === undefined
    ? slotNames.resource(resource)
    : slotNames.entity(entityId, resource);
}

/** Writes a flag into the item of its level, which is made and registered where it is missing. */
export function setFlag(
  namespaceId: string,
  level: FlagLevel,
  item: Item | undefined,
  name: string,
  value: Value,
): Write[] {
  const { entityId, resource } = level;
  const key = flagKey(namespaceId, level);
  const identity =
    entityId === undefined
      ? { resource }
      : {
          entity_id: entityId,
          resource,
          GSI3PK: entityConfigPartition(namespaceId, resource),
          GSI3SK: entityId,
        };
  const set = { ...inNamespace(namespaceId, key.PK), ...identity, [name]: value };
  const registryKey = flagRegistryKey(namespaceId, level);
  const register: Write =
    entityId === undefined
      ? {
          update: registryKey,
          change: {
            addToSet: { resources: [resource] },
            setIfAbsent: inNamespace(namespaceId, registryKey.PK),
          },
        }
      : registration(registryKey, namespaceId, resource);
  const isRegistered = entityId !== undefined && isCounted(item);
  return [
    { update: key, change: { set }, condition: unchanged(item) },
    ...(isRegistered ? [] : [register]),
  ];
}

/** Removes a flag; an item that says nothing else goes with it. */
export function clearFlag(
  namespaceId: string,
  level: FlagLevel,
  item: Item,
  registry: Item | undefined,
  name: string,
): Write[] {
  const key = { PK: item.PK, SK: item.SK };
  const condition = unchanged(item);
  if (saysMore(item, name)) return [{ update: key, change: { remove: [name] }, condition }];
  const unregister = unregistration(namespaceId, level, item, registry);
  return [{ delete: key, condition }, ...(unregister === undefined ? [] : [unregister])];
}

function unregistration(
  namespaceId: string,
  level: FlagLevel,
  item: Item,
  registry: Item | undefined,
): Write | undefined {
  const update = flagRegistryKey(namespaceId, level);
  const { entityId, resource } = level;
  if (entityId !== undefined) {
    return deregistration(update, registry, isCounted(item) ? [resource] : []);
  }
  if (registry === undefined) return undefined;
  return { update, change: { deleteFromSet: { resources: [resource] } } };
}

const IDENTITY = ["PK", "SK", "entity_id", "resource", "config_version"];

/** Whether an item has anything besides its keys and a flag. */
function saysMore(item: Item, flag: string): boolean {
  return Object.keys(item).some(
    (name) =>
      name !== flag &&
      !IDENTITY.includes(name) &&
      !name.startsWith("GSI") &&
      valueAt(item, name) !== undefined,
  );
}
