/** A manifest of everything that is stored in a namespace. */

import { defined } from "../base/defined.ts";
import { InfrastructureError } from "../domain/errors/errors.ts";
import { pages } from "../records/cursor.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { Repository } from "../repository/repository.ts";
import { readManaged } from "./managed-record.ts";
import {
  compareTargets,
  distinctTargets,
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
  const entities = new Map<string, Map<string, LevelConfig>>();
  let system: LevelConfig | undefined;
  for (const target of distinct.sort(compareTargets)) {
    const level = stored(target);
    if (level === undefined) continue;
    const config = level.config ?? unreadable(target);
    if (target.level === "system") system = config;
    else if (isSilent(config)) continue;
    else if (target.level === "resource") resources.set(target.resource, config);
    else {
      const configs = entities.get(target.entityId) ?? new Map<string, LevelConfig>();
      entities.set(target.entityId, configs.set(target.resource, config));
    }
  }
  return { namespace: repo.namespaceName, ...defined({ system }), resources, entities };
}

/** Returns the places that the registries list. */
async function targetsOf({ limits }: Repository): Promise<Target[]> {
  const targets: Target[] = [SYSTEM_TARGET];
  for (const resource of await limits.listResources())
    targets.push({ level: "resource", resource });
  for (const resource of await limits.listEntityResources()) {
    for await (const { entityIds } of pages((from) => limits.listEntities(resource, from))) {
      targets.push(...entityIds.map((id): Target => ({ level: "entity", entityId: id, resource })));
    }
  }
  return targets;
}

/** Refuses to leave out a level that cannot be read: the file would seem complete. */
function unreadable(target: Target): never {
  throw new InfrastructureError(
    `The stored limits of ${targetName(target) ?? "the system"} are invalid. ` +
      "Overwrite or delete them, and export again",
  );
}
