/** A level that is an item of its own: a resource, an entity, or the children of an entity. */

import { show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkResource,
  DEFAULT_RESOURCE,
} from "../../domain/names.ts";
import { type Item, type Key, type Value, valueAt } from "../../storage/item.ts";
import type { Write } from "../../storage/item-store.ts";
import { resourceSubject } from "../audit.ts";
import {
  childrenConfigKey,
  childrenConfigPartition,
  childrenConfigRegistryKey,
  entityConfigKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  inNamespace,
  resourceConfigKey,
  resourceRegistryKey,
} from "../keys.ts";
import { unchanged } from "./config-change.ts";
import { deregistration, isCounted, registration, resourcesIn } from "./config-registry.ts";
import { slotNames } from "./config-slots.ts";

/** The place of a flag: a resource, an entity, or an entity for one resource. */
export interface FlagTarget {
  /** The entity; absent for a whole resource. */
  readonly entityId?: string;
  /** The resource; absent for all resources of an entity. */
  readonly resource?: string;
}

/** How a level is keyed, listed, audited and cached. */
export interface ConfigLevel {
  /** The entity; `undefined` for the resource itself. */
  readonly entityId: string | undefined;
  /** The resource; `_default_` for all resources of an entity. */
  readonly resource: string;
  readonly key: Key;
  /** The item that lists the levels of this kind. */
  readonly registryKey: Key;
  readonly subject: string;
  /** Details of its audit events, besides the limits. */
  readonly details?: Readonly<Record<string, string>>;
  /** Whether the Python library does not know the level, so that its stamps do not matter. */
  readonly isUnknownToPython?: true;
  /** Its place in the cache of limits. */
  readonly slot: string;
  /** Attributes of its item besides limits and flags. */
  readonly attributes: Readonly<Record<string, Value>>;
  /** Whether the item that lists the levels of this kind has it. */
  isRegistered(registry: Item | undefined): boolean;
  /** Returns the writes that list it, next to one that makes its item. */
  register(item: Item | undefined): readonly Write[];
  /** Returns the writes that take it off the list, next to one that deletes its item. */
  unregister(item: Item, registry: Item | undefined): readonly Write[];
}

/** Checks a place and returns its level: that of an entity, of a resource, or of both. */
export function checkLevel(namespaceId: string, target: FlagTarget): ConfigLevel {
  const { entityId, resource } = target;
  if (entityId !== undefined) {
    checkEntityId(entityId);
    const name = checkConfigResource(resource ?? DEFAULT_RESOURCE);
    return entityLevel(namespaceId, entityId, name);
  }
  if (resource !== undefined) return resourceLevel(namespaceId, checkResource(resource));
  const reason = `expected entityId, resource or both, got ${show(target)} with neither`;
  throw new ValidationError("target", target, reason);
}

/** Returns a write to the item of a level, and if that deletes it, those that unlist the level. */
export function unlisting(
  level: ConfigLevel,
  write: Write,
  item: Item,
  registry: Item | undefined,
): readonly Write[] {
  return "delete" in write ? [write, ...level.unregister(item, registry)] : [write];
}

/** Writes a flag into the item of its level, which is made and registered where it is missing. */
export function setFlag(
  namespaceId: string,
  level: ConfigLevel,
  item: Item | undefined,
  name: string,
  value: Value,
): readonly Write[] {
  const { key, attributes } = level;
  const set = { ...inNamespace(namespaceId, key.PK), ...attributes, [name]: value };
  return [{ update: key, change: { set }, condition: unchanged(item) }, ...level.register(item)];
}

/** Removes a flag; an item that says nothing else goes with it. */
export function clearFlag(
  level: ConfigLevel,
  item: Item,
  registry: Item | undefined,
  name: string,
): readonly Write[] {
  const key = { PK: item.PK, SK: item.SK };
  const condition = unchanged(item);
  const write: Write = saysMore(item, name)
    ? { update: key, change: { remove: [name] }, condition }
    : { delete: key, condition };
  return unlisting(level, write, item, registry);
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

function resourceLevel(namespaceId: string, resource: string): ConfigLevel {
  const registryKey = resourceRegistryKey(namespaceId);
  const names = { resources: [resource] };
  const setIfAbsent = inNamespace(namespaceId, registryKey.PK);
  return {
    entityId: undefined,
    resource,
    key: resourceConfigKey(namespaceId, resource),
    registryKey,
    subject: resourceSubject(resource),
    slot: slotNames.resource(resource),
    attributes: { resource },
    isRegistered: (registry) => resourcesIn(registry).includes(resource),
    register: () => [{ update: registryKey, change: { addToSet: names, setIfAbsent } }],
    // Limits that other tools wrote may be in no registry; an update would create an empty
    // registry.
    unregister: (_, registry) =>
      registry === undefined ? [] : [{ update: registryKey, change: { deleteFromSet: names } }],
  };
}

function entityLevel(namespaceId: string, entityId: string, resource: string): ConfigLevel {
  return {
    entityId,
    key: entityConfigKey(namespaceId, entityId, resource),
    slot: slotNames.entity(entityId, resource),
    ...countedLevel(namespaceId, entityId, resource, {
      registryKey: entityConfigRegistryKey(namespaceId),
      partition: entityConfigPartition(namespaceId, resource),
    }),
  };
}

/** Returns the level of the limits that a parent stores for the entities directly below it. */
export function childrenLevel(
  namespaceId: string,
  parentId: string,
  resource: string,
): ConfigLevel {
  return {
    // Buckets of its children follow as those of a resource do: with the next call.
    entityId: undefined,
    key: childrenConfigKey(namespaceId, parentId, resource),
    slot: slotNames.children(parentId, resource),
    details: { level: "children" },
    isUnknownToPython: true,
    ...countedLevel(namespaceId, parentId, resource, {
      registryKey: childrenConfigRegistryKey(namespaceId),
      partition: childrenConfigPartition(namespaceId, resource),
    }),
  };
}

/** Returns the parts of a level of an entity, whose items are indexed and counted per resource. */
function countedLevel(
  namespaceId: string,
  entityId: string,
  resource: string,
  { registryKey, partition }: { readonly registryKey: Key; readonly partition: string },
): Omit<ConfigLevel, "entityId" | "key" | "slot"> {
  return {
    resource,
    registryKey,
    subject: entityId,
    attributes: { entity_id: entityId, resource, GSI3PK: partition, GSI3SK: entityId },
    // An item in the index is counted, and one that is not in it lacks an attribute.
    isRegistered: () => true,
    register: (item) => (isCounted(item) ? [] : [registration(registryKey, namespaceId, resource)]),
    unregister: (item, registry) => {
      const write = deregistration(registryKey, registry, isCounted(item) ? [resource] : []);
      return write === undefined ? [] : [write];
    },
  };
}
