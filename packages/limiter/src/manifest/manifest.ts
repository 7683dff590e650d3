/** The manifest: the limits of a namespace as a file declares them. */

import { defined } from "../base/defined.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import { DEFAULT_RESOURCE } from "../domain/names.ts";
import { scheduleJson } from "../domain/schedule.ts";
import type { DisabledFlag } from "../records/python-attributes.ts";
import { resetData } from "./limit-declaration.ts";

/**
 * The settings of one level. Only the system has `onUnavailable`, and only the others have flags.
 */
export interface LevelConfig {
  /** Sorted by name. */
  readonly limits: readonly Limit[];
  readonly onUnavailable?: OnUnavailable;
  /** Switched off, on, or bypassed; absent: the next wider level answers. */
  readonly disabled?: DisabledFlag;
  /** Whether acquires cascade; absent: the next wider level answers. */
  readonly cascade?: boolean;
  /** The parent of an entity, in a `record`. */
  readonly parent?: string;
  /** In what is stored: limits that only the Python library enforces. A manifest has none. */
  readonly unsupported?: readonly UnsupportedLimit[];
}

/** A manifest that was checked: every name and number in it can be stored. */
export interface Manifest {
  readonly namespace: string;
  /** A stored limit may be replaced by one of another kind. */
  readonly replaceKind?: true;
  readonly system?: LevelConfig;
  readonly resources: ReadonlyMap<string, LevelConfig>;
  /** Per entity, per resource or `_default_`. */
  readonly entities: EntityLevels;
  /** Limits of the entities directly below a parent: per parent, per resource or `_default_`. */
  readonly children: EntityLevels;
  /** Entities that exist once the manifest is applied, parents first. They have no limits here. */
  readonly records: ReadonlyMap<string, LevelConfig>;
}

type EntityLevels = ReadonlyMap<string, ReadonlyMap<string, LevelConfig>>;

/** One place that can have limits, or the record of an entity, which has its parent. */
export type Target =
  | { readonly level: "system" }
  | { readonly level: "resource"; readonly resource: string }
  | { readonly level: "record"; readonly entityId: string }
  | EntityTarget;

/** The limits of an entity, or those that it stores for its children. */
export interface EntityTarget {
  readonly level: (typeof ENTITY_LEVELS)[number];
  readonly entityId: string;
  readonly resource: string;
}

const ENTITY_LEVELS = ["entity", "children"] as const;

export const SYSTEM_TARGET: Target = { level: "system" };

/** Returns a manifest that declares nothing: applied, it removes everything that is managed. */
export function emptyManifest(namespace: string): Manifest {
  const none = new Map();
  return { namespace, resources: none, entities: none, children: none, records: none };
}

/**
 * Returns a manifest as the data of a file. Names are the keys of maps, because an object would put
 * names that look like numbers first.
 */
export function manifestData(
  { namespace, replaceKind, system, resources, entities, children, records }: Manifest,
  levelData: (config: LevelConfig) => object,
): Readonly<Record<string, unknown>> {
  const mapped = <Part>(parts: ReadonlyMap<string, Part>, data: (part: Part) => object) =>
    parts.size === 0 ? undefined : new Map([...parts].map(([name, part]) => [name, data(part)]));
  return defined({
    namespace,
    replace_kind: replaceKind,
    system: system && levelData(system),
    resources: mapped(resources, levelData),
    entities: mapped(byEntity(entities, children, records), ({ own, ofChildren, record }) => {
      const flags = record && flagsData(record);
      // Only an entity without anything else has empty resources.
      const isSaid = ofChildren.size > 0 || Object.keys(flags ?? {}).length > 0;
      const resources = mapped(own, levelData) ?? (isSaid ? undefined : new Map());
      return defined({ ...flags, resources, children: mapped(ofChildren, levelData) });
    }),
  });
}

/** Returns what each entity declares for itself and for its children. */
function byEntity(
  entities: EntityLevels,
  children: EntityLevels,
  records: ReadonlyMap<string, LevelConfig>,
) {
  const none: ReadonlyMap<string, LevelConfig> = new Map();
  const ids = [...new Set([...records.keys(), ...entities.keys(), ...children.keys()])];
  return new Map(
    ids.map((id) => {
      const [own, ofChildren] = [entities.get(id) ?? none, children.get(id) ?? none];
      return [id, { own, ofChildren, record: records.get(id) }];
    }),
  );
}

/** Returns what a level says apart from its limits, under the names of a file. */
export function flagsData({ onUnavailable, disabled, cascade, parent }: LevelConfig) {
  return defined({ on_unavailable: onUnavailable, disabled, parent, cascade });
}

