/** Stored limits of a namespace, a resource or an entity. The most specific level applies. */

import { defined } from "../../base/defined.ts";
import { checkFields } from "../../domain/check.ts";
import { checkOnUnavailable, type OnUnavailable } from "../../domain/errors/unavailability.ts";
import { checkLimits, type Limit, type LimitInput } from "../../domain/limit.ts";
import { checkConfigResource, checkEntityId, checkResource } from "../../domain/names.ts";
import { type Item, type Key, textAt, valueAt } from "../../storage/item.ts";
import { type AuditLog, checkAuditor, SYSTEM_SUBJECT } from "../audit.ts";
import { listPage } from "../cursor.ts";
import {
  entityConfigPartition,
  entityConfigRegistryKey,
  resourceRegistryKey,
  systemConfigKey,
} from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import type { CacheStats } from "./config-cache.ts";
import { changeConfig } from "./config-change.ts";
import { deleteLimits, isFlagsOnly, replacedAttributes, replaceLimits } from "./config-item.ts";
import { type ConfigLevel, checkLevel, unlisting } from "./config-level.ts";
import { registeredResources } from "./config-registry.ts";
import type { ConfigResolver, ResolvedLimits } from "./config-resolver.ts";
import { claimSoft } from "./feature-gate.ts";
import {
  decodeLimits,
  encodeLimits,
  limitAttributeNames,
  limitNames,
  onUnavailableIn,
  touchesSoft,
} from "./limit-attributes.ts";
import type { PythonFollower, StampedPlace } from "./python-follower.ts";
import { sweep } from "./sweep.ts";
import { type ChangeOptions, SwitchRecords } from "./switches.ts";

const ENTITIES_PER_PAGE = 1000;

/** The limits and settings of a whole namespace. */
export interface SystemConfig {
  /** The limits that apply where no other level has any. */
  readonly limits: readonly Limit[];
  /** Result of acquires while the store cannot answer. */
  readonly onUnavailable?: OnUnavailable;
}

/** Live buckets, which follow the limits of their entity at once. */
export interface LimitFollower {
  entityLimitsChanged(entityId: string, resource: string): Promise<void>;
  /** `undefined` where clients of the Python library cannot use the store. */
  readonly python: PythonFollower | undefined;
}

/**
 * Stores limits at four levels, and finds those that apply.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setSystem(['rpm:100']);
 * await repo.limits.setEntity('key-1', ['rpm:500'], { resource: 'gpt-4' });
 * const resolved = await repo.limits.resolve('key-1', 'gpt-4');
 * console.log(String(resolved?.limits[0]), resolved?.source); // rpm:500/min entity
 * await repo.close();
 * ```
 */
