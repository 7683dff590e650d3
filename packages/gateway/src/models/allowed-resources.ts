/** Which resources an entity may use: those that are not switched off for it or its ancestors. */

import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { ANCESTORS_MAX } from "@zae-limiter/limiter/records/entities/entities.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { IsAllowed } from "./models.ts";

/** Returns the check for one entity; it reads the entity and its ancestors once. */
export function allowedFor(repository: Repository, entityId: string): IsAllowed {
  const { resolver } = repository[INTERNALS];
  const read = new Map<string, Promise<Entity | undefined>>();
  const entityOf = (id: string) => {
    const entity = read.get(id) ?? repository.entities.get(id);
    read.set(id, entity);
    return entity;
  };
  return async (resource) => {
    let id: string | undefined = entityId;
    for (let depth = 0; id !== undefined && depth <= ANCESTORS_MAX; depth += 1) {
      const { disabledAt, cascade } = await resolver.resolution(id, resource);
      if (disabledAt !== undefined) return false;
      const entity: Entity | undefined = await entityOf(id);
      id = (cascade ?? entity?.cascade) === true ? entity?.parentId : undefined;
    }
    return true;
  };
}
