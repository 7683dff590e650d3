/** Entities for the page: lists with search, children, and one entity with all that it has. */

import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import {
  DEFAULT_RESOURCE,
  GATEWAY_KEY_PREFIX,
  isGatewayKey,
} from "@zae-limiter/limiter/domain/names.ts";
import { decodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { childrenPartition, entityKey } from "@zae-limiter/limiter/records/keys.ts";
import { queryRecords } from "@zae-limiter/limiter/records/query-records.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { wholeBalances } from "./balance.ts";
import { limitTexts } from "./limit-texts.ts";
import type {
  AllowanceJson,
  AncestorJson,
  BalanceJson,
  EntityDetailJson,
  EntityJson,
  EntityPageJson,
} from "./wire.ts";

const PAGE = 50;
/** Pages that are read to find entities without a parent. */
const PAGES_MAX = 10;
const CHILDREN_MAX = 200;
const ANCESTORS_MAX = 10;
const RESOURCES_MAX = 30;

/**
 * Returns entities by id, and keys of a gateway only where they are searched for. `roots`: only
 * those without a parent, or whose parent does not exist.
 */
export async function listEntities(
  repository: Repository,
  options: { prefix: string; cursor: string | undefined; roots: boolean; limit?: number },
): Promise<EntityPageJson> {
  const { prefix, cursor, roots, limit = PAGE } = options;
  const withKeys = prefix.startsWith(GATEWAY_KEY_PREFIX);
  const shownOf = async (entities: readonly Entity[]) => {
    if (!roots) return entities.filter(({ id }) => withKeys || !isGatewayKey(id));
    const orphans = await orphansAmong(repository, entities);
    return entities.filter((entity) => entity.parentId === undefined || orphans.has(entity));
  };
  const found: Entity[] = [];
  let next = cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { entities, cursor: after } = await repository.entities.list({
      limit,
      ...(prefix === "" ? {} : { prefix }),
      ...(next === undefined ? {} : { cursor: next }),
    });
    found.push(...(await shownOf(entities)));
    next = after;
    if (next === undefined || found.length >= limit / 2) break;
  }
  return { entities: await withChildren(repository, found), cursor: next ?? null };
}

/** Returns those of some entities whose parent does not exist. */
async function orphansAmong(
  repository: Repository,
  entities: readonly Entity[],
): Promise<ReadonlySet<Entity>> {
  const { records } = repository[INTERNALS];
  const named = entities.filter(({ parentId }) => parentId !== undefined);
  const ids = [...new Set(named.map(({ parentId }) => parentId as string))];
  const parents = await records.store.getMany(ids.map((id) => entityKey(records.namespaceId, id)));
  const missing = new Set(ids.filter((_, at) => parents[at] === undefined));
  return new Set(named.filter(({ parentId }) => missing.has(parentId as string)));
}

/** Returns the first children of an entity, by id. */
export async function listChildren(repository: Repository, id: string): Promise<EntityPageJson> {
  const children = await childrenOf(repository, id, CHILDREN_MAX);
  return { entities: await withChildren(repository, children), cursor: null };
}

/** Returns one entity, created or not: its place in the hierarchy, its limits and its buckets. */
export async function entityDetail(repository: Repository, id: string): Promise<EntityDetailJson> {
  const internals = repository[INTERNALS];
  const [entity, states, own, resources] = await Promise.all([
    repository.entities.get(id),
    internals.buckets.list(id),
    ownResources(repository, id),
    repository.limits.listResources(),
  ]);
  const balances = wholeBalances(states);
  const used = balances.map(({ resource }) => resource);
  const names = [...new Set([...used, ...own, ...resources])];
  const ancestors = await ancestorsOf(repository, entity);
  const buckets = new Map<string, readonly BalanceJson[]>([[id, balances]]);
  for (const above of ancestors) {
    buckets.set(above.id, wholeBalances(await internals.buckets.list(above.id)));
  }
  const allowances = await Promise.all(
    names
      .slice(0, RESOURCES_MAX)
      .map((resource) =>
        allowanceOf(
          repository,
          [entity ?? { id, cascade: false }, ...ancestors],
          resource,
          buckets,
        ),
      ),
  );
  return {
    id,
    entity: entity === undefined ? null : entityJson(entity),
    ancestors: ancestors.map((above) => above.id),
    allowances,
    atMs: internals.clock(),
  };
}

