/**
 * Which limits may apply to a bucket, by what is stored for its entity, for the children of the
 * parents that it may have, and for its resource. A change counts from when it lands, and what it
 * replaces counts as long as a process may not know of it.
 *
 * The parameters that a bucket holds follow with the next write to it. Until then a process that
 * knows of the change refuses by limits that no bucket shows.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing } from "@zae-limiter/testing/table/call.ts";
import { type Numbers, type Windows, windowsIn } from "./windows.ts";

/** A limit, in milli-tokens and milliseconds. */
export interface ConfiguredRate {
  readonly capacity: number;
  readonly refill: number;
  readonly period: number;
}

/** Rates by limit name; `undefined` if nothing is stored, and the next wider level applies. */
type Config = ReadonlyMap<string, ConfiguredLimit> | undefined;

interface ConfiguredLimit extends Numbers {
  readonly windows?: Windows;
}

interface ConfigChange {
  readonly config: Config;
  readonly atMs: number;
}

const NOTHING: ConfigChange = { config: undefined, atMs: Number.NEGATIVE_INFINITY };
const ENTITY_PATTERN = /^[^/]*\/ENTITY#(.+)$/;
const RESOURCE_PATTERN = /^[^/]*\/RESOURCE#(.+)$/;
const CONFIG_SK = "#CONFIG";
const CHILDREN_SK = "#CHILDREN_CONFIG#";
const ALL_RESOURCES = "_default_";
const TOTAL = "@all";
/** Sessions have a prefix of their own. */
const CAPACITY_PATTERN = /^([lw])_(.+)_cp$/;
const UNIT = 1000;

export class ConfigHistory {
  /** Changes by place, in order. */
  readonly #changes = new Map<string, ConfigChange[]>();
  /** After so long every process knows of a change. */
  readonly knownMs: number;
  /** The most by which the clocks of processes differ. */
  readonly #skewMs: number;

  constructor(knownMs: number, skewMs = 0) {
    this.knownMs = knownMs;
    this.#skewMs = skewMs;
  }

  landed(landings: readonly Landing[], nowMs: number): void {
    for (const { key, after } of landings) {
      const place = placeOf(key.PK, key.SK);
      if (place === undefined) continue;
      const changes = this.#changes.get(place) ?? [NOTHING];
      this.#changes.set(place, changes);
      changes.push({ config: after && configOf(after), atMs: nowMs });
    }
  }

  /**
   * Whether the limit may have applied in a process at some moment between the two. `parents`:
   * those that the entity may have had; `undefined` for none.
   */
  mayApply(
    entityId: string,
    resource: string,
    limitName: string,
    rate: ConfiguredRate,
    [fromMs, toMs]: readonly [number, number],
    parents: readonly (string | undefined)[] = [undefined],
  ): boolean {
    // Of two moments so close to each other, one is in each window that was open meanwhile.
    const times = [fromMs - this.#skewMs, toMs + this.#skewMs];
    const may = (levels: readonly string[]): boolean | undefined => {
      for (const place of levels) {
        const known = this.#knownAt(place, fromMs, toMs);
        const limits = known.flatMap((config) => config?.get(limitName) ?? []);
        if (limits.some((limit) => times.some((ms) => isSame(limit, rate, ms)))) return true;
        if (!known.includes(undefined)) return false;
      }
      return undefined;
    };
    const own = may([`${entityId} ${resource}`]);
    if (own !== undefined) return own;
    const ofParents = parents.map((parent) => may(placesOfChildren(parent, resource)));
    if (ofParents.includes(true)) return true;
    return ofParents.includes(undefined) && may([`* ${resource}`]) === true;
  }

  /** Lists the configs that a process may have cached of a place in a time. */
  #knownAt(place: string, fromMs: number, toMs: number): readonly Config[] {
    const changes = this.#changes.get(place) ?? [NOTHING];
    const known = changes.filter(({ atMs }, at) => {
      const replacedMs = changes[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
      return atMs <= toMs && replacedMs + this.knownMs >= fromMs;
    });
    return known.map(({ config }) => config);
  }
}

/** Returns the places where a parent stores limits that may apply to its children. */
function placesOfChildren(parentId: string | undefined, resource: string): string[] {
  if (parentId === undefined) return [];
  const resources = resource === TOTAL ? [resource] : [resource, ALL_RESOURCES];
  return resources.map((each) => `below ${parentId} ${each}`);
}

/** Returns the place of an item; `undefined` if it stores no limits of an entity or resource. */
function placeOf(PK: string, SK: string): string | undefined {
  const resource = SK === CONFIG_SK ? RESOURCE_PATTERN.exec(PK)?.[1] : undefined;
  if (resource !== undefined) return `* ${resource}`;
  const entityId = ENTITY_PATTERN.exec(PK)?.[1];
  if (SK.startsWith(CHILDREN_SK)) return `below ${entityId} ${SK.slice(CHILDREN_SK.length)}`;
  if (!SK.startsWith(`${CONFIG_SK}#`)) return undefined;
  return entityId === undefined ? undefined : `${entityId} ${SK.slice(CONFIG_SK.length + 1)}`;
}

/** Reads the limits of an item. Without limits it holds other settings. */
function configOf(item: Item): Config {
  const limits = new Map<string, ConfiguredLimit>();
  for (const attribute of Object.keys(item)) {
    const [, prefix, name] = CAPACITY_PATTERN.exec(attribute) ?? [];
    if (name === undefined) continue;
    const [capacity, refill, period] = ["cp", "ra", "rp"].map(
      (suffix) => Number(item[`${prefix}_${name}_${suffix}`]) * UNIT,
    ) as [number, number, number];
    const text = item[`${prefix}_${name}_sched`];
    const windows = typeof text === "string" ? { windows: windowsIn(text) } : {};
    limits.set(name, { capacity, refill, period, ...windows });
  }
  return limits.size === 0 ? undefined : limits;
}

/** Whether a limit has these numbers at a time. Those of windows are shown by the whole token. */
function isSame(limit: ConfiguredLimit, rate: ConfiguredRate, ms: number): boolean {
  const { windows } = limit;
  const { capacity, refill, period } = windows?.numbersAt(limit, ms) ?? limit;
  const shown = (milli: number) =>
    windows === undefined ? milli : Math.max(1, Math.floor(milli / UNIT)) * UNIT;
  return (
    shown(capacity) === rate.capacity && shown(refill) === rate.refill && period === rate.period
  );
}
