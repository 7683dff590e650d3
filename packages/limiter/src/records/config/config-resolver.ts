/** Finds the limits that apply, through the cache: one read for everything that is not in it. */

import { boundedMap } from "../../base/bounded-map.ts";
import type { DisabledLevel } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import { CONFIG_LEVELS, type ConfigSource, chooseLimits } from "../../domain/precedence.ts";
import { AUDIT_RETENTION_DAYS } from "../audit.ts";
import {
  bucketId,
  childrenConfigRegistryKey,
  namespaceIdKey,
  systemConfigKey,
  versionKey,
} from "../keys.ts";
import { inactiveError, inactiveIn } from "../namespaces/namespace-state.ts";
import type { DisabledFlag } from "../python-attributes.ts";
import type { RecordContext } from "../record-context.ts";
import { readShared } from "../shared-reads.ts";
import { incompatibleError, incompatibleIn } from "../version-record.ts";
import type { ConfigCache, ConfigSlot } from "./config-cache.ts";
import { configVersion } from "./config-change.ts";
import { registeredResources } from "./config-registry.ts";
import {
  type KnownSlots,
  refsOf,
  type SlotRef,
  slotNames,
  slotOf,
  slotsOf,
} from "./config-slots.ts";

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

/** The limits and flags of all levels, combined for an entity and a resource. */
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

/** A resolution, and how long it holds. */
export interface Resolved extends Resolution {
  /** Epoch milliseconds at which a part of it stops being fresh; 0 when nothing is cached. */
  readonly expiresAtMs: number;
  /** The generation of the cache that it is of; it holds for no other one. */
  readonly generation: number;
}

/** Slots that a resolution is made of where no parent has limits for its children. */
export const SLOTS_PER_RESOLUTION = 4;

/** Maximum number of resolutions that are kept. */
const RESOLVED_MAX = 20_000;

/** The levels that have flags, from specific to general. */
const FLAG_LEVELS = ["entity", "entity_default", "resource"] as const;
const FLAG_PLACES = FLAG_LEVELS.map((level) => CONFIG_LEVELS.indexOf(level));

/** The places that slots come from. */
interface SlotSource {
  /** Returns a cached slot without counting a hit. */
  readonly peek: KnownSlots;
  readonly find: KnownSlots;
  readonly read: (refs: readonly SlotRef[], bucketName: string) => Promise<readonly ConfigSlot[]>;
}

export class ConfigResolver {
  readonly cache: ConfigCache;
  readonly #resolved = boundedMap<Resolved>(RESOLVED_MAX);
  readonly #context: RecordContext;

  constructor(context: RecordContext, cache: ConfigCache) {
    this.#context = context;
    this.cache = cache;
  }

  /** Returns the limits that apply; `undefined` when no level has any. */
  async resolve(entityId: string, resource: string): Promise<ResolvedLimits | undefined> {
    return (await this.resolution(entityId, resource)).limits;
  }

  /** Combines the levels, after one read of all slots that are not cached. */
  async resolution(entityId: string, resource: string): Promise<Resolved> {
    const cached = this.cached(entityId, resource);
    if (cached !== undefined) return cached;
    const slots = await this.#load(entityId, resource);
    return this.#combineCached(entityId, resource) ?? this.#combine(slots, 0);
  }

  /** Combines the levels by cached slots alone; `undefined` when a slot is missing. */
  cached(entityId: string, resource: string): Resolved | undefined {
    const { cache } = this;
    const last = this.#resolved.get(bucketId({ entityId, resource }));
    const isFresh = last?.generation === cache.generation && cache.isFresh(last.expiresAtMs);
    const found = isFresh ? last : this.#combineCached(entityId, resource);
    if (found !== undefined) cache.countHits(SLOTS_PER_RESOLUTION);
    return found;
  }

