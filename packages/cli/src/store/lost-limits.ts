/**
 * Warns of limits that an entity loses. The most specific level with limits replaces the others as
 * a whole, so an entity whose own limits lack a name has no such limit any more.
 */

import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { DEFAULT_RESOURCE, TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { LimitRecords } from "@zae-limiter/limiter/records/config/limits.ts";
import { warningText } from "../terminal/limit-text.ts";

/** Maximum number of entities that are checked when limits of a resource or the system are set. */
const ENTITIES_MAX = 50;

/** The limits of an owner, per resource or `_default_`. */
type OwnLimits = ReadonlyMap<string, readonly Limit[]>;

/** The limits that apply where an entity has none of its own. */
export interface GeneralLevels {
  resource(name: string): Promise<readonly Limit[]>;
  system(): Promise<readonly Limit[]>;
  resources(): Promise<readonly string[]>;
}

interface Level {
  readonly name: string;
  readonly limits: readonly Limit[];
}

export function storedLevels(limits: LimitRecords): GeneralLevels {
  return {
    resource: (name) => limits.getResource(name),
    system: async () => (await limits.getSystem()).limits,
    resources: () => limits.listResources(),
  };
}

/**
 * Returns one line for each level with limits that an owner's own limits lack; the owner is an
 * entity, or the children of one.
 */
export async function lostLimits(
  owner: string,
  own: OwnLimits,
  levels: GeneralLevels,
): Promise<string[]> {
  const lines: string[] = [];
  for (const [resource, limits] of own) {
    const compared =
      resource === DEFAULT_RESOURCE
        ? await behindDefault(own, levels)
        : await behindResource(owner, resource, own, levels);
    lines.push(...compared.flatMap((level) => lossLine(`${owner}/${resource}`, limits, level)));
  }
  return lines;
}

/** Returns the owner of the limits that an entity stores for its children. */
export function childrenOf(entityId: string): string {
  return `children of ${entityId}`;
}

/** Warns entities whose limits for a resource lack what the resource now has. */
export async function lostByResource(limits: LimitRecords, resource: string): Promise<string[]> {
  const level = { name: `resource ${resource}`, limits: await limits.getResource(resource) };
  const own = await linesOf(limits, resource, level);
  // The limits of an entity for all resources are none of its total.
  if (resource === TOTAL) return own;
  const { entityIds } = await limits.listEntities(resource, { limit: ENTITIES_MAX });
  return [...own, ...(await linesOf(limits, DEFAULT_RESOURCE, level, new Set(entityIds)))];
}

/** Warns entities whose limits lack what the system now has, where no resource has limits. */
export async function lostBySystem(limits: LimitRecords): Promise<string[]> {
  const level = { name: "the system", limits: (await limits.getSystem()).limits };
  const covered = new Set([...(await limits.listResources()), TOTAL]);
  const resources = (await limits.listEntityResources()).filter((name) => !covered.has(name));
  const lines: string[] = [];
  for (const resource of resources) lines.push(...(await linesOf(limits, resource, level)));
  return lines;
}

/** Returns a line about a lost limit as a warning for people. */
export function lossText(line: string): string {
  return warningText(`${line}. The limits of an entity replace all others`);
}

async function linesOf(
  limits: LimitRecords,
  resource: string,
  level: Level,
  except: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const { entityIds } = await limits.listEntities(resource, { limit: ENTITIES_MAX });
  const lines: string[] = [];
  for (const entityId of entityIds.filter((id) => !except.has(id))) {
    const own = await limits.getEntity(entityId, { resource });
    lines.push(...lossLine(`${entityId}/${resource}`, own, level));
  }
  return lines;
}

/** Returns the entity's own limits for all resources, and the level that both of them hide. */
async function behindResource(
  owner: string,
  resource: string,
  own: OwnLimits,
  levels: GeneralLevels,
): Promise<Level[]> {
  const hidden = { name: `resource ${resource}`, limits: await levels.resource(resource) };
  // A total has neither a default level nor that of the system.
  if (resource === TOTAL) return [hidden];
  const general =
    hidden.limits.length > 0 ? hidden : { name: "the system", limits: await levels.system() };
  const byDefault = { name: `${owner}/${DEFAULT_RESOURCE}`, limits: own.get(DEFAULT_RESOURCE) };
  return byDefault.limits === undefined ? [general] : [general, byDefault as Level];
}

/** Returns every resource for which the entity has nothing more specific, and the system. */
async function behindDefault(own: OwnLimits, levels: GeneralLevels): Promise<Level[]> {
  const resources = (await levels.resources()).filter((name) => name !== TOTAL && !own.has(name));
  const found: Level[] = [];
  for (const name of resources) {
    found.push({ name: `resource ${name}`, limits: await levels.resource(name) });
  }
  return [...found, { name: "the system", limits: await levels.system() }];
}

function lossLine(place: string, own: readonly Limit[], level: Level): string[] {
  const kept = new Set(own.map(({ name }) => name));
  const lost = level.limits.map(({ name }) => name).filter((name) => !kept.has(name));
  return lost.length === 0 ? [] : [`${place} loses ${lost.join(", ")}, which ${level.name} has`];
}