/** Returns what a limit says apart from its numbers and its reset. */
export function wordsOf({ soft, alerts, schedule }: Limit) {
  const words = { ...(soft ? { soft: true } : {}), ...(alerts.length > 0 ? { alerts } : {}) };
  return { ...words, ...scheduleJson(schedule) };
}

/** Returns a level as the data of a file, with every default written out. */
export function fullLevelData(config: LevelConfig): object {
  const limits = config.limits.map((limit) => {
    const { name, capacity, refillAmount, refillPeriodSeconds } = limit;
    const rate = { capacity, refill_amount: refillAmount, refill_period: refillPeriodSeconds };
    const numbers = resetData(limit) ?? rate;
    return [name, { ...numbers, ...wordsOf(limit) }] as const;
  });
  return { ...flagsData(config), limits: new Map(limits) };
}

/** Returns every place that a manifest declares, with its declaration. */
export function declarationsOf(manifest: Manifest): [Target, LevelConfig][] {
  const { system, resources, entities, children, records } = manifest;
  const below = (level: EntityTarget["level"], levels: EntityLevels) =>
    [...levels].flatMap(([entityId, configs]) =>
      [...configs].map(([resource, config]): [Target, LevelConfig] => [
        { level, entityId, resource },
        config,
      ]),
    );
  return [
    ...(system === undefined ? [] : [[SYSTEM_TARGET, system] as [Target, LevelConfig]]),
    ...[...resources].map(([resource, config]): [Target, LevelConfig] => [
      { level: "resource", resource },
      config,
    ]),
    ...[...records].map(([entityId, config]): [Target, LevelConfig] => [
      { level: "record", entityId },
      config,
    ]),
    ...below("entity", entities),
    ...below("children", children),
  ];
}

/** Returns a key that no other place has: names contain no `#`. */
export function targetKey(target: Target): string {
  if (target.level === "system") return "system";
  if (target.level === "resource") return `resource#${target.resource}`;
  if (target.level === "record") return `record#${target.entityId}`;
  return `${target.level}#${target.entityId}#${target.resource}`;
}

/** Returns the target of a key that `targetKey` made. */
export function targetOfKey(key: string): Target[] {
  const [name, first, second] = key.split("#");
  if (name === "system") return [SYSTEM_TARGET];
  if (name === "resource" && first !== undefined) return [{ level: "resource", resource: first }];
  const level = ENTITY_LEVELS.find((each) => each === name);
  if (level === undefined || first === undefined || second === undefined) return [];
  return [{ level, entityId: first, resource: second }];
}

export function distinctTargets(targets: readonly Target[]): Target[] {
  return [...new Map(targets.map((target) => [targetKey(target), target])).values()];
}

/** Returns the level of a place for reports: a record is the entity itself, without a resource. */
export function levelName({ level }: Target): Exclude<Target["level"], "record"> {
  return level === "record" ? "entity" : level;
}

/** Returns the name of a place for reports; an entity's resource comes after the first slash. */
export function targetName(target: Target): string | null {
  if (target.level === "system") return null;
  if (target.level === "record") return target.entityId;
  return target.level === "resource" ? target.resource : `${target.entityId}/${target.resource}`;
}

/**
 * Compares places: the system, then resources, then what entities store for their children, then
 * entities, each by name, `_default_` first. Records of entities come before what these store, and
 * are alike: sorting leaves parents before their children.
 */
export function compareTargets(a: Target, b: Target): number {
  const [left, right] = [sortParts(a), sortParts(b)];
  const at = left.findIndex((part, position) => part !== right[position]);
  if (at < 0) return 0;
  return (left[at] as string) < (right[at] as string) ? -1 : 1;
}

function sortParts(target: Target): readonly [string, string, string] {
  if (target.level === "system") return ["0", "", ""];
  if (target.level === "resource") return ["1", target.resource, ""];
  if (target.level === "record") return ["2", "", ""];
  const resource = target.resource === DEFAULT_RESOURCE ? "" : target.resource;
  return [target.level === "children" ? "3" : "4", target.entityId, resource];
}

/** Whether two levels say the same; limits are in the order of their names. */
export function sameConfig(a: LevelConfig, b: LevelConfig): boolean {
  return (
    a.onUnavailable === b.onUnavailable &&
    a.disabled === b.disabled &&
    a.cascade === b.cascade &&
    a.limits.length === b.limits.length &&
    a.limits.every((limit, position) => limit.equals(b.limits[position] as Limit))
  );
}
