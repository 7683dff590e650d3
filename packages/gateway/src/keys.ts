/**
 * Keys of a gateway. A key is an entity whose id has the hash of the key, below the entity that its
 * calls count for; the key itself is shown once and stored nowhere.
 */

import { hash } from "node:crypto";
import { randomBytes, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { LRUCache } from "lru-cache";

const ID_PREFIX = "gateway-key:";
const KEY_PREFIX = "zael-";
const KEY_BYTES = 32;
/** How much of a key is shown later, so that people can tell keys apart. */
const HINT_LENGTH = 10;
/** How long a revoked key may go on working in a gateway that has seen it. */
const CACHE_MS = 30_000;
const CACHED_MAX = 10_000;
/** No key is longer. Clients choose what they send, and it is kept in the cache. */
const KEY_LENGTH_MAX = 256;

export interface StoredKey {
  readonly id: string;
  /** The entity that its calls count for. */
  readonly entityId: string;
  readonly hint: string;
  /** Epoch milliseconds; absent: never. */
  readonly expiresMs: number | undefined;
  readonly createdAt: string | undefined;
}

/** Makes a key for an entity, which is created where it does not exist. */
export async function createKey(
  repository: Repository,
  entityId: string,
  expiresMs: number | undefined,
  more: { principal?: string } = {},
): Promise<{ key: string; stored: StoredKey }> {
  await repository.entities.ensure({ id: entityId, ...more });
  const bytes = randomBytes(systemRandom, KEY_BYTES);
  const key = KEY_PREFIX + Buffer.from(bytes).toString("base64url");
  const entity = await repository.entities.create({
    id: idOf(key),
    parentId: entityId,
    metadata: {
      hint: key.slice(0, HINT_LENGTH),
      ...(expiresMs === undefined ? {} : { expires_ms: expiresMs }),
    },
    ...more,
  });
  return { key, stored: storedKey(entity) };
}

/** Returns all keys, or those of one entity. */
export async function listKeys(repository: Repository, entityId?: string): Promise<StoredKey[]> {
  const keys: StoredKey[] = [];
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await repository.entities.list({ prefix: ID_PREFIX, ...from });
    keys.push(...page.entities.map(storedKey));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return entityId === undefined ? keys : keys.filter((key) => key.entityId === entityId);
}

/** Whether there is any key. */
export async function hasKeys(repository: Repository): Promise<boolean> {
  const { entities } = await repository.entities.list({ prefix: ID_PREFIX, limit: 1 });
  return entities.length > 0;
}

/** Returns the ids of the keys of an entity, which need not exist. */
export async function keyIdsOf(repository: Repository, entityId: string): Promise<string[]> {
  const children = await repository.entities.children(entityId);
  return children.map(({ id }) => id).filter((id) => id.startsWith(ID_PREFIX));
}

/** Returns the id of a key: hashed, unless it is such an id already. */
export function idOf(key: string): string {
  if (key.startsWith(ID_PREFIX)) return key;
  return ID_PREFIX + hashOf(key);
}

/** Returns the hash of a text, in hexadecimal digits. */
export function hashOf(key: string): string {
  return hash("sha256", key);
}

interface Answer {
  readonly stored: StoredKey | undefined;
  readonly untilMs: number;
}

/** Looks keys up, and remembers the answers for half a minute. */
export class KeyLookup {
  readonly #repository: Repository;
  readonly #clock: Clock;
  /** By the key itself: hashing costs more than an acquire in memory. */
  readonly #cache = new LRUCache<string, Answer>({ max: CACHED_MAX });

  constructor(repository: Repository, clock: Clock) {
    this.#repository = repository;
    this.#clock = clock;
  }

  /**
   * Returns the entity of a key; `undefined` when it is unknown, revoked or expired, or when the
   * entity was deleted.
   */
  entityOf(key: string): string | undefined | Promise<string | undefined> {
    // A client that knows only a stored id must not pass with it.
    if (!key.startsWith(KEY_PREFIX) || key.length > KEY_LENGTH_MAX) return undefined;
    const nowMs = this.#clock();
    const known = this.#cache.get(key);
    if (known !== undefined && known.untilMs > nowMs) return entityAt(nowMs, known.stored);
    return this.#read(key, nowMs);
  }

  async #read(key: string, nowMs: number): Promise<string | undefined> {
    const { entities } = this.#repository;
    const entity = await entities.get(idOf(key));
    const parentId = entity?.parentId;
    const isOwned = parentId !== undefined && (await entities.get(parentId)) !== undefined;
    const stored = entity !== undefined && isOwned ? storedKey(entity) : undefined;
    this.#cache.set(key, { stored, untilMs: nowMs + CACHE_MS });
    return entityAt(nowMs, stored);
  }
}

/** The entity of a key that has not expired. */
function entityAt(nowMs: number, key: StoredKey | undefined): string | undefined {
  return (key?.expiresMs ?? Number.POSITIVE_INFINITY) > nowMs ? key?.entityId : undefined;
}

function storedKey({ id, parentId, metadata, createdAt }: Entity): StoredKey {
  const { hint, expires_ms } = metadata;
  return {
    id,
    entityId: parentId ?? "",
    hint: typeof hint === "string" ? hint : "",
    expiresMs: typeof expires_ms === "number" ? expires_ms : undefined,
    createdAt,
  };
}
