/** Entities for the page: lists with search, children, and one entity with all that it has. */

import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { GATEWAY_KEY_PREFIX, isGatewayKey } from "@zae-limiter/limiter/domain/names.ts";
import { decodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { childrenPartition } from "@zae-limiter/limiter/records/keys.ts";
import { queryRecords } from "@zae-limiter/limiter/records/query-records.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { wholeBalances } from "./balance.ts";
import type { AllowanceJson, EntityDetailJson, EntityJson, EntityPageJson } from "./wire.ts";

const PAGE = 50;
/** Pages that are read to find entities without a parent. */
const PAGES_MAX = 10;
const CHILDREN_MAX = 200;
const ANCESTORS_MAX = 10;
const RESOURCES_MAX = 30;

/**
 * Returns entities by id, and keys of a gateway only where they are searched for. `roots`: only
 * those without a parent.
 */
export async function listEntities(
  repository: Repository,
  options: { prefix: string; cursor: string | undefined; roots: boolean; limit?: number },
): Promise<EntityPageJson> {
  const { prefix, cursor, roots, limit = PAGE } = options;
  const withKeys = prefix.startsWith(GATEWAY_KEY_PREFIX);
  const isShown = ({ id, parentId }: Entity) =>
    roots ? parentId === undefined : withKeys || !isGatewayKey(id);
  const found: Entity[] = [];
  let next = cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { entities, cursor: after } = await repository.entities.list({
      limit,
      ...(prefix === "" ? {} : { prefix }),
      ...(next === undefined ? {} : { cursor: next }),
    });
    found.push(...entities.filter(isShown));
    next = after;
    if (next === undefined || found.length >= limit / 2) break;
  }
  return { entities: await withChildren(repository, found), cursor: next ?? null };
}

/** Returns the first children of an entity, by id. */
export async function listChildren(repository: Repository, id: string): Promise<EntityPageJson> {
  const children = await childrenOf(repository, id, CHILDREN_MAX);
  return { entities: await withChildren(repository, children), cursor: null };
}

/** Returns one entity, created or not: its place in the hierarchy, its limits and its buckets. */
export async function entityDetail(repository: Repository, id: string): Promise<EntityDetailJson> {
  const { clock, buckets } = repository[INTERNALS];
  const [entity, states, resources] = await Promise.all([
    repository.entities.get(id),
    buckets.list(id),
    repository.limits.listResources(),
  ]);
  const balances = wholeBalances(states);
  const names = [...new Set([...balances.map(({ resource }) => resource), ...resources])];
  const allowances = await Promise.all(
    names.slice(0, RESOURCES_MAX).map(async (resource): Promise<AllowanceJson> => {
      const resolved = await repository.limits.resolve(id, resource);
      return {
        resource,
        source: resolved?.source ?? null,
        limits: resolved?.limits.map(String) ?? [],
        balances: balances.filter((balance) => balance.resource === resource),
      };
    }),
  );
  return {
    id,
    entity: entity === undefined ? null : entityJson(entity),
    ancestors: await ancestorsOf(repository, entity),
    allowances,
    atMs: clock(),
  };
}

async function ancestorsOf(repository: Repository, entity: Entity | undefined): Promise<string[]> {
  const ancestors: string[] = [];
  let parentId = entity?.parentId;
  while (parentId !== undefined && ancestors.length < ANCESTORS_MAX) {
    ancestors.push(parentId);
    parentId = (await repository.entities.get(parentId))?.parentId;
  }
  return ancestors;
}

async function withChildren(
  repository: Repository,
  entities: readonly Entity[],
): Promise<EntityJson[]> {
  return Promise.all(
    entities.map(async (entity) => ({
      ...entityJson(entity),
      hasChildren: (await childrenOf(repository, entity.id, 1)).length > 0,
    })),
  );
}

async function childrenOf(repository: Repository, id: string, limit: number): Promise<Entity[]> {
  const { records } = repository[INTERNALS];
  const partition = childrenPartition(records.namespaceId, id);
  const children: Entity[] = [];
  for await (const item of queryRecords(records, { index: "GSI1", partition, limit })) {
    children.push(decodeEntity(item));
  }
  return children;
}

function entityJson(entity: Entity): EntityJson {
  return {
    id: entity.id,
    name: entity.name ?? null,
    parentId: entity.parentId ?? null,
    cascade: entity.cascade,
    createdAt: entity.createdAt ?? null,
    metadata: entity.metadata,
  };
}
