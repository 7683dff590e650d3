/**
 * Namespaces: names that lead to opaque ids, under which everything else is stored.
 *
 * Two records belong to a namespace: one from its name to its id, one from its id to its name. A
 * deleted namespace keeps the second, so that it can be recovered, or purged with all its data.
 * Every change of state is one transaction.
 */

import { randomBytes } from "../../base/random.ts";
import { isoSeconds } from "../../core/windows.ts";
import { checkFields, show } from "../../domain/check.ts";
import {
  EntityNotFoundError,
  InfrastructureError,
  NamespaceStateError,
  ValidationError,
} from "../../domain/errors/errors.ts";
import { checkNamespace, RESERVED_NAMESPACE } from "../../domain/names.ts";
import { type Item, textAt } from "../../storage/item.ts";
import { ITEM_EXISTS, type Write } from "../../storage/item-store.ts";
import { AUDIT_RETENTION, retentionDaysIn } from "../audit.ts";
import { namespaceMark } from "../entities/deletion-mark.ts";
import {
  deletionKey,
  inNamespace,
  NAMESPACE_ID_PREFIX,
  NAMESPACE_PREFIX,
  namespaceIdKey,
  namespaceKey,
  systemConfigKey,
} from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import {
  decodeNamespace,
  forward,
  type Namespace,
  type NamespaceFields,
  type NamespaceStatus,
  type OrphanNamespace,
  REGISTRY,
  reverse,
} from "./namespace-item.ts";
import { purgeNamespace } from "./namespace-purge.ts";

const ID_BYTES = 8;
/** Ids collide once in 2^64 times; this many collisions mean that the source is not random. */
const ATTEMPTS_MAX = 20;

/** Parts of this process that follow the state of a namespace. */
interface NamespaceFollower {
  /** Removes the buckets of a namespace that are not items of their own. */
  deleteBuckets(namespaceId: string): Promise<void>;
  /** Drops what is cached of a namespace whose state has changed. */
  stateChanged(namespaceId: string): void;
}

/** For a process without open buckets and without a cache. */
export const NO_FOLLOWER: NamespaceFollower = {
  deleteBuckets: async () => undefined,
  stateChanged: () => undefined,
};

/**
 * Registers namespaces and leads them through their life.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const { 'tenant-a': id } = await repo.namespaces.register('tenant-a');
 * await repo.namespaces.delete('tenant-a');
 * const [orphan] = await repo.namespaces.orphans();
 * console.log(orphan?.namespaceId === id); // true
 * await repo.close();
 * ```
 */
export class NamespaceRecords {
  readonly #context: Omit<RecordContext, "namespaceId">;
  readonly #follower: NamespaceFollower;

  constructor(context: Omit<RecordContext, "namespaceId">, follower: NamespaceFollower) {
    this.#context = context;
    this.#follower = follower;
  }