export class LimitRecords extends SwitchRecords {
  readonly #context: RecordContext;
  readonly #follower: LimitFollower;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    follower: LimitFollower,
  ) {
    super(context, audit, resolver, follower.python);
    this.#context = context;
    this.#follower = follower;
    this.#audit = audit;
    this.#resolver = resolver;
  }

  /** Replaces the limits of the namespace. `onUnavailable` stays when absent; `null` removes it. */
  async setSystem(
    limits: readonly LimitInput[],
    options: ChangeOptions & { onUnavailable?: OnUnavailable | null } = {},
  ): Promise<void> {
    checkFields("options", options, ["onUnavailable", "principal"]);
    const checked = checkLimits(limits);
    const principal = checkAuditor(options.principal);
    const given = options.onUnavailable ?? undefined;
    const mode = given === undefined ? undefined : checkOnUnavailable(given);
    await claimSoft(this.#follower.python, checked);
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, [], ({ system }) => {
      isSoftTouched = touchesSoft(system, checked);
      return {
        system: {
          set: { ...encodeLimits(checked), ...defined({ on_unavailable: mode }) },
          remove: [
            ...replacedAttributes(system, checked),
            ...(options.onUnavailable === null ? ["on_unavailable"] : []),
          ],
        },
        writes: [
          this.#audit.entryIn(system, {
            action: "limits_set",
            subject: SYSTEM_SUBJECT,
            principal,
            details: {
              limits: checked.map((limit) => limit.toJSON()),
              on_unavailable: mode ?? null,
            },
          }),
        ],
      };
    });
    this.#resolver.changedSystem(version, options.onUnavailable);
    if (isSoftTouched) await this.#stampSoft({});
  }

  /** Reads the limits and settings of the namespace; no limits when nothing is stored. */
  async getSystem(): Promise<SystemConfig> {
    const item = await this.#read(systemConfigKey(this.#context.namespaceId));
    return defined({ limits: decodeLimits(item), onUnavailable: onUnavailableIn(item) });
  }

  /** Removes the limits and `onUnavailable` of the namespace; its counters and retention stay. */
  async deleteSystem(options: ChangeOptions = {}): Promise<void> {
    checkFields("options", options, ["principal"]);
    const principal = checkAuditor(options.principal);
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, [], ({ system }) => {
      isSoftTouched = touchesSoft(system, []);
      const names = limitAttributeNames(system);
      const mode = textAt(system, "on_unavailable");
      if (system === undefined || (names.length === 0 && mode === undefined)) return undefined;
      return {
        system: { remove: [...names, ...(mode === undefined ? [] : ["on_unavailable"])] },
        writes: [
          this.#audit.entryIn(system, {
            action: "limits_deleted",
            subject: SYSTEM_SUBJECT,
            principal,
            details: { limits: limitNames(system), on_unavailable: mode ?? null },
          }),
        ],
      };
    });
    this.#resolver.changedSystem(version, null);
    if (isSoftTouched) await this.#stampSoft({});
  }

  /** Replaces the limits of a resource. */
  async setResource(
    resource: string,
    limits: readonly LimitInput[],
    options: ChangeOptions = {},
  ): Promise<void> {
    checkFields("options", options, ["principal"]);
    await this.#set(this.#resourceLevel(resource), limits, options);
  }

  /** Returns the limits of a resource; none when nothing is stored. */
  async getResource(resource: string): Promise<readonly Limit[]> {
    return this.#readLimits(this.#resourceLevel(resource));
  }

  /** Deletes the limits of a resource; its switch and cascade setting stay. */
  async deleteResource(resource: string, options: ChangeOptions = {}): Promise<void> {
    checkFields("options", options, ["principal"]);
    await this.#delete(this.#resourceLevel(resource), options);
  }

  /** Returns the resources with limits of their own, sorted. */
  async listResources(): Promise<string[]> {
    const registry = await this.#read(resourceRegistryKey(this.#context.namespaceId));
    const resources = valueAt(registry, "resources");
    return resources instanceof Set ? [...(resources as ReadonlySet<string>)].sort() : [];
  }

  /** Replaces the limits of an entity for a resource, or for all resources without their own. */
  async setEntity(
    entityId: string,
    limits: readonly LimitInput[],
    options: ChangeOptions & { resource?: string } = {},
  ): Promise<void> {
    checkFields("options", options, ["resource", "principal"]);
    await this.#set(this.#entityLevel(entityId, options.resource), limits, options);
  }

  /** Returns the limits of exactly this entity and resource; none when nothing is stored. */
  async getEntity(
    entityId: string,
    options: { resource?: string } = {},
  ): Promise<readonly Limit[]> {
    checkFields("options", options, ["resource"]);
    return this.#readLimits(this.#entityLevel(entityId, options.resource));
  }

  /** Deletes the limits of an entity for `resource`, or those it has for all other resources. */
  async deleteEntity(
    entityId: string,
    options: ChangeOptions & { resource?: string } = {},
  ): Promise<void> {
    checkFields("options", options, ["resource", "principal"]);
    await this.#delete(this.#entityLevel(entityId, options.resource), options);
  }

  /** Returns the entities with limits of their own for a resource, a page at a time. */
  async listEntities(
    resource: string,
    options: { limit?: number; cursor?: string } = {},
  ): Promise<{ entityIds: string[]; cursor?: string }> {
    checkFields("options", options, ["limit", "cursor"]);
    checkConfigResource(resource);
    const { items, cursor } = await listPage(
      this.#context,
      { index: "GSI3", partition: entityConfigPartition(this.#context.namespaceId, resource) },
      { limit: options.limit ?? ENTITIES_PER_PAGE, cursor: options.cursor },
    );
    return defined({ entityIds: items.map((item) => textAt(item, "GSI3SK") ?? ""), cursor });
  }

  /** Returns the resources for which at least one entity has limits of its own, sorted. */
  async listEntityResources(): Promise<string[]> {
    return registeredResources(
      await this.#read(entityConfigRegistryKey(this.#context.namespaceId)),
    );
  }

  /**
   * Returns the limits that apply to an entity and a resource; `undefined` when no level has any.
   */
  async resolve(entityId: string, resource: string): Promise<ResolvedLimits | undefined> {
    checkEntityId(entityId);
    checkResource(resource);
    return this.#resolver.resolve(entityId, resource);
  }

  /** Forgets what was remembered of stored limits. */
  invalidateCache(): void {
    this.#resolver.cache.clear();
  }

  /** Returns how often the cache of stored limits was asked, and what it holds. */
  cacheStats(): CacheStats {
    return this.#resolver.cache.stats();
  }

  #resourceLevel(resource: string): ConfigLevel {
    return checkLevel(this.#context.namespaceId, { resource: checkResource(resource) });
  }

  #entityLevel(entityId: string, given: string | undefined): ConfigLevel {
    checkEntityId(entityId);
    return checkLevel(this.#context.namespaceId, { entityId, ...defined({ resource: given }) });
  }

  async #set(
    level: ConfigLevel,
    limits: readonly LimitInput[],
    options: ChangeOptions,
  ): Promise<void> {
    const { key, subject, resource, attributes } = level;
    const checked = checkLimits(limits);
    const principal = checkAuditor(options.principal);
    const entry = { action: "limits_set", subject, principal, resource } as const;
    await claimSoft(this.#follower.python, checked);
    const { namespaceId } = this.#context;
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, [key], ({ items: [item], system }) => {
      isSoftTouched = touchesSoft(item, checked);
      const details = { limits: checked.map((limit) => limit.toJSON()) };
      return {
        writes: [
          replaceLimits(namespaceId, key, item, checked, attributes),
          ...level.register(item),
          this.#audit.entryIn(system, { ...entry, details }),
        ],
      };
    });
    await this.#follow(level, version, isSoftTouched);
  }

  async #delete(level: ConfigLevel, options: ChangeOptions): Promise<void> {
    const { key, registryKey, subject, resource } = level;
    const principal = checkAuditor(options.principal);
    const keys = [key, registryKey];
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, keys, ({ items, system }) => {
      const [item, registry] = items;
      if (item === undefined || isFlagsOnly(item)) return undefined;
      isSoftTouched = touchesSoft(item, []);
      return {
        writes: [
          ...unlisting(level, deleteLimits(item), item, registry),
          this.#audit.entryIn(system, { action: "limits_deleted", subject, principal, resource }),
        ],
      };
    });
    await this.#follow(level, version, isSoftTouched);
  }

  /** Lets the cache and live buckets follow a change; `version` is `undefined` without one. */
  async #follow(
    level: ConfigLevel,
    version: number | undefined,
    isSoftTouched: boolean,
  ): Promise<void> {
    const { entityId, resource, slot } = level;
    this.#resolver.changed(version, [slot]);
    if (isSoftTouched) await this.#stampSoft(level);
    if (version === undefined || entityId === undefined) return;
    await this.#follower.entityLimitsChanged(entityId, resource);
  }

  /** Stamps soft limits: the Python library takes one without a stamp for a hard one. */
  async #stampSoft({ entityId, resource }: StampedPlace): Promise<void> {
    const { python } = this.#follower;
    if (python === undefined) return;
    await sweep((onStamped) => python.stampSoft({ entityId, resource }, onStamped));
  }

  async #readLimits({ key }: ConfigLevel): Promise<readonly Limit[]> {
    return decodeLimits(await this.#read(key));
  }

  #read(key: Key): Promise<Item | undefined> {
    return this.#context.store.get(key, { consistent: true });
  }
}
