/** Entities, and the parents that they cascade to. */

import { isoSeconds } from "../../core/windows.ts";
import { checkFields, checkFlag, show } from "../../domain/check.ts";
import { Entity } from "../../domain/entity.ts";
import {
  EntityExistsError,
  EntityNotFoundError,
  ValidationError,
} from "../../domain/errors/errors.ts";
import { checkJsonObject, type JsonValue } from "../../domain/json.ts";
import { checkEntityId, checkParentId } from "../../domain/names.ts";
import type { Value } from "../../storage/item.ts";
import { ITEM_ABSENT, ITEM_EXISTS } from "../../storage/item-store.ts";
import { type AuditLog, type AuditWrite, checkAuditor } from "../audit.ts";
import type { ConfigResolver } from "../config/config-resolver.ts";
import type { PythonFollower } from "../config/python-follower.ts";
import { sweep } from "../config/sweep.ts";
import { childrenPartition, entityKey } from "../keys.ts";
import { checkActive } from "../namespaces/namespace-state.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { checkAncestry } from "./ancestry.ts";
import { deleteBuckets, deleteConfigs, deleteLeftovers } from "./entity-deletion.ts";
import { decodeEntity, encodeEntity } from "./entity-item.ts";
import { type EntityListOptions, type EntityPage, listEntities } from "./entity-list.ts";
import { moveEntity } from "./entity-move.ts";

export { ANCESTORS_MAX } from "./ancestry.ts";

/** The fields of a new entity. */
export interface NewEntity {
  /** The id that callers pass as `entityId`. */
  readonly id: string;
  /** The id when not given. */
  readonly name?: string;
  /** The id of the parent, which must exist. */
  readonly parentId?: string;
  /** Whether the parent may come later. */
  readonly allowMissingParent?: boolean;
  /** Whether an acquire of this entity also consumes from its parent. */
  readonly cascade?: boolean;
  /** Data of your own, such as a plan or a contact. */
  readonly metadata?: Readonly<Record<string, JsonValue>>;
  /** The person or program that creates it, for the audit log. */
  readonly principal?: string;
}

const NEW_ENTITY_FIELDS = [
  "id",
  "name",
  "parentId",
  "allowMissingParent",
  "cascade",
  "metadata",
  "principal",
] as const satisfies readonly (keyof NewEntity)[];

/** The buckets of entities, which follow changes of their entity. */
export interface EntityBuckets {
  relink(id: string, link: { cascade: boolean; parentId: string | undefined }): Promise<void>;
  /** Stamps a move, in place of `relink`; `undefined` where Python clients cannot use the store. */
  readonly python: PythonFollower | undefined;
  /** Deletes the buckets of an entity. `lastBaseMs`: the latest base time among them. */
  deleteEntity(id: string): Promise<{ count: number; lastBaseMs: number }>;
}

/**
 * Creates, finds and deletes entities.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.entities.create({ id: 'project-1' });
 * await repo.entities.create({ id: 'key-1', parentId: 'project-1', cascade: true });
 * const children = await repo.entities.children('project-1');
 * console.log(children.map(({ id }) => id).join(' ')); // key-1
 * await repo.close();
 * ```
 */
