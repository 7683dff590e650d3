/** The limits of all four levels for the page, and the change of one place. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { DEFAULT_RESOURCE } from "@zae-limiter/limiter/domain/names.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { type Change, storedLimits, storeLimits } from "./place.ts";
import { failure, RequestFailure } from "./server/failure.ts";
import type { EntityLimitsJson, LimitsJson, StoredLimitsJson } from "./wire.ts";

const PAGE = 50;

/** The limits of the system and of all resources, and where entities have limits of their own. */
export async function allLimits({ limits }: Repository): Promise<LimitsJson> {
  const [system, names, entityResources] = await Promise.all([
    limits.getSystem(),
    limits.listResources(),
    limits.listEntityResources(),
  ]);
  const resources = await Promise.all(
    names.map(async (resource) => {
      const stored = await limits.getResource(resource);
      return { level: "resource", resource, limits: stored.map(String) } as const;
    }),
  );
  return {
    system: system.limits.map(String),
    onUnavailable: system.onUnavailable ?? null,
    resources,
    entityResources: entityResources.filter((name) => name !== DEFAULT_RESOURCE),
    entityDefaults: entityResources.includes(DEFAULT_RESOURCE),
  };
}

/** Entities with limits of their own: for a resource, or for all resources without one. */
export async function entityLimits(
  { limits }: Repository,
  resource: string | undefined,
  cursor: string | undefined,
): Promise<EntityLimitsJson> {
  const name = resource ?? DEFAULT_RESOURCE;
  const page = await limits.listEntities(name, { limit: PAGE, ...defined({ cursor }) });
  const found = await Promise.all(
    page.entityIds.map(async (entityId): Promise<StoredLimitsJson> => {
      const stored = await limits.getEntity(entityId, { resource: name });
      const place =
        resource === undefined
          ? ({ level: "entity_default", entityId } as const)
          : ({ level: "entity", entityId, resource } as const);
      return { ...place, limits: stored.map(String) };
    }),
  );
  return { limits: found, cursor: page.cursor ?? null };
}

/** Makes a change, unless something else is stored than the page has shown. */
export async function saveLimits(
  repository: Repository,
  change: Change,
  principal: string | undefined,
): Promise<StoredLimitsJson> {
  const stored = (await storedLimits(repository, change.place)).map(String);
  if (!sameTexts(stored, change.expected)) {
    const now = stored.length === 0 ? "none" : stored.join(" ");
    throw new RequestFailure(
      failure(409, "changed", `Another change was made meanwhile; the limits are now: ${now}`),
    );
  }
  await storeLimits(repository, change, defined({ principal }));
  return { ...change.place, limits: change.limits.map(String) };
}

function sameTexts(left: readonly string[], right: readonly string[]): boolean {
  const [a, b] = [left, right].map((texts) => [...texts].sort().join("\n"));
  return a === b;
}
