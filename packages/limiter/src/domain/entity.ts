/** The subject of limits: a tenant, a project, a key, a user. */

import type { JsonValue } from "./json.ts";

/**
 * Something that has limits. Entities form trees; an acquire of an entity with `cascade` also
 * consumes from its parent.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.entities.create({ id: 'project-1', name: 'Search' });
 * const key = await repo.entities.create({ id: 'key-1', parentId: 'project-1', cascade: true });
 * console.log(key.isChild); // true
 * await repo.close();
 * ```
 */
export class Entity {
  /** The id that callers pass as `entityId`. */
  readonly id: string;
  /** The name to show. */
  readonly name: string | undefined;
  /** The id of the parent, if it has one. */
  readonly parentId: string | undefined;
  /** Whether an acquire of this entity also consumes from its parent. */
  readonly cascade: boolean;
  /** Data of your own, such as a plan or a contact. */
  readonly metadata: Readonly<Record<string, JsonValue>>;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly createdAt: string | undefined;

  constructor(fields: {
    id: string;
    name?: string | undefined;
    parentId?: string | undefined;
    cascade?: boolean | undefined;
    metadata?: Readonly<Record<string, JsonValue>> | undefined;
    createdAt?: string | undefined;
  }) {
    this.id = fields.id;
    this.name = fields.name;
    this.parentId = fields.parentId;
    this.cascade = fields.cascade ?? false;
    this.metadata = fields.metadata ?? {};
    this.createdAt = fields.createdAt;
    Object.freeze(this);
  }

  /** Whether it is at the top of its tree. */
  get isParent(): boolean {
    return this.parentId === undefined;
  }

  /** Whether it belongs to another entity. */
  get isChild(): boolean {
    return this.parentId !== undefined;
  }
}