export class EntityRecords {
  readonly #context: RecordContext;
  readonly #buckets: EntityBuckets;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    buckets: EntityBuckets,
  ) {
    this.#context = context;
    this.#buckets = buckets;
    this.#audit = audit;
    this.#resolver = resolver;
  }

  /**
   * Creates an entity. Its parent must exist, unless `allowMissingParent`, and the tree must stay a
   * tree of at most 8 ancestors.
   */
  async create(fields: NewEntity): Promise<Entity> {
    checkFields("entity", fields, NEW_ENTITY_FIELDS);
    const entity = this.#check(fields);
    const principal = checkAuditor(fields.principal);
    await checkActive(this.#context);
    const days = await this.#resolver.auditRetentionDays();
    const mayMiss = fields.allowMissingParent === true;
    while (!(await this.#tryCreate(entity, mayMiss, principal, days))) {
      // The tree has changed meanwhile: check it again.
    }
    this.#resolver.entityChanged(entity.id);
    // An entity may have been used before it was created; its buckets then have no parent link.
    // Where a level says that acquires cascade, the parent counts without a flag of the entity.
    if (entity.parentId !== undefined) await this.#buckets.relink(entity.id, entity);
    return entity;
  }

  /** Whether the tree was still what it had been checked to be. */
  async #tryCreate(
    entity: Entity,
    mayMissParent: boolean,
    principal: string | undefined,
    retentionDays: number,
  ): Promise<boolean> {
    const { id, parentId } = entity;
    const { store, namespaceId } = this.#context;
    const missing =
      parentId === undefined ? undefined : await checkAncestry(this.#context, id, parentId);
    if (missing === parentId && missing !== undefined && !mayMissParent) {
      if ((await this.get(id)) !== undefined) throw new EntityExistsError(id);
      throw missingParent(id, missing);
    }
    const details = {
      name: entity.name ?? id,
      parent_id: parentId ?? null,
      cascade: entity.cascade,
      metadata: entity.metadata,
    };
    const event = { action: "entity_created", subject: id, principal, details } as const;
    const result = await store.transact([
      { put: encodeEntity(namespaceId, entity), condition: [ITEM_ABSENT] },
      this.#audit.entry(event, retentionDays),
      // Two entities that are created at once could otherwise become each other's ancestors.
      ...(missing === undefined
        ? []
        : [{ check: entityKey(namespaceId, missing), condition: [ITEM_ABSENT] }]),
      ...(parentId === undefined || parentId === missing
        ? []
        : [{ check: entityKey(namespaceId, parentId), condition: [ITEM_EXISTS] }]),
    ]);
    if (!result.ok && result.failures.has(0)) throw new EntityExistsError(id);
    return result.ok;
  }

  /**
   * Creates an entity unless it exists, and returns it as it is stored. Refuses with
   * `EntityExistsError` when it exists with another parent, or cascades otherwise, than asked for,
   * and with `EntityNotFoundError` when it is to be created and its parent does not exist.
   */
  async ensure(fields: NewEntity): Promise<Entity> {
    checkFields("entity", fields, NEW_ENTITY_FIELDS);
    const wanted = this.#check(fields);
    checkAuditor(fields.principal);
    for (;;) {
      const stored = await this.get(wanted.id);
      if (stored !== undefined) return sameLink(fields, stored);
      try {
        return await this.create(fields);
      } catch (error) {
        // Another client was faster; it may also have deleted the entity since.
        if (!(error instanceof EntityExistsError)) throw error;
      }
    }
  }

  /** Changes the name or the metadata, each as a whole; returns the entity as it is stored. */
  async update(
    id: string,
    changes: { name?: string; metadata?: Readonly<Record<string, JsonValue>>; principal?: string },
  ): Promise<Entity> {
    checkEntityId(id);
    checkFields("changes", changes, ["name", "metadata", "principal"]);
    const principal = checkAuditor(changes.principal);
    const set = {
      ...(changes.name === undefined ? {} : { name: checkName(changes.name) }),
      ...(changes.metadata === undefined
        ? {}
        : { metadata: checkJsonObject("metadata", changes.metadata) }),
    };
    const { store, namespaceId } = this.#context;
    const key = entityKey(namespaceId, id);
    if (Object.keys(set).length > 0) {
      await checkActive(this.#context);
      const days = await this.#resolver.auditRetentionDays();
      const event = { action: "entity_updated", subject: id, principal, details: set } as const;
      const result = await store.transact([
        { update: key, change: { set: set as Record<string, Value> }, condition: [ITEM_EXISTS] },
        this.#audit.entry(event, days),
      ]);
      if (!result.ok) throw new EntityNotFoundError(id);
    }
    const stored = await this.get(id);
    if (stored === undefined) throw new EntityNotFoundError(id);
    return stored;
  }

  /**
   * Gives an entity another parent, or none. Both must exist, and the tree must stay a tree of at
   * most 8 ancestors. What was consumed from the old parent stays there, also by leases that are
   * still open.
   */
  async setParent(
    id: string,
    parentId: string | null,
    options: { principal?: string } = {},
  ): Promise<Entity> {
    checkEntityId(id);
    const wanted = parentId === null ? undefined : checkParentId(parentId);
    checkFields("options", options, ["principal"]);
    const principal = checkAuditor(options.principal);
    await checkActive(this.#context);
    const days = await this.#resolver.auditRetentionDays();
    let event: AuditWrite | undefined;
    const { python } = this.#buckets;
    const entity = await moveEntity(
      this.#context,
      id,
      wanted,
      (details) => {
        const entry = { action: "entity_parent_changed", subject: id, principal, details } as const;
        event = this.#audit.entry(entry, days);
        return event;
      },
      python,
    );
    this.#resolver.entityChanged(id);
    if (python === undefined) {
      await sweep(() => this.#buckets.relink(id, entity));
      return entity;
    }
    await sweep(
      (onStamped) => python.stampOwner(id, onStamped),
      (stamped) => this.#audit.tellStamped(event, stamped),
    );
    return entity;
  }

  /**
   * Lists all entities that were created, by id, a page at a time. A new one may be missing at
   * first.
   */
  list(options: EntityListOptions = {}): Promise<EntityPage> {
    return listEntities(this.#context, options);
  }

  /** Returns the record of an entity, or `undefined`. */
  async get(id: string): Promise<Entity | undefined> {
    checkEntityId(id);
    const { store, namespaceId } = this.#context;
    const item = await store.get(entityKey(namespaceId, id), { consistent: true });
    return item === undefined ? undefined : decodeEntity(item);
  }

  /** Returns the entities whose parent this is, by id. */
  async children(id: string): Promise<Entity[]> {
    checkEntityId(id);
    const { namespaceId } = this.#context;
    const children: Entity[] = [];
    const query = { index: "GSI1", partition: childrenPartition(namespaceId, id) } as const;
    for await (const item of queryRecords(this.#context, query)) {
      children.push(decodeEntity(item));
    }
    return children;
  }

  /**
   * Removes the entity with its limits, buckets and usage; its audit log stays, and so do its
   * children, whose parent is then missing. The entity's own record goes last, so that a deletion
   * that was cut off can be repeated.
   */
  async delete(id: string, options: { principal?: string } = {}): Promise<void> {
    checkEntityId(id);
    checkFields("options", options, ["principal"]);
    const principal = checkAuditor(options.principal);
    await checkActive(this.#context);
    const deletedConfigs = await deleteConfigs(this.#context, this.#resolver, id);
    const deletedBuckets = await deleteBuckets(this.#context, this.#buckets, id);
    const deletedUsage = await deleteLeftovers(this.#context, id);
    const { store, namespaceId } = this.#context;
    const key = entityKey(namespaceId, id);
    const exists = (await store.get(key, { consistent: true })) !== undefined;
    const deleted = deletedConfigs + deletedUsage + deletedBuckets + (exists ? 1 : 0);
    if (deleted === 0) return;
    const days = await this.#resolver.auditRetentionDays();
    const event = this.#audit.entry(
      {
        action: "entity_deleted",
        subject: id,
        principal,
        details: { records_deleted: deleted },
      },
      days,
    );
    // When another client has just deleted the record, it has also written the event.
    await store.transact(exists ? [{ delete: key, condition: [ITEM_EXISTS] }, event] : [event]);
    this.#resolver.entityChanged(id);
  }

  #check(fields: NewEntity): Entity {
    const { id, name, parentId, cascade, metadata } = fields;
    checkEntityId(id);
    if (name !== undefined) checkName(name);
    checkFlag("cascade", cascade);
    checkFlag("allowMissingParent", fields.allowMissingParent);
    return new Entity({
      id,
      name: name ?? id,
      parentId: parentId === undefined ? undefined : checkParentId(parentId),
      cascade,
      metadata: checkJsonObject("metadata", metadata ?? {}),
      createdAt: isoSeconds(this.#context.clock()),
    });
  }
}

function missingParent(id: string, parentId: string): EntityNotFoundError {
  const reason = `There is no entity "${parentId}", which "${id}" is to have as its parent`;
  const advice = "Create it first, or set allowMissingParent if it comes later";
  return new EntityNotFoundError(parentId, `${reason}. ${advice}`);
}

function checkName(name: unknown): string {
  if (typeof name === "string") return name;
  throw new ValidationError("name", name, `expected text, got ${show(name)}`);
}

/** Returns the stored entity, unless the caller asks for another parent or cascade. */
function sameLink({ parentId, cascade }: NewEntity, stored: Entity): Entity {
  const differs =
    (parentId !== undefined && parentId !== stored.parentId) ||
    (cascade !== undefined && cascade !== stored.cascade);
  if (differs) throw new EntityExistsError(stored.id);
  return stored;
}
