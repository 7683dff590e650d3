/** Finds the limits that apply, through the cache: one read for everything that is not in it. */

import { boundedMap } from "../../base/bounded-map.ts";
import type { DisabledLevel } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import { DEFAULT_RESOURCE } from "../../domain/names.ts";
import { CONFIG_LEVELS, type ConfigSource, chooseLimits } from "../../domain/precedence.ts";
import type { Item, Key } from "../../storage/item.ts";
import { AUDIT_RETENTION_DAYS, retentionDaysIn } from "../audit.ts";
import {
  bucketId,
  entityConfigKey,
  namespaceIdKey,
  resourceConfigKey,
  systemConfigKey,
  versionKey,
} from "../keys.ts";
import { inactiveError, inactiveIn } from "../namespaces/namespace-state.ts";
import { cascadeIn, type DisabledFlag, disabledIn } from "../python-attributes.ts";
import type { RecordContext } from "../record-context.ts";
import { readShared } from "../shared-reads.ts";
import { incompatibleError, incompatibleIn } from "../version-record.ts";
import type { ConfigCache, ConfigSlot } from "./config-cache.ts";
import { configVersion } from "./config-change.ts";
import { decodeLimits, onUnavailableIn, unsupportedLimits } from "./limit-attributes.ts";

/**
 * The limits that apply to a call, and where they came from.
 *
 * @example
 * ```ts
 * import { Repository, type ResolvedLimits } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setResource('gpt-4', ['rpm:50']);
 * const resolved: ResolvedLimits | undefined = await repo.limits.resolve('key-1', 'gpt-4');
 * console.log(String(resolved?.limits[0]), resolved?.source); // rpm:50/min resource
 * await repo.close();
 * ```
 */
export interface ResolvedLimits {
  /** The limits of the level that applies. */
  readonly limits: readonly Limit[];
  /** Limits of the same level that only the Python library can enforce: calls may not name them. */
  readonly unsupported: readonly UnsupportedLimit[];
  /** The level that applies. */
  readonly source: ConfigSource;
  /** The stored setting of the system level; `undefined` when there is none. */
  readonly onUnavailable: OnUnavailable | undefined;
  /** The config version that these limits are at least as new as. */
  readonly version: number;
}

/** What the levels say about an entity and a resource. */
export interface Resolution {
  /** `undefined` when there are none at any level. */
  readonly limits: ResolvedLimits | undefined;
  /** The level that switches the resource off; `undefined` when it is on. */
  readonly disabledAt: DisabledLevel | undefined;
  /** The limits are bypassed: consumption is counted, and nothing is refused. */
  readonly bypassed: boolean;
  /** Whether acquires cascade; `undefined` when the record of the entity decides. */
  readonly cascade: boolean | undefined;
}

/** What the cache has of the limits of an entity. */
interface Remembered extends Resolution {
  /** When a part of it stops being fresh. */
  readonly expiresAtMs: number;
  /** The generation of the cache that it was found in; it holds for no other one. */
  readonly generation: number;
}

/** Four slots make one answer; so many answers are kept. */
const COMBINED_MAX = 20_000;

/** The levels that have flags, in the order of `CONFIG_LEVELS`. */
const FLAG_LEVELS = ["entity", "entity_default", "resource"] as const;

/** How slots are named in the cache. */
export const slotNames = {
  system: "system",
  resource: (resource: string) => `resource#${resource}`,
  entity: (entityId: string, resource: string) => `entity#${entityId}#${resource}`,
} as const;

export class ConfigResolver {
  readonly cache: ConfigCache;
  readonly #combined = boundedMap<Remembered>(COMBINED_MAX);
  readonly #context: RecordContext;

  constructor(context: RecordContext, cache: ConfigCache) {
    this.#context = context;
    this.cache = cache;
  }

  /** Refuses when the namespace was deleted, or when the table asks for a newer client. */
  async resolve(entityId: string, resource: string): Promise<ResolvedLimits | undefined> {
    return (await this.resolution(entityId, resource)).limits;
  }

