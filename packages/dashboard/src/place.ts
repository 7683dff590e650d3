/** One of the levels, and the limits that are stored there. */

import { checkFlag } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkLimits, Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkResource,
  DEFAULT_RESOURCE,
  TOTAL,
} from "@zae-limiter/limiter/domain/names.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { ChangeJson } from "./wire.ts";

/** A place whose parts have been checked. */
export type Place =
  | { readonly level: "system" }
  | { readonly level: "resource"; readonly resource: string }
  | { readonly level: "entity_default" | "parent_default"; readonly entityId: string }
  | EntityPlace;

/** Limits of an entity for a resource; of a parent, those of each entity directly below it. */
interface EntityPlace {
  readonly level: "entity" | "parent";
  readonly entityId: string;
  readonly resource: string;
}

/** A change whose parts have been checked. */
export interface Change {
  readonly place: Place;
  readonly limits: readonly Limit[];
  readonly expected: readonly string[];
  readonly replaceKind: boolean;
}

export function checkChange(body: unknown): Change {
  const given = (body ?? {}) as Partial<ChangeJson>;
  const { level, resource, entityId, limits, expected, replaceKind = false } = given;
  checkFlag("replaceKind", replaceKind);
  return {
    place: checkPlace(level, entityId, resource),
    limits: checkLimits(limits ?? []),
    expected: checkLimits(expected ?? []).map(String),
    replaceKind,
  };
}

/**
 * Returns the limits of a change, with the parts of stored ones that have no text: what is carried
 * into the next period. A limit that has such parts cannot be changed by text.
 */
export function withStoredParts(
  limits: readonly Limit[],
  stored: readonly Limit[],
): readonly Limit[] {
  return limits.map((limit) => {
    const before = stored.find(({ name }) => name === limit.name);
    if (before === undefined || Limit.parse(String(before)).equals(before)) return limit;
    if (String(before) === String(limit)) return before;
    const reason = `the stored limit "${limit.name}" has parts that no text says`;
    throw new ValidationError("limits", String(limit), `${reason}: change it with a limits file`);
  });
}

function checkPlace(level: unknown, entityId: unknown, resource: unknown): Place {
  if (level === "system") return { level };
  if (level === "resource") return { level, resource: checkResource(resource as string) };
  if (level === "entity_default" || level === "parent_default") {
    return { level, entityId: checkEntityId(entityId as string) };
  }
  if (level === "entity" || level === "parent") {
    const id = checkEntityId(entityId as string);
    return { level, entityId: id, resource: checkConfigResource(resource as string) };
  }
  const levels = "system, resource, parent_default, parent, entity_default or entity";
  throw new ValidationError("level", level, `expected ${levels}, got ${String(level)}`);
}

/** Returns the limits that are stored in a place; none when nothing is. */
export async function storedLimits(
  { limits }: Repository,
  place: Place,
): Promise<readonly Limit[]> {
  if (place.level === "system") return (await limits.getSystem()).limits;
  if (place.level === "resource") return limits.getResource(place.resource);
  const { entityId } = place;
  const options = { resource: "resource" in place ? place.resource : DEFAULT_RESOURCE };
  return isForChildren(place)
    ? limits.getChildren(entityId, options)
    : limits.getEntity(entityId, options);
}

/** Returns whether limits hold for the entities directly below one, and not for itself. */
export function isForChildren({ level }: Place): boolean {
  return level === "parent" || level === "parent_default";
}

/** Stores limits in a place, or removes what is there; the same calls as `limits apply` makes. */
export async function storeLimits(
  { limits }: Repository,
  { place, limits: wanted, replaceKind }: Change,
  by: { principal?: string },
): Promise<void> {
  const remove = wanted.length === 0;
  const how = { ...by, replaceKind };
  if (place.level === "system") {
    return remove ? limits.deleteSystem(by) : limits.setSystem(wanted, how);
  }
  if (place.level === "resource") {
    const { resource } = place;
    return remove ? limits.deleteResource(resource, by) : limits.setResource(resource, wanted, how);
  }
  const { entityId } = place;
  const options = "resource" in place ? { ...by, resource: place.resource } : by;
  if (isForChildren(place)) {
    return remove
      ? limits.deleteChildren(entityId, options)
      : limits.setChildren(entityId, wanted, { ...options, replaceKind });
  }
  return remove
    ? limits.deleteEntity(entityId, options)
    : limits.setEntity(entityId, wanted, { ...options, replaceKind });
}

/** Returns the limits that apply to a resource when a place has none: those of the level below. */
export async function limitsBelow(
  repository: Repository,
  place: Place,
  resource: string,
): Promise<readonly Limit[]> {
  for (const level of await placesBelow(repository, place, resource)) {
    const limits = await storedLimits(repository, level);
    if (limits.length > 0) return limits;
  }
  return [];
}

/** Returns the levels below a place, from specific to general. */
async function placesBelow(
  { entities }: Repository,
  place: Place,
  resource: string,
): Promise<readonly Place[]> {
  if (place.level === "system") return [];
  const below: Place[] = [];
  if (place.level === "entity") below.push({ level: "entity_default", entityId: place.entityId });
  if (place.level === "entity" || place.level === "entity_default") {
    const parentId = (await entities.get(place.entityId))?.parentId;
    if (parentId !== undefined) {
      below.push({ level: "parent", entityId: parentId, resource });
      below.push({ level: "parent_default", entityId: parentId });
    }
  }
  if (place.level === "parent") below.push({ level: "parent_default", entityId: place.entityId });
  if (place.level !== "resource") below.push({ level: "resource", resource });
  below.push({ level: "system" });
  // A total has no default levels, and none of the system.
  return resource === TOTAL ? below.filter((each) => "resource" in each) : below;
}
