/** Stored limits of a namespace, a resource or an entity. The most specific level applies. */

import { defined } from "../../base/defined.ts";
import { checkFields } from "../../domain/check.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { Limit, LimitInput } from "../../domain/limit.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkResource,
  DEFAULT_RESOURCE,
} from "../../domain/names.ts";
import { type Item, type Key, textAt } from "../../storage/item.ts";
import type { AuditLog } from "../audit.ts";
import { listPage } from "../cursor.ts";
import {
  childrenConfigPartition,
  childrenConfigRegistryKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  resourceRegistryKey,
  systemConfigKey,
} from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import type { CacheStats } from "./config-cache.ts";
import { type ConfigLevel, checkLevel, childrenLevel } from "./config-level.ts";
import { registeredResources, resourcesIn } from "./config-registry.ts";
import type { ConfigResolver, ResolvedLimits } from "./config-resolver.ts";
import { decodeLimits, onUnavailableIn } from "./limit-attributes.ts";
import {
  type LimitFollower,
  LimitWriter,
  type SetOptions,
  type SystemOptions,
} from "./limit-writer.ts";
import { type ChangeOptions, SwitchRecords } from "./switches.ts";

const ENTITIES_PER_PAGE = 1000;

/** The limits and settings of a whole namespace. */
export interface SystemConfig {
  /** The limits that apply where no other level has any. */
  readonly limits: readonly Limit[];
  /** Result of acquires while the store cannot answer. */
  readonly onUnavailable?: OnUnavailable;
}

