/** A manifest of everything that is stored in a namespace. */

import { defined } from "../base/defined.ts";
import { entryOf } from "../base/entry.ts";
import type { Entity } from "../domain/entity.ts";
import { InfrastructureError } from "../domain/errors/errors.ts";
import { isGatewayKey } from "../domain/names.ts";
import type { LimitRecords } from "../records/config/limits.ts";
import { pages } from "../records/cursor.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { Repository } from "../repository/repository.ts";
import { parentsFirst } from "./entity-records.ts";
import { readManaged } from "./managed-record.ts";
import {
  compareTargets,
  distinctTargets,
  type EntityTarget,
  type LevelConfig,
  type Manifest,
  SYSTEM_TARGET,
  type Target,
  targetName,
} from "./manifest.ts";
import { isSilent, readLevels } from "./stored-levels.ts";

/** Reads, and changes nothing. Levels that are stored but say nothing are left out. */
export async function exportManifest(repo: Repository): Promise<Manifest> {
  const { records } = repo[INTERNALS];
  const found = await targetsOf(repo);
  // What the Python library's provisioner wrote is in no registry, only in its own record.
  const managed = await readManaged(records);
  const distinct = distinctTargets([...found, ...managed.targets, ...managed.unsettled]);
  const stored = await readLevels(records, distinct);
  const resources = new Map<string, LevelConfig>();
  const ofEntities = {
    entity: new Map<string, Map<string, LevelConfig>>(),
    children: new Map<string, Map<string, LevelConfig>>(),
  };
  let system: LevelConfig | undefined;
  for (const target of distinct.sort(compareTargets)) {
    const level = stored(target);
    if (level === undefined) continue;
    const config = level.config ?? unreadable(target);
    if (target.level === "system") system = config;
    else if (isSilent(config)) continue;
    else if (target.level === "record") continue;
    else if (target.level === "resource") resources.set(target.resource, config);
    else {
      const configs = entryOf(ofEntities[target.level], target.entityId, () => new Map());
      configs.set(target.resource, config);
    }
  }
  const { entity: entities, children } = ofEntities;
  const namespace = repo.namespaceName;
  const levels = { resources, entities, children, records: await recordsOf(repo) };
  return { namespace, ...defined({ system }), ...levels };
}

/** Returns the entities of trees: those with a parent, those that cascade, and the parents. */
async function recordsOf({ entities }: Repository): Promise<Manifest["records"]> {
  const stored = new Map<string, Entity>();
  for await (const page of pages((from) => entities.list(from))) {
    for (const entity of page.entities) if (!isGatewayKey(entity.id)) stored.set(entity.id, entity);
  }
  const parents = new Set([...stored.values()].map(({ parentId }) => parentId));
  const inTrees = [...stored].filter(
    ([id, { parentId, cascade }]) => parentId !== undefined || cascade || parents.has(id),
  );
  // Where a child does not cascade, the file need not say so; a root has nothing else to say.
  const declared = inTrees.map(([id, { parentId: parent, cascade }]) => {
    const flags = defined({
      parent,
      cascade: cascade || parent === undefined ? cascade : undefined,
    });
    return [id, { record: { limits: [], ...flags } }] as const;
  });
  return parentsFirst(new Map(declared), () => {});
}

/** Returns the places that the registries list. */
async function targetsOf({ limits }: Repository): Promise<Target[]> {
  const targets: Target[] = [SYSTEM_TARGET];
  for (const resource of await limits.listResources())
    targets.push({ level: "resource", resource });
  const listed = async (level: EntityTarget["level"], resources: string[], list: EntityLister) => {
    for (const resource of resources) {
      for await (const { entityIds } of pages((from) => list(resource, from))) {
        targets.push(...entityIds.map((id): Target => ({ level, entityId: id, resource })));
      }
    }
  };
  await listed("entity", await limits.listEntityResources(), (resource, from) =>
    limits.listEntities(resource, from),
  );
  await listed("children", await limits.listChildrenResources(), (resource, from) =>
    limits.listParents(resource, from),
  );
  return targets;
}

type EntityLister = LimitRecords["listEntities"];

/** Refuses to leave out a level that cannot be read: the file would seem complete. */
function unreadable(target: Target): never {
  throw new InfrastructureError(
    `The stored limits of ${targetName(target) ?? "the system"} are invalid. ` +
      "Overwrite or delete them, and export again",
  );
}