  /** Registers the missing names; returns the id of each. All names are checked first. */
  async register(...names: string[]): Promise<Record<string, string>> {
    for (const name of names) checkNamespace(name);
    const unique = [...new Set(names)];
    const ids = await Promise.all(unique.map((name) => this.#register(name)));
    return Object.fromEntries(unique.map((name, position) => [name, ids[position] as string]));
  }

  /**
   * Registers a namespace of another store, under the id that it has there. A name that is here
   * keeps its id, and an id that is taken here, or was purged lately, is not used.
   *
   * @internal
   */
  async adopt({ name, namespaceId, createdAt }: NamespaceFields): Promise<string> {
    const known = await this.get(name);
    if (known !== undefined) return known.namespaceId;
    const mark = await this.#context.store.get(deletionKey(namespaceId), { consistent: true });
    if (mark !== undefined) return this.#register(name);
    const fields = { name, namespaceId, createdAt };
    const { ok } = await this.#context.store.transact([forward(fields), reverse(fields)]);
    return ok ? namespaceId : this.#register(name);
  }

  /** Returns the active namespaces, by name. */
  async list(): Promise<Namespace[]> {
    return (await this.#registered(NAMESPACE_PREFIX)).map(decodeNamespace);
  }

  /** The namespace of that name; `undefined` when it is not there or was deleted. */
  async get(name: string): Promise<Namespace | undefined> {
    checkNamespace(name);
    const item = await this.#context.store.get(namespaceKey(name), { consistent: true });
    if (item === undefined) return undefined;
    const namespace = decodeNamespace(item);
    return namespace.status === "active" ? namespace : undefined;
  }

  /**
   * Removes the name. The data stays until it is purged. Live limiters refuse with
   * `NamespaceStateError` once their config cache expires. Does nothing when the name is not
   * registered.
   */
  async delete(name: string): Promise<void> {
    const namespace = await this.get(name);
    if (namespace === undefined) return;
    const { namespaceId } = namespace;
    const result = await this.#context.store.transact([
      {
        delete: namespaceKey(name),
        condition: [{ is: "=", name: "namespace_id", value: namespaceId }],
      },
      {
        update: namespaceIdKey(namespaceId),
        change: { set: { status: "deleted", deleted_at: isoSeconds(this.#context.clock()) } },
        condition: [ITEM_EXISTS],
      },
    ]);
    this.#follower.stateChanged(namespaceId);
    // When the name was deleted meanwhile, that is what was asked for.
    if (result.ok || result.failures.has(0)) return;
    throw stateError(name, "unregistered", "has lost its record by id");
  }

  /** Gives a deleted namespace its name back; returns the name. */
  async recover(namespaceId: string): Promise<string> {
    const record = await this.#byId(checkNamespaceId(namespaceId));
    if (record === undefined) throw new EntityNotFoundError(namespaceId);
    const { name, status, createdAt } = record;
    checkNamespace(name);
    if (status !== "deleted") throw cannotRecover(name, status);
    const result = await this.#context.store.transact([
      forward({ name, namespaceId, createdAt }),
      {
        update: namespaceIdKey(namespaceId),
        change: { set: { status: "active" }, remove: ["deleted_at"] },
        condition: [{ is: "=", name: "status", value: "deleted" }],
      },
    ]);
    this.#follower.stateChanged(namespaceId);
    if (result.ok) return name;
    if (result.failures.has(0)) throw cannotRecover(name, "re-registered");
    const now = await this.#byId(namespaceId);
    throw cannotRecover(name, now?.status ?? "purging");
  }

  /** Lists deleted namespaces that still have data and can be recovered. */
  orphans(): Promise<OrphanNamespace[]> {
    return this.#inState("deleted");
  }

  /** Namespaces whose purge is under way or was interrupted: repeat it with their id. */
  purging(): Promise<OrphanNamespace[]> {
    return this.#inState("purging");
  }

  async #inState(wanted: NamespaceStatus): Promise<OrphanNamespace[]> {
    return (await this.#registered(NAMESPACE_ID_PREFIX)).flatMap((item) => {
      const { namespaceId, name, status } = decodeNamespace(item);
      if (status !== wanted) return [];
      return [{ namespaceId, namespace: name, deletedAt: textAt(item, "deleted_at") }];
    });
  }

  /** Returns the records of all namespaces whose sort key begins so. */
  async #registered(beginsWith: string): Promise<Item[]> {
    const query = { partition: REGISTRY, sort: { beginsWith }, consistent: true };
    const items: Item[] = [];
    for await (const item of this.#context.store.query(query)) items.push(item);
    return items;
  }