  /** The limits, and whether the resource is switched off or cascades. */
  async resolution(entityId: string, resource: string): Promise<Resolution> {
    const slots = await this.#resolve(entityId, resource);
    const { inactive, incompatible } = slots.at(-1) as ConfigSlot;
    if (inactive !== undefined) throw inactiveError(this.#context.namespaceId, inactive);
    if (incompatible !== undefined) throw incompatibleError(incompatible);
    return combine(slots);
  }

  async #resolve(entityId: string, resource: string): Promise<readonly ConfigSlot[]> {
    const names = namesFor(entityId, resource);
    const bucketName = `${entityId}#${resource}`;
    const slots = names.map((name) => this.cache.find(name));
    const missing = names.filter((_, level) => slots[level] === undefined);
    if (missing.length === 0) return slots as ConfigSlot[];
    const loaded = await this.cache.load(missing, (wanted) =>
      this.#fetch(wanted, (name) => this.#keyOf(name, entityId, resource), bucketName),
    );
    return names.map((name, level) => slots[level] ?? loaded.get(name)) as ConfigSlot[];
  }

  /** What the levels say as they are stored now, past the cache. */
  async current(entityId: string, resource: string): Promise<Resolution> {
    const names = namesFor(entityId, resource);
    const keyOf = (name: string) => this.#keyOf(name, entityId, resource);
    return combine(await this.#fetch(names, keyOf, `${entityId}#${resource}`));
  }

  /** Returns the same from the cache alone; `undefined` when something is not cached. */
  remembered(entityId: string, resource: string): Remembered | undefined {
    const { cache } = this;
    const name = bucketId({ entityId, resource });
    const last = this.#combined.get(name);
    const isFresh = last?.generation === cache.generation && cache.isFresh(last.expiresAtMs);
    const found = isFresh ? last : this.#combine(name, entityId, resource);
    if (found !== undefined) cache.countHits(CONFIG_LEVELS.length);
    return found;
  }

  #combine(name: string, entityId: string, resource: string): Remembered | undefined {
    const slots: ConfigSlot[] = [];
    let expiresAtMs = Number.POSITIVE_INFINITY;
    for (const level of namesFor(entityId, resource)) {
      const slot = this.cache.peek(level);
      // A deleted namespace and an outdated client are refused where limits are resolved.
      if (slot === undefined || isRefused(slot)) return undefined;
      slots.push(slot);
      expiresAtMs = Math.min(expiresAtMs, slot.expiresAtMs);
    }
    const { generation } = this.cache;
    const { limits, disabledAt, bypassed, cascade } = combine(slots);
    // Written out, because every acquire reads it: copies by spread differ in shape to the engine.
    const remembered = { limits, disabledAt, bypassed, cascade, expiresAtMs, generation };
    this.#combined.set(name, remembered);
    return remembered;
  }

  /** What is stored for the whole namespace. */
  async system(): Promise<ConfigSlot> {
    const found = this.cache.find(slotNames.system);
    if (found !== undefined) return found;
    const loaded = await this.cache.load([slotNames.system], (wanted) =>
      this.#fetch(wanted, () => systemConfigKey(this.#context.namespaceId), slotNames.system),
    );
    return loaded.get(slotNames.system) as ConfigSlot;
  }

  /** How long audit events are kept. */
  async auditRetentionDays(): Promise<number> {
    return (await this.system()).auditRetentionDays ?? AUDIT_RETENTION_DAYS;
  }

  /** Records that this process has changed stored limits; no `version` means no change. */
  changed(version: number | undefined, names: readonly string[]): void {
    // The system slot carries the version, so it is stale after any change.
    if (version !== undefined) this.cache.changed(version, [slotNames.system, ...names]);
  }

  /** The same for what is stored for the namespace; `undefined` leaves the setting as it was. */
  changedSystem(
    version: number | undefined,
    onUnavailable: OnUnavailable | null | undefined,
  ): void {
    this.changed(version, [slotNames.system]);
    if (version === undefined || onUnavailable === undefined) return;
    this.cache.lastOnUnavailable = onUnavailable ?? undefined;
  }

