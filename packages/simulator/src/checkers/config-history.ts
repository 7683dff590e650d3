/**
 * Which limits may apply to a bucket, by what is stored for its entity and its resource. A change
 * counts from when it lands, and what it replaces counts as long as a process may not know of it.
 *
 * The parameters that a bucket holds follow with the next write to it. Until then a process that
 * knows of the change refuses by limits that no bucket shows.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing } from "@zae-limiter/testing/table/call.ts";

/** A limit, in milli-tokens and milliseconds. */
export interface ConfiguredRate {
  readonly capacity: number;
  readonly refill: number;
  readonly period: number;
}

/** Rates by limit name; `undefined` if nothing is stored, and the next wider level applies. */
type Config = ReadonlyMap<string, ConfiguredRate> | undefined;

interface ConfigChange {
  readonly config: Config;
  readonly atMs: number;
}

const NOTHING: ConfigChange = { config: undefined, atMs: Number.NEGATIVE_INFINITY };
const ENTITY_PATTERN = /^[^/]*\/ENTITY#(.+)$/;
const RESOURCE_PATTERN = /^[^/]*\/RESOURCE#(.+)$/;
const CONFIG_SK = "#CONFIG";
const CAPACITY_PATTERN = /^l_(.+)_cp$/;
const UNIT = 1000;

export class ConfigHistory {
  /** Changes by place, in order. */
  readonly #changes = new Map<string, ConfigChange[]>();
  readonly #knownMs: number;

  /** `knownMs`: after so long every process knows of a change. */
  constructor(knownMs: number) {
    this.#knownMs = knownMs;
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

  /** Whether the limit may have applied in a process at some moment between the two. */
  mayApply(
    entityId: string,
    resource: string,
    limitName: string,
    rate: ConfiguredRate,
    [fromMs, toMs]: readonly [number, number],
  ): boolean {
    for (const place of [`${entityId} ${resource}`, `* ${resource}`]) {
      const known = this.#knownAt(place, fromMs, toMs);
      if (known.some((config) => isSame(config?.get(limitName), rate))) return true;
      if (!known.includes(undefined)) return false;
    }
    return false;
  }

  /** Lists the configs that a process may have cached of a place in a time. */
  #knownAt(place: string, fromMs: number, toMs: number): readonly Config[] {
    const changes = this.#changes.get(place) ?? [NOTHING];
    const known = changes.filter(({ atMs }, at) => {
      const replacedMs = changes[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
      return atMs <= toMs && replacedMs + this.#knownMs >= fromMs;
    });
    return known.map(({ config }) => config);
  }
}

/** Returns the place of an item; `undefined` if it stores no limits of an entity or resource. */
function placeOf(PK: string, SK: string): string | undefined {
  const resource = SK === CONFIG_SK ? RESOURCE_PATTERN.exec(PK)?.[1] : undefined;
  if (resource !== undefined) return `* ${resource}`;
  if (!SK.startsWith(`${CONFIG_SK}#`)) return undefined;
  const entityId = ENTITY_PATTERN.exec(PK)?.[1];
  return entityId === undefined ? undefined : `${entityId} ${SK.slice(CONFIG_SK.length + 1)}`;
}

/** Reads the limits of an item. Without limits it holds other settings. */
function configOf(item: Item): Config {
  const limits = new Map<string, ConfiguredRate>();
  for (const attribute of Object.keys(item)) {
    const name = CAPACITY_PATTERN.exec(attribute)?.[1];
    if (name === undefined) continue;
    const [capacity, refill, period] = ["cp", "ra", "rp"].map(
      (suffix) => Number(item[`l_${name}_${suffix}`]) * UNIT,
    ) as [number, number, number];
    limits.set(name, { capacity, refill, period });
  }
  return limits.size === 0 ? undefined : limits;
}

function isSame(left: ConfiguredRate | undefined, right: ConfiguredRate): boolean {
  return (
    left?.capacity === right.capacity &&
    left.refill === right.refill &&
    left.period === right.period
  );
}