  /**
   * Removes everything in a deleted namespace, repeats that until nothing is left, and then removes
   * its record. It can be repeated after an interruption, and for a week after its end: a client
   * that did not know of the deletion may have written since. Does nothing for an unknown id.
   */
  async purge(
    namespaceId: string,
    options: { onProgress?: (progress: { deleted: number }) => void } = {},
  ): Promise<void> {
    checkFields("options", options, ["onProgress"]);
    if ((await this.#byId(checkNamespaceId(namespaceId))) === undefined) {
      await this.#purgeLate(namespaceId, options.onProgress);
      return;
    }
    const key = namespaceIdKey(namespaceId);
    const change = { set: { status: "purging" } };
    for (const status of ["deleted", "purging"]) {
      const condition = [{ is: "=", name: "status", value: status }] as const;
      if (!(await this.#context.store.update(key, change, condition)).ok) continue;
      this.#follower.stateChanged(namespaceId);
      // From here on the aggregator counts nothing for this namespace.
      await this.#context.store.put(namespaceMark(namespaceId, this.#context.clock()));
      await this.#follower.deleteBuckets(namespaceId);
      await purgeNamespace({ ...this.#context, namespaceId }, options.onProgress);
      await this.#context.store.delete(key);
      return;
    }
    const record = await this.#byId(namespaceId);
    // Another purge has come to its end meanwhile.
    if (record === undefined) return;
    const { name, status } = record;
    throw stateError(name, status, `is ${status}; delete it before you purge it`);
  }

  /** Removes what was written after a purge. Its mark says that there was one. */
  async #purgeLate(
    namespaceId: string,
    onProgress?: (progress: { deleted: number }) => void,
  ): Promise<void> {
    const mark = await this.#context.store.get(deletionKey(namespaceId), { consistent: true });
    if (mark !== undefined) await purgeNamespace({ ...this.#context, namespaceId }, onProgress);
  }

  async #register(name: string): Promise<string> {
    const { store, clock } = this.#context;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const known = await this.get(name);
      if (known !== undefined) return known.namespaceId;
      const fields = { name, namespaceId: this.#newId(), createdAt: isoSeconds(clock()) };
      const writes = [forward(fields), reverse(fields), ...(await this.#settings(fields))];
      const result = await store.transact(writes);
      if (result.ok) return fields.namespaceId;
      // Another client was faster, or the id is taken: in both cases try again.
      const stored = result.failures.get(0)?.item;
      const status = stored === undefined ? "active" : decodeNamespace(stored).status;
      if (status !== "active") throw stateError(name, status, `is ${status}`);
    }
    throw notRandom();
  }

  /** Returns the settings of a deployment for all namespaces, as the first config of a new one. */
  async #settings({ namespaceId }: NamespaceFields): Promise<Write[]> {
    const table = await this.#context.store.get(systemConfigKey(RESERVED_NAMESPACE));
    const days = retentionDaysIn(table);
    if (days === undefined) return [];
    const key = systemConfigKey(namespaceId);
    return [{ put: { ...key, ...inNamespace(namespaceId, key.PK), [AUDIT_RETENTION]: days } }];
  }

  /** Returns 11 characters of base64url; a leading hyphen would be an option on a command line. */
  #newId(): string {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const bytes = randomBytes(this.#context.random, ID_BYTES);
      const id = Buffer.from(bytes).toString("base64url");
      if (!id.startsWith("-")) return id;
    }
    throw notRandom();
  }

  async #byId(namespaceId: string): Promise<Namespace | undefined> {
    const key = namespaceIdKey(namespaceId);
    const item = await this.#context.store.get(key, { consistent: true });
    return item === undefined ? undefined : decodeNamespace(item);
  }
}

function notRandom(): InfrastructureError {
  return new InfrastructureError(
    `No new id was found in ${ATTEMPTS_MAX} attempts: the option \`random\` must return ` +
      "different numbers",
  );
}

function cannotRecover(name: string, state: string): NamespaceStateError {
  const why: Record<string, string> = {
    active: "it is active",
    purging: "it is being purged",
    "re-registered": "the name has been registered again",
  };
  return stateError(name, state, `cannot be recovered: ${why[state] ?? state}`);
}

function stateError(name: string, state: string, what: string): NamespaceStateError {
  return new NamespaceStateError(`The namespace "${name}" ${what}`, { namespaceName: name, state });
}

function checkNamespaceId(value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  const reason = `expected the id of a namespace, got ${show(value)}`;
  throw new ValidationError("namespace_id", value, reason);
}