  /**
   * Reads config items into slots. The state of the namespace and the version record are read along
   * with the system config, so that a limiter learns of a deletion, or of a table that asks for a
   * newer client, when it would learn of new limits. With the system config among them all are read
   * as of one moment, and its version dates them all. Without it the version known before the read
   * is a safe lower bound, provided the read sees everything written before: hence consistent.
   */
  async #fetch(
    names: readonly string[],
    keyOf: (name: string) => Key,
    bucketName: string,
  ): Promise<readonly ConfigSlot[]> {
    const systemAt = names.indexOf(slotNames.system);
    const { version: knownVersion, epoch } = this.cache;
    const keys = names.map(keyOf);
    if (systemAt >= 0) keys.push(namespaceIdKey(this.#context.namespaceId), versionKey());
    const { store } = this.#context;
    const items = await (systemAt >= 0
      ? store.getMany(keys, { snapshot: true })
      : readShared(store, bucketName, keys));
    const asOf = systemAt >= 0 ? configVersion(items[systemAt]) : knownVersion;
    const expiresAtMs = this.cache.expiry();
    const slots = names.map((_, at) => {
      const slot = slotOf(items[at], asOf, expiresAtMs);
      if (at !== systemAt) return slot;
      const [namespace, version] = items.slice(-2);
      return { ...slot, inactive: inactiveIn(namespace), incompatible: incompatibleIn(version) };
    });
    // A read from before a change of our own shows an old version, not one that went back.
    if (systemAt >= 0 && epoch === this.cache.epoch) {
      this.cache.observe(asOf);
      this.cache.lastOnUnavailable = slots[systemAt]?.onUnavailable;
    }
    return slots;
  }

  #keyOf(name: string, entityId: string, resource: string): Key {
    const { namespaceId } = this.#context;
    if (name === slotNames.system) return systemConfigKey(namespaceId);
    if (name === slotNames.resource(resource)) return resourceConfigKey(namespaceId, resource);
    return name === slotNames.entity(entityId, resource)
      ? entityConfigKey(namespaceId, entityId, resource)
      : entityConfigKey(namespaceId, entityId, DEFAULT_RESOURCE);
  }
}

/** In the order of `CONFIG_LEVELS`. */
function namesFor(entityId: string, resource: string): readonly string[] {
  return [
    slotNames.entity(entityId, resource),
    slotNames.entity(entityId, DEFAULT_RESOURCE),
    slotNames.resource(resource),
    slotNames.system,
  ];
}

function combine(slots: readonly ConfigSlot[]): Resolution {
  const flag = decidingFlag(slots);
  return {
    limits: combineLimits(slots),
    disabledAt: flag?.value === true ? flag.level : undefined,
    bypassed: flag?.value === "bypass",
    cascade: FLAG_LEVELS.map((_, at) => slots[at]?.cascade).find((flag) => flag !== undefined),
  };
}

/** The first level that has a value decides, whichever level supplies the limits. */
function decidingFlag(
  slots: readonly ConfigSlot[],
): { readonly level: DisabledLevel; readonly value: DisabledFlag } | undefined {
  for (const [at, level] of FLAG_LEVELS.entries()) {
    const value = slots[at]?.disabled;
    if (value !== undefined) return { level, value };
  }
  return undefined;
}

function combineLimits(slots: readonly ConfigSlot[]): ResolvedLimits | undefined {
  const chosen = chooseLimits((level) => slots[CONFIG_LEVELS.indexOf(level)]);
  if (chosen === undefined) return undefined;
  // Levels below the chosen one do not matter; those above it were seen to be empty.
  let version = Number.POSITIVE_INFINITY;
  for (let level = CONFIG_LEVELS.indexOf(chosen.source); level >= 0; level -= 1) {
    version = Math.min(version, (slots[level] as ConfigSlot).asOf);
  }
  const { limits, unsupported, source } = chosen;
  return { limits, unsupported, source, onUnavailable: slots.at(-1)?.onUnavailable, version };
}

/** Whether the system slot says that calls are refused. */
function isRefused({ inactive, incompatible }: ConfigSlot): boolean {
  return inactive !== undefined || incompatible !== undefined;
}

function slotOf(item: Item | undefined, asOf: number, expiresAtMs: number): ConfigSlot {
  return {
    // Frozen, because all callers share the list.
    limits: Object.freeze(decodeLimits(item)),
    unsupported: unsupportedLimits(item),
    disabled: disabledIn(item),
    cascade: cascadeIn(item),
    onUnavailable: onUnavailableIn(item),
    auditRetentionDays: retentionDaysIn(item),
    inactive: undefined,
    incompatible: undefined,
    asOf,
    expiresAtMs,
  };
}