  #combineCached(entityId: string, resource: string): Resolved | undefined {
    const slots = slotsOf(entityId, resource, (name) => this.cache.peek(name));
    if (slots === undefined) return undefined;
    const expiresAtMs = Math.min(...slots.map((slot) => slot.expiresAtMs));
    const resolved = this.#combine(slots, expiresAtMs);
    this.#resolved.set(bucketId({ entityId, resource }), resolved);
    return resolved;
  }

  /** Refuses when the namespace was deleted, or when the table asks for a newer client. */
  #combine(slots: readonly ConfigSlot[], expiresAtMs: number): Resolved {
    const { inactive, incompatible } = slots.at(-1) as ConfigSlot;
    if (inactive !== undefined) throw inactiveError(this.#context.namespaceId, inactive);
    if (incompatible !== undefined) throw incompatibleError(incompatible);
    const { generation } = this.cache;
    const { limits, disabledAt, bypassed, cascade } = combine(slots);
    // Written out, because every acquire reads it: copies by spread differ in shape to the engine.
    return { limits, disabledAt, bypassed, cascade, expiresAtMs, generation };
  }

  /** Reads the slots that are not cached, and returns those of all levels. */
  #load(entityId: string, resource: string): Promise<readonly ConfigSlot[]> {
    const { cache } = this;
    return this.#gather(entityId, resource, {
      peek: (name) => cache.peek(name),
      find: (name) => cache.find(name),
      read: async (refs, bucketName) => {
        const names = refs.map(({ name }) => name);
        const loaded = await cache.load(names, (wanted) =>
          this.#fetch(
            refs.filter(({ name }) => wanted.includes(name)),
            bucketName,
          ),
        );
        return names.map((name) => loaded.get(name) as ConfigSlot);
      },
    });
  }

  /** Combines the levels as they are stored now, past the cache. */
  async current(entityId: string, resource: string): Promise<Resolution> {
    const none = () => undefined;
    const read: SlotSource["read"] = (refs, bucketName) => this.#fetch(refs, bucketName);
    return combine(await this.#gather(entityId, resource, { peek: none, find: none, read }));
  }

  /** Reads slots until none is missing: one read, or three where the parent's levels matter. */
  async #gather(
    entityId: string,
    resource: string,
    { peek, find, read }: SlotSource,
  ): Promise<readonly ConfigSlot[]> {
    const known = new Map<string, ConfigSlot>();
    for (;;) {
      const refs = refsOf(
        this.#context.namespaceId,
        entityId,
        resource,
        (name) => known.get(name) ?? peek(name),
      );
      const missing: SlotRef[] = [];
      for (const ref of refs) {
        const slot = known.get(ref.name) ?? find(ref.name);
        if (slot === undefined) missing.push(ref);
        else known.set(ref.name, slot);
      }
      const slots = slotsOf(entityId, resource, (name) => known.get(name));
      if (slots !== undefined) return slots;
      const loaded = await read(missing, `${entityId}#${resource}`);
      for (const [at, { name }] of missing.entries()) known.set(name, loaded[at] as ConfigSlot);
    }
  }

  /** Returns the slot of the namespace, which is read where it is not cached. */
  async system(): Promise<ConfigSlot> {
    const found = this.cache.find(slotNames.system);
    if (found !== undefined) return found;
    const ref = { name: slotNames.system, key: systemConfigKey(this.#context.namespaceId) };
    const loaded = await this.cache.load([ref.name], () => this.#fetch([ref], ref.name));
    return loaded.get(slotNames.system) as ConfigSlot;
  }

  /** Returns the days that audit events are kept. */
  async auditRetentionDays(): Promise<number> {
    return (await this.system()).auditRetentionDays ?? AUDIT_RETENTION_DAYS;
  }

  /** Records that the record of an entity has changed, and with it perhaps its parent. */
  entityChanged(entityId: string): void {
    this.cache.drop(slotNames.record(entityId));
  }

  /** Records that this process has changed stored limits; no `version` means no change. */
  changed(version: number | undefined, names: readonly string[]): void {
    // The system slot carries the version, so it is stale after any change.
    if (version !== undefined) this.cache.changed(version, [slotNames.system, ...names]);
  }

  /**
   * Records what this process has stored or found as it should be at the system level; `undefined`
   * leaves `onUnavailable` as it was.
   */
  changedSystem(
    version: number | undefined,
    onUnavailable: OnUnavailable | null | undefined,
  ): void {
    this.changed(version, [slotNames.system]);
    if (onUnavailable !== undefined) this.cache.lastOnUnavailable = onUnavailable ?? undefined;
  }

  /**
   * Reads config items into slots. The state of the namespace, the version record and the list of
   * resources with limits for children are read along with the system config, so that a limiter
   * learns of a deletion, or of a table that asks for a newer client, when it would learn of new
   * limits. With the system config among them all are read as of one moment, and its version dates
   * them all. Without it the version known before the read is a safe lower bound, provided the read
   * sees everything written before: hence consistent.
   */
  async #fetch(refs: readonly SlotRef[], bucketName: string): Promise<readonly ConfigSlot[]> {
    const { store, namespaceId } = this.#context;
    const systemAt = refs.findIndex(({ name }) => name === slotNames.system);
    const { version: knownVersion, epoch } = this.cache;
    const keys = refs.map(({ key }) => key);
    if (systemAt >= 0) {
      keys.push(namespaceIdKey(namespaceId), versionKey(), childrenConfigRegistryKey(namespaceId));
    }
    const items = await (systemAt >= 0
      ? store.getMany(keys, { snapshot: true })
      : readShared(store, bucketName, keys));
    const asOf = systemAt >= 0 ? configVersion(items[systemAt]) : knownVersion;
    const expiresAtMs = this.cache.expiry();
    const slots = refs.map((_, at) => {
      const slot = slotOf(items[at], asOf, expiresAtMs);
      if (at !== systemAt) return slot;
      const [namespace, version, registry] = items.slice(-3);
      return {
        ...slot,
        inactive: inactiveIn(namespace),
        incompatible: incompatibleIn(version),
        childrenResources: registeredResources(registry),
      };
    });
    // A read from before a change of our own shows an old version, not one that went back.
    if (systemAt >= 0 && epoch === this.cache.epoch) {
      this.cache.observe(asOf);
      this.cache.lastOnUnavailable = slots[systemAt]?.onUnavailable;
    }
    return slots;
  }
}

function combine(slots: readonly ConfigSlot[]): Resolution {
  const flag = decidingFlag(slots);
  return {
    limits: combineLimits(slots),
    disabledAt: flag?.value === true ? flag.level : undefined,
    bypassed: flag?.value === "bypass",
    cascade: FLAG_PLACES.map((at) => slots[at]?.cascade).find((flag) => flag !== undefined),
  };
}

/** Returns the flag of the first level that has one, whichever level supplies the limits. */
function decidingFlag(
  slots: readonly ConfigSlot[],
): { readonly level: DisabledLevel; readonly value: DisabledFlag } | undefined {
  for (const [at, level] of FLAG_LEVELS.entries()) {
    const value = slots[FLAG_PLACES[at] as number]?.disabled;
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
