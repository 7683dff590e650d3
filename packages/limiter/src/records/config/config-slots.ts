/** The cached items that the limits of an entity for a resource are found in. */

import { DEFAULT_RESOURCE, TOTAL } from "../../domain/names.ts";
import { type Item, type Key, textAt } from "../../storage/item.ts";
import { retentionDaysIn } from "../audit.ts";
import {
  childrenConfigKey,
  entityConfigKey,
  entityKey,
  resourceConfigKey,
  systemConfigKey,
} from "../keys.ts";
import { cascadeIn, disabledIn } from "../python-attributes.ts";
import type { ConfigSlot } from "./config-cache.ts";
import { decodeLimits, onUnavailableIn, unsupportedLimits } from "./limit-attributes.ts";

/** Names of slots in the cache. */
export const slotNames = {
  system: "system",
  resource: (resource: string) => `resource#${resource}`,
  entity: (entityId: string, resource: string) => `entity#${entityId}#${resource}`,
  children: (parentId: string, resource: string) => `children#${parentId}#${resource}`,
  record: (entityId: string) => `record#${entityId}`,
} as const;

/** A slot with the item that it holds. */
export interface SlotRef {
  readonly name: string;
  readonly key: Key;
}

/** Slots by their names; `undefined` where one is not known. */
export type KnownSlots = (name: string) => ConfigSlot | undefined;

/** Returns the slots to read for an entity and a resource, as far as those known lead to them. */
export function refsOf(
  namespaceId: string,
  entityId: string,
  resource: string,
  known: KnownSlots,
): readonly SlotRef[] {
  const of = (each: string): SlotRef => ({
    name: slotNames.entity(entityId, each),
    key: entityConfigKey(namespaceId, entityId, each),
  });
  const refs = [
    of(resource),
    of(DEFAULT_RESOURCE),
    { name: slotNames.resource(resource), key: resourceConfigKey(namespaceId, resource) },
    { name: slotNames.system, key: systemConfigKey(namespaceId) },
  ];
  const system = known(slotNames.system);
  if (system === undefined || !hasChildrenLimits(system, resource)) return refs;
  refs.push({ name: slotNames.record(entityId), key: entityKey(namespaceId, entityId) });
  const parentId = known(slotNames.record(entityId))?.parentId;
  if (parentId === undefined) return refs;
  for (const each of [resource, DEFAULT_RESOURCE]) {
    const key = childrenConfigKey(namespaceId, parentId, each);
    refs.push({ name: slotNames.children(parentId, each), key });
  }
  return refs;
}

/** Returns the slots in the order of `CONFIG_LEVELS`; `undefined` when one is not known. */
export function slotsOf(
  entityId: string,
  resource: string,
  known: KnownSlots,
): readonly ConfigSlot[] | undefined {
  const system = known(slotNames.system);
  const own = known(slotNames.entity(entityId, resource));
  const byDefault = known(slotNames.entity(entityId, DEFAULT_RESOURCE));
  const ofResource = known(slotNames.resource(resource));
  if (!system || !own || !byDefault || !ofResource) return undefined;
  const parents = parentSlots(entityId, resource, system, known);
  if (parents === undefined) return undefined;
  const slots = [own, byDefault, parents[0], parents[1], ofResource, system] as const;
  if (resource !== TOTAL) return slots;
  // A total has levels of an entity, of its parent and of the resource: no default, no system.
  return slots.map((slot, at) => (at % 2 === 0 ? slot : withoutLimits(slot)));
}

/** Returns whether some entity has limits for its children that may apply to the resource. */
function hasChildrenLimits({ childrenResources }: ConfigSlot, resource: string): boolean {
  if (childrenResources.length === 0) return false;
  const byDefault = resource !== TOTAL && childrenResources.includes(DEFAULT_RESOURCE);
  return byDefault || childrenResources.includes(resource);
}

/** Returns the slots of the two levels of the parent; `undefined` when one is not known. */
function parentSlots(
  entityId: string,
  resource: string,
  system: ConfigSlot,
  known: KnownSlots,
): readonly [ConfigSlot, ConfigSlot] | undefined {
  if (!hasChildrenLimits(system, resource)) return [withoutLimits(system), withoutLimits(system)];
  const record = known(slotNames.record(entityId));
  if (record === undefined) return undefined;
  // Without a parent both levels are empty, which is as new as the record.
  if (record.parentId === undefined) return [record, record];
  const own = known(slotNames.children(record.parentId, resource));
  const byDefault = known(slotNames.children(record.parentId, DEFAULT_RESOURCE));
  return own && byDefault && [own, byDefault];
}

function withoutLimits(slot: ConfigSlot): ConfigSlot {
  return { ...slot, limits: [], unsupported: [], disabled: undefined, cascade: undefined };
}

const NO_RESOURCES: readonly string[] = Object.freeze([]);

/** The values of a level without an item, as most entities have it. */
const NO_VALUES: ReturnType<typeof valuesIn> = {
  limits: Object.freeze([]),
  unsupported: [],
  disabled: undefined,
  cascade: undefined,
  onUnavailable: undefined,
  auditRetentionDays: undefined,
  parentId: undefined,
};

function valuesIn(item: Item) {
  return {
    // Frozen, because all callers share the list.
    limits: Object.freeze(decodeLimits(item)),
    unsupported: unsupportedLimits(item),
    disabled: disabledIn(item),
    cascade: cascadeIn(item),
    onUnavailable: onUnavailableIn(item),
    auditRetentionDays: retentionDaysIn(item),
    parentId: textAt(item, "parent_id"),
  };
}

/** Returns the slot of an item; `undefined` is one that is not stored. */
export function slotOf(item: Item | undefined, asOf: number, expiresAtMs: number): ConfigSlot {
  const { limits, unsupported, disabled, cascade, onUnavailable, auditRetentionDays, parentId } =
    item === undefined ? NO_VALUES : valuesIn(item);
  return {
    limits,
    unsupported,
    disabled,
    cascade,
    onUnavailable,
    auditRetentionDays,
    parentId,
    childrenResources: NO_RESOURCES,
    inactive: undefined,
    incompatible: undefined,
    asOf,
    expiresAtMs,
  };
}