/** Returns the resources for which an entity has limits or a switch of its own. */
async function ownResources({ limits }: Repository, entityId: string): Promise<string[]> {
  const names = (await limits.listEntityResources()).filter((name) => name !== DEFAULT_RESOURCE);
  const levels = await Promise.all(
    names.slice(0, RESOURCES_MAX).map((resource) => limits.level({ entityId, resource })),
  );
  return names.filter((_, at) => {
    const level = levels[at];
    return level !== undefined && (level.limits.length > 0 || level.state !== undefined);
  });
}

/** An entity in the chain that a call may cascade along; an orphan's parent has only an id. */
type Link = Pick<Entity, "id" | "cascade">;

/** Returns what applies to the first of a chain for a resource, and what it cascades to. */
async function allowanceOf(
  repository: Repository,
  [own, ...above]: readonly [Link, ...Link[]],
  resource: string,
  buckets: ReadonlyMap<string, readonly BalanceJson[]>,
): Promise<AllowanceJson> {
  const { resolver } = repository[INTERNALS];
  const { limits, cascade, ...shown } = await legOf(repository, own.id, resource, buckets);
  const ancestors: AncestorJson[] = [];
  let cascades = cascade ?? own.cascade;
  for (const { id, cascade: recorded } of above) {
    if (!cascades) break;
    const leg = await legOf(repository, id, resource, buckets);
    ancestors.push({ entityId: id, state: leg.state, balances: leg.balances });
    cascades = leg.cascade ?? recorded;
  }
  const { disabledAt } = await resolver.current(own.id, resource);
  return {
    resource,
    source: limits?.source ?? null,
    ...limitTexts(limits?.limits ?? []),
    ...shown,
    disabledAt: disabledAt ?? null,
    ancestors,
  };
}

/** Returns how one entity decides about a resource, with the balances of its bucket. */
async function legOf(
  repository: Repository,
  id: string,
  resource: string,
  buckets: ReadonlyMap<string, readonly BalanceJson[]>,
) {
  const { limits, disabledAt, bypassed, cascade } = await repository[INTERNALS].resolver.current(
    id,
    resource,
  );
  const soft = new Set(limits?.limits.filter((limit) => limit.soft).map(({ name }) => name));
  const state = disabledAt !== undefined ? "disabled" : bypassed ? "bypass" : "enforced";
  const balances = (buckets.get(id) ?? [])
    .filter((balance) => balance.resource === resource)
    .map((balance) => {
      if (state !== "enforced") return { ...balance, mark: state } as const;
      return soft.has(balance.limitName) ? ({ ...balance, mark: "soft" } as const) : balance;
    });
  return { limits, state, cascade, balances } as const;
}

/** Returns the ancestors of an entity, the parent first; one that does not exist ends the list. */
async function ancestorsOf(repository: Repository, entity: Entity | undefined): Promise<Link[]> {
  const ancestors: Link[] = [];
  let parentId = entity?.parentId;
  while (parentId !== undefined && ancestors.length < ANCESTORS_MAX) {
    const parent: Entity | undefined = await repository.entities.get(parentId);
    ancestors.push(parent ?? { id: parentId, cascade: false });
    parentId = parent?.parentId;
  }
  return ancestors;
}

async function withChildren(
  repository: Repository,
  entities: readonly Entity[],
): Promise<EntityJson[]> {
  const orphans = await orphansAmong(repository, entities);
  return Promise.all(
    entities.map(async (entity) => ({
      ...entityJson(entity),
      ...(orphans.has(entity) ? { isOrphan: true } : {}),
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