/**
 * Stores limits at several levels, and finds those that apply.
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
  readonly #writer: LimitWriter;
  readonly #resolver: ConfigResolver;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    follower: LimitFollower,
  ) {
    super(context, audit, resolver, follower.python);
    this.#context = context;
    this.#writer = new LimitWriter(context, audit, resolver, follower);
    this.#resolver = resolver;
  }

  /**
   * Replaces the limits of the namespace. `onUnavailable` stays when absent; `null` removes it.
   * Nothing is written where they are stored already.
   */
  async setSystem(limits: readonly LimitInput[], options: SystemOptions = {}): Promise<void> {
    await this.#writer.setSystem(limits, options, "replace");
  }

  /**
   * Sets the limits of the namespace, and `onUnavailable` with them, unless it has limits. Returns
   * whether it wrote. For programs that bring their limits along: an operator's change stays.
   */
  async ensureSystem(
    limits: readonly LimitInput[],
    options: ChangeOptions & { onUnavailable?: OnUnavailable } = {},
  ): Promise<boolean> {
    return this.#writer.setSystem(limits, options, "keep");
  }

  /** Reads the limits and settings of the namespace; no limits when nothing is stored. */
  async getSystem(): Promise<SystemConfig> {
    const item = await this.#read(systemConfigKey(this.#context.namespaceId));
    return defined({ limits: decodeLimits(item), onUnavailable: onUnavailableIn(item) });
  }

  /** Removes the limits and `onUnavailable` of the namespace; its counters and retention stay. */
  async deleteSystem(options: ChangeOptions = {}): Promise<void> {
    checkFields("options", options, ["principal"]);
    await this.#writer.deleteSystem(options);
  }

  /** Replaces the limits of a resource. Nothing is written where they are stored already. */
  async setResource(
    resource: string,
    limits: readonly LimitInput[],
    options: SetOptions = {},
  ): Promise<void> {
    checkFields("options", options, ["principal", "replaceKind"]);
    await this.#writer.set(this.#resourceLevel(resource), limits, options, "replace");
  }

  /** Sets the limits of a resource unless it has some. Returns whether it wrote. */
  async ensureResource(
    resource: string,
    limits: readonly LimitInput[],
    options: ChangeOptions = {},
  ): Promise<boolean> {
    checkFields("options", options, ["principal"]);
    return this.#writer.set(this.#resourceLevel(resource), limits, options, "keep");
  }

  /** Returns the limits of a resource; none when nothing is stored. */
  async getResource(resource: string): Promise<readonly Limit[]> {
    return this.#readLimits(this.#resourceLevel(resource));
  }

  /** Deletes the limits of a resource; its switch and cascade setting stay. */
  async deleteResource(resource: string, options: ChangeOptions = {}): Promise<void> {
    checkFields("options", options, ["principal"]);
    await this.#writer.delete(this.#resourceLevel(resource), options);
  }

  /** Returns the resources with limits of their own, sorted. */
  async listResources(): Promise<string[]> {
    return resourcesIn(await this.#read(resourceRegistryKey(this.#context.namespaceId)));
  }

  /**
   * Replaces the limits of an entity for a resource, or for all resources without their own.
   * Nothing is written where they are stored already.
   */
  async setEntity(
    entityId: string,
    limits: readonly LimitInput[],
    options: SetOptions & { resource?: string } = {},
  ): Promise<void> {
    checkFields("options", options, ["resource", "principal", "replaceKind"]);
    await this.#writer.set(
      this.#entityLevel(entityId, options.resource),
      limits,
      options,
      "replace",
    );
  }

  /**
   * Sets the limits of an entity for a resource, or for all resources without their own, unless it
   * has some there. Returns whether it wrote.
   */
  async ensureEntity(
    entityId: string,
    limits: readonly LimitInput[],
    options: ChangeOptions & { resource?: string } = {},
  ): Promise<boolean> {
    checkFields("options", options, ["resource", "principal"]);
    return this.#writer.set(this.#entityLevel(entityId, options.resource), limits, options, "keep");
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
    await this.#writer.delete(this.#entityLevel(entityId, options.resource), options);
  }

  /**
   * Replaces the limits that each entity directly below this one has for a resource, or for all
   * resources without their own, unless it has limits itself. Nothing is written where they are
   * stored already. The Python library does not see them.
   *
   * @example
   * ```ts
   * import { Repository } from 'zae-limiter';
   * const repo = await Repository.open('memory:');
   * await repo.entities.create({ id: 'team-a' });
   * await repo.entities.create({ id: 'ann', parentId: 'team-a', cascade: true });
   * await repo.limits.setChildren('team-a', ['rpm:20']);
   * const resolved = await repo.limits.resolve('ann', 'gpt-4');
   * console.log(String(resolved?.limits[0]), resolved?.source); // rpm:20/min parent_default
   * await repo.close();
   * ```
   */
  async setChildren(
    entityId: string,
    limits: readonly LimitInput[],
    options: SetOptions & { resource?: string } = {},
  ): Promise<void> {
    checkFields("options", options, ["resource", "principal", "replaceKind"]);
    const level = this.#childrenLevel(entityId, options.resource);
    await this.#writer.set(level, limits, options, "replace");
  }

  /** Returns the limits that an entity stores for its children; none when nothing is stored. */
  async getChildren(
    entityId: string,
    options: { resource?: string } = {},
  ): Promise<readonly Limit[]> {
    checkFields("options", options, ["resource"]);
    return this.#readLimits(this.#childrenLevel(entityId, options.resource));
  }

  /** Deletes the limits that an entity stores for its children. */
  async deleteChildren(
    entityId: string,
    options: ChangeOptions & { resource?: string } = {},
  ): Promise<void> {
    checkFields("options", options, ["resource", "principal"]);
    await this.#writer.delete(this.#childrenLevel(entityId, options.resource), options);
  }

  /** Returns the entities with limits of their own for a resource, a page at a time. */
  async listEntities(
    resource: string,
    options: { limit?: number; cursor?: string } = {},
  ): Promise<{ entityIds: string[]; cursor?: string }> {
    return this.#list(entityConfigPartition, resource, options);
  }

  /** Returns the entities with limits for their children and a resource, a page at a time. */
  async listParents(
    resource: string,
    options: { limit?: number; cursor?: string } = {},
  ): Promise<{ entityIds: string[]; cursor?: string }> {
    return this.#list(childrenConfigPartition, resource, options);
  }

  /** Returns the resources for which an entity has limits for its children, sorted. */
  async listChildrenResources(): Promise<string[]> {
    return registeredResources(
      await this.#read(childrenConfigRegistryKey(this.#context.namespaceId)),
    );
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

  #childrenLevel(entityId: string, given: string | undefined): ConfigLevel {
    checkEntityId(entityId);
    const resource = checkConfigResource(given ?? DEFAULT_RESOURCE);
    return childrenLevel(this.#context.namespaceId, entityId, resource);
  }

  async #list(
    partitionOf: (namespaceId: string, resource: string) => string,
    resource: string,
    options: { limit?: number; cursor?: string },
  ): Promise<{ entityIds: string[]; cursor?: string }> {
    checkFields("options", options, ["limit", "cursor"]);
    checkConfigResource(resource);
    const { items, cursor } = await listPage(
      this.#context,
      { index: "GSI3", partition: partitionOf(this.#context.namespaceId, resource) },
      { limit: options.limit ?? ENTITIES_PER_PAGE, cursor: options.cursor },
    );
    return defined({ entityIds: items.map((item) => textAt(item, "GSI3SK") ?? ""), cursor });
  }

  async #readLimits({ key }: ConfigLevel): Promise<readonly Limit[]> {
    return decodeLimits(await this.#read(key));
  }

  #read(key: Key): Promise<Item | undefined> {
    return this.#context.store.get(key, { consistent: true });
  }
}
