/** The manifest: the limits of a namespace as a file declares them. */

import { defined } from "../base/defined.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import { DEFAULT_RESOURCE } from "../domain/names.ts";
import type { DisabledFlag } from "../records/python-attributes.ts";

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
  /** In what is stored: limits that only the Python library enforces. A manifest has none. */
  readonly unsupported?: readonly UnsupportedLimit[];
}

/** A manifest that was checked: every name and number in it can be stored. */
export interface Manifest {
  readonly namespace: string;
  readonly system?: LevelConfig;
  readonly resources: ReadonlyMap<string, LevelConfig>;
  /** Per entity, per resource or `_default_`. */
  readonly entities: ReadonlyMap<string, ReadonlyMap<string, LevelConfig>>;
}

/** One place that can have limits. */
export type Target =
  | { readonly level: "system" }
  | { readonly level: "resource"; readonly resource: string }
  | { readonly level: "entity"; readonly entityId: string; readonly resource: string };

export const SYSTEM_TARGET: Target = { level: "system" };

/** Returns a manifest that declares nothing: applied, it removes everything that is managed. */
export function emptyManifest(namespace: string): Manifest {
  return { namespace, resources: new Map(), entities: new Map() };
}

/**
 * Returns a manifest as the data of a file. Names are the keys of maps, because an object would put
 * names that look like numbers first.
 */
export function manifestData(
  { namespace, system, resources, entities }: Manifest,
  levelData: (config: LevelConfig) => object,
): Readonly<Record<string, unknown>> {
  const mapped = <Part>(parts: ReadonlyMap<string, Part>, data: (part: Part) => object) =>
    parts.size === 0 ? undefined : new Map([...parts].map(([name, part]) => [name, data(part)]));
  return defined({
    namespace,
    system: system && levelData(system),
    resources: mapped(resources, levelData),
    entities: mapped(entities, (inner) => ({ resources: mapped(inner, levelData) ?? new Map() })),
  });
}

/** Returns what a level says apart from its limits, under the names of a file. */
export function flagsData({ onUnavailable, disabled, cascade }: LevelConfig) {
  return defined({ on_unavailable: onUnavailable, disabled, cascade });
}

/** Returns a level as the data of a file, with every default written out. */
export function fullLevelData(config: LevelConfig): object {
  const limits = config.limits.map(
    ({ name, capacity, refillAmount, refillPeriodSeconds, soft }) => {
      const rate = { capacity, refill_amount: refillAmount, refill_period: refillPeriodSeconds };
      return [name, soft ? { ...rate, soft } : rate] as const;
    },
  );
  return { ...flagsData(config), limits: new Map(limits) };
}

/** Returns every place that a manifest declares, with its declaration. */
export function declarationsOf(manifest: Manifest): [Target, LevelConfig][] {
  const { system, resources, entities } = manifest;
  return [
    ...(system === undefined ? [] : [[SYSTEM_TARGET, system] as [Target, LevelConfig]]),
    ...[...resources].map(([resource, config]): [Target, LevelConfig] => [
      { level: "resource", resource },
      config,
    ]),
    ...[...entities].flatMap(([entityId, configs]) =>
      [...configs].map(([resource, config]): [Target, LevelConfig] => [
        { level: "entity", entityId, resource },
        config,
      ]),
    ),
  ];
}

/** Returns a key that no other place has: names contain no `#`. */
export function targetKey(target: Target): string {
  if (target.level === "system") return "system";
  if (target.level === "resource") return `resource#${target.resource}`;
  return `entity#${target.entityId}#${target.resource}`;
}

export function distinctTargets(targets: readonly Target[]): Target[] {
  return [...new Map(targets.map((target) => [targetKey(target), target])).values()];
}

/** Returns the name of a place for reports; an entity's resource comes after the first slash. */
export function targetName(target: Target): string | null {
  if (target.level === "system") return null;
  return target.level === "resource" ? target.resource : `${target.entityId}/${target.resource}`;
}

/** Compares places: the system, then resources, then entities, each by name, `_default_` first. */
export function compareTargets(a: Target, b: Target): number {
  const [left, right] = [sortParts(a), sortParts(b)];
  const at = left.findIndex((part, position) => part !== right[position]);
  if (at < 0) return 0;
  return (left[at] as string) < (right[at] as string) ? -1 : 1;
}

function sortParts(target: Target): readonly [string, string, string] {
  if (target.level === "system") return ["0", "", ""];
  if (target.level === "resource") return ["1", target.resource, ""];
  const resource = target.resource === DEFAULT_RESOURCE ? "" : target.resource;
  return ["2", target.entityId, resource];
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
